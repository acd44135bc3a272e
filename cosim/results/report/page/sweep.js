/**
 * A sweep: every cell of it, and what its measures say of one another.
 * @module sweep
 */

import { doubtful, el, section, sortedTable, svg } from "report/dom.js";
import { frontPlot, unbeaten } from "report/front.js";
import { csvButton, svgButton } from "report/save.js";

const MOST_SAID = 6;
const FEW = 3; // seeds: an interval of two is thirteen times their spread

/** @param {object} data */
export function sweep(data) {
  const { axes, measures, cells } = data.sweep;
  const columns = [...new Map(cells.map((cell) => [JSON.stringify(cell.labels.slice(1)), cell.labels.slice(1)])).values()];
  const groups = columns.map((column) => ({ column, cells: cells.filter((cell) => JSON.stringify(cell.labels.slice(1)) === JSON.stringify(column)) }));
  const all = { axes, measures, groups, letters: lettersOf(data.sweep) };
  const doubts = cells.filter((cell) => cell.doubtful);
  return section("sweep", "Sweep", data.sweep.said, csvButton("sweep", () => rows(all)),
    doubts.length > 0 && doubtful(doubts.map((cell) => [cell.labels.join(", "), cell.doubtful])),
    best(all), allPanels(all), measures.length > 1 && fronts(all), el("h3", {}, "Every cell"), every(all));
}

/** `letters(measure, column, label)`: what it has of the groups that can't be told apart. */
function lettersOf({ letters }) {
  const found = new Map(letters.map((one) => [`${one.measure}|${JSON.stringify(one.column)}`, one.of]));
  return (measure, column, label) => found.get(`${measure}|${JSON.stringify(column)}`)?.[label] ?? "";
}

/** Cells of a group that have a measure, the best first. */
function ranked({ measures }, group, k) {
  const sign = measures[k].more_is_better ? -1 : 1;
  return group.cells.filter((cell) => cell.means[k] !== null).sort((a, b) => sign * (a.means[k] - b.means[k]));
}

/** Which is best by the first measure, and which can't be told from it. */
function best(all) {
  if (all.axes[0].labels.length < 2) return null;
  const lines = all.groups.map((group) => {
    const order = ranked(all, group, 0);
    if (order.length < 2) return null;
    const mine = all.letters(0, group.column, order[0].labels[0]);
    const alike = order.slice(1).filter((cell) => [...all.letters(0, group.column, cell.labels[0])].some((one) => mine.includes(one))).map((cell) => cell.labels[0]);
    const sure = !mine ? "; with one seed each, nothing says how sure that is" : alike.length ? `, not told apart from ${alike.slice(0, 4).join(", ")}${alike.length > 4 ? ` and ${alike.length - 4} more` : ""}` : ", better than every other (95 %)";
    return `${group.column.length ? `${group.column.join(", ")}: ` : ""}${order[0].labels[0]}${order[0].doubtful ? " (doubtful)" : ""} has the best ${all.measures[0].name}, ${number(order[0], 0)}${unit(all.measures[0])}${sure}.`;
  }).filter(Boolean);
  const left = lines.length - MOST_SAID;
  return [lines.slice(0, MOST_SAID).map((line, k) => el("p", { class: k ? "" : "said" }, line)), left > 0 && el("p", { class: "note" }, `... and ${left} more, below`)];
}

/** The last of its labels, with a mark where the cell is doubtful. */
const marked = (cell) => `${cell.labels.at(-1)}${cell.doubtful ? " ?" : ""}`;

/** How many runs a cell has, and those that were kept. */
function opened(cell) {
  if (!cell.runs.length) return String(cell.count);
  return el("span", {}, `${cell.count}: `, cell.runs.map((run, k) => [k > 0 && ", ", el("a", { href: run.at }, `seed ${run.seed}`)]));
}

const unit = (measure) => (measure.unit ? ` ${measure.unit}` : "");
const round = (value, digits = 5) => String(Number(value.toPrecision(digits)));

/** A mean, and half of its interval where that shows in the digits written and there are seeds enough for one. */
function number(cell, k) {
  if (cell.means[k] === null) return "-";
  const [mean, half] = [cell.means[k], cell.halves[k]];
  if (!(half > 1e-5 * Math.abs(mean))) return round(mean);
  if (cell.counts[k] < FEW) return `${round(mean)} (${cell.counts[k]} seeds: too few for an interval)`;
  const digits = Math.max(0, 1 - Math.floor(Math.log10(half))); // as many as the interval's two
  return `${mean.toFixed(digits)} ± ${half.toFixed(digits)}`;
}

/**
 * A panel for each measure and choice on the other axes, with a scale of its own: the first axis' choices, best first, with
 * intervals. Where there is one choice, measures stand beside one another.
 */
function allPanels(all) {
  const { measures, groups } = all;
  const seeds = measures.some((_, k) => groups.some((group) => group.cells.some((cell) => all.letters(k, group.column, cell.labels[0]))));
  const drawn = measures.map((_, k) => groups.map((group) => panel(all, group, k)).filter(Boolean)).filter((some) => some.length);
  return [el("p", { class: "note" }, `Best first${seeds ? ". Choices that share a letter can't be told apart, seed by seed (95 %, paired); lines are intervals of each by itself" : ""}.`),
    groups.length > 1 ? drawn.map((some) => el("div", { class: "panels" }, some)) : el("div", { class: "panels" }, drawn)];
}

function panel(all, group, k) {
  const order = ranked(all, group, k);
  if (!order.length) return null;
  const ends = order.flatMap((cell) => (cell.halves[k] && cell.counts[k] >= FEW ? [cell.means[k] - cell.halves[k], cell.means[k] + cell.halves[k]] : [cell.means[k]]));
  const [low, high] = [Math.min(0, ...ends), Math.max(...ends, 0)];
  const [wide, left, right, tall, top] = [420, 130, 118, 19, group.column.length ? 40 : 22];
  const x = (value) => left + ((value - low) / (high - low || 1)) * (wide - left - right);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11.5, fill: "var(--ink)" };
  const short = (text) => (text.length > 20 ? `${text.slice(0, 19)}…` : text);
  const node = svg("svg", { viewBox: `0 0 ${wide} ${tall * order.length + top + 6}`, width: wide, height: tall * order.length + top + 6, role: "img", "aria-label": `${named(all.measures[k])} ${group.column.join(", ")}` },
    svg("rect", { width: wide, height: tall * order.length + top + 6, fill: "var(--paper)" }),
    svg("text", { ...words, "font-weight": 600, x: 0, y: 13 }, named(all.measures[k])),
    svg("text", { ...words, x: 0, y: 31, fill: "var(--soft)" }, group.column.join(", ")),
    svg("line", { x1: x(0), x2: x(0), y1: top - 2, y2: tall * order.length + top, stroke: "var(--rule)" }),
    order.map((cell, row) => {
      const [y, mean, half] = [top + tall * (row + 0.5), cell.means[k], cell.halves[k]];
      const letters = all.letters(k, group.column, cell.labels[0]);
      const parts = [svg("title", {}, `${cell.labels.join(", ")}: ${number(cell, k)}${unit(all.measures[k])}`),
        svg("text", { ...words, x: left - 8, y: y + 4, "text-anchor": "end" }, short(cell.labels[0])),
        svg("line", { x1: x(0), x2: x(mean), y1: y, y2: y, stroke: "var(--accent-soft)", "stroke-width": 7 }),
        half && cell.counts[k] >= FEW && svg("line", { x1: x(mean - half), x2: x(mean + half), y1: y, y2: y, stroke: "var(--ink)", "stroke-width": 1.2 }),
        svg("circle", { cx: x(mean), cy: y, r: 3.4, fill: "var(--accent)" }),
        svg("text", { ...words, x: wide - right + 10, y: y + 4 }, `${round(mean, 4)}${unit(all.measures[k])}`),
        svg("text", { ...words, x: wide, y: y + 4, "text-anchor": "end", fill: "var(--soft)" }, letters)];
      return cell.runs.length ? svg("a", { href: cell.runs[0].at }, parts) : svg("g", {}, parts);
    }));
  return el("div", {}, node, el("div", { class: "tools" }, svgButton(`sweep-${all.measures[k].name}${group.column.length ? `-${group.column.join("-")}` : ""}`, () => node)));
}

/** Every cell as a row, to sort and to filter. */
function every(all) {
  const { axes, measures, groups } = all;
  const tested = measures.map((_, k) => groups.some((group) => group.cells.some((cell) => all.letters(k, group.column, cell.labels[0]))));
  const columns = [...axes.map((axis) => ({ title: axis.name, text: true })), { title: "runs", text: true },
    ...measures.flatMap((one, k) => [{ title: `${one.name}${one.unit ? `, ${one.unit}` : ""}` }, ...(tested[k] ? [{ title: "group", text: true, optional: true }] : [])])];
  return sortedTable(columns, groups.flatMap((group) => group.cells.map((cell) => {
    const letters = (k) => all.letters(k, group.column, cell.labels[0]);
    return {
      cells: [...cell.labels.slice(0, -1), marked(cell), opened(cell), ...measures.flatMap((_, k) => [number(cell, k), ...(tested[k] ? [letters(k)] : [])])],
      values: [...cell.labels, cell.count, ...measures.flatMap((_, k) => [cell.means[k], ...(tested[k] ? [letters(k)] : [])])],
    };
  })));
}

function rows({ axes, measures, groups, letters }) {
  const names = measures.flatMap((one) => [`${one.name}${one.unit ? `_${one.unit}` : ""}`, `${one.name}_half_ci95${one.unit ? `_${one.unit}` : ""}`, `${one.name}_group`]);
  return [[...axes.map((axis) => axis.name), "runs", ...names], ...groups.flatMap((group) => group.cells.map((cell) =>
    [...cell.labels, cell.count, ...measures.flatMap((_, k) => [cell.means[k], cell.halves[k], letters(k, group.column, cell.labels[0])])]))];
}

/** The first measure against the one that is most at odds with it, within each choice on the other axes: others are other questions. */
function fronts(all) {
  const { measures, groups } = all;
  const points = ({ cells }, k) => cells.map((cell) => ({ label: cell.labels[0], told: `${cell.labels[0]}: ${number(cell, 0)}${unit(measures[0])}, ${number(cell, k)}${unit(measures[k])}`, x: cell.means[0], y: cell.means[k] })).filter((one) => one.x !== null && one.y !== null);
  const more = (k) => [measures[0], measures[k]].map((one) => one.more_is_better);
  const odds = measures.map((_, k) => (k ? groups.reduce((sum, group) => sum + unbeaten(points(group, k), more(k)).length, 0) : 0));
  const k = odds.indexOf(Math.max(...odds));
  const drawn = groups.slice(0, MOST_SAID).map((group) => {
    const node = frontPlot({ title: group.column.join(", "), points: points(group, k), names: [named(measures[0]), named(measures[k])], more: more(k), wide: 420 });
    return node && el("div", {}, node, el("div", { class: "tools" }, svgButton(["front", ...group.column].join("-"), () => node)));
  }).filter(Boolean);
  return drawn.length > 0 && el("div", {}, el("h3", {}, `${measures[0].name} against ${measures[k].name}: what no other beats in both is filled`), el("div", { class: "panels" }, drawn));
}

const named = (measure) => `${measure.text}${measure.unit ? `, ${measure.unit}` : ""}`;
