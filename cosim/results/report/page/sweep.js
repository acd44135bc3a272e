/**
 * A sweep: every cell of it, and what its measures say of one another.
 * @module sweep
 */

import { doubtful, el, section, sortedTable, svg } from "report/dom.js";
import { csvButton, svgButton } from "report/save.js";

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
    best(all), measures.map((_, k) => panels(all, k)), measures.length > 1 && fronts(all), el("h3", {}, "Every cell"), every(all));
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
  const lines = all.groups.slice(0, 6).map((group) => {
    const order = ranked(all, group, 0);
    if (order.length < 2) return null;
    const mine = all.letters(0, group.column, order[0].labels[0]);
    const alike = order.slice(1).filter((cell) => [...all.letters(0, group.column, cell.labels[0])].some((one) => mine.includes(one))).map((cell) => cell.labels[0]);
    const sure = !mine ? "; with one seed each, nothing says how sure that is" : alike.length ? `, not told apart from ${alike.slice(0, 4).join(", ")}${alike.length > 4 ? ` and ${alike.length - 4} more` : ""}` : ", better than every other (95 %)";
    return `${group.column.length ? `${group.column.join(", ")}: ` : ""}${order[0].labels[0]}${order[0].doubtful ? " (doubtful)" : ""} has the best ${all.measures[0].name}, ${number(order[0], 0)}${unit(all.measures[0])}${sure}.`;
  }).filter(Boolean);
  return lines.map((line, k) => el("p", { class: k ? "" : "said" }, line));
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
  return cell.counts[k] < FEW ? `${round(mean)} (${cell.counts[k]} seeds: too few for an interval)` : `${round(mean)} ± ${round(half, 2)}`;
}

/** A panel for each choice on the other axes, with a scale of its own: the first axis' choices, best first, with intervals. */
function panels(all, k) {
  const { measures, groups } = all;
  const drawn = groups.map((group) => panel(all, group, k)).filter(Boolean);
  if (!drawn.length) return null;
  const seeds = groups.some((group) => group.cells.some((cell) => all.letters(k, group.column, cell.labels[0])));
  return el("div", {}, el("h3", {}, named(measures[k])),
    seeds && el("p", { class: "note" }, "Best first. Choices that share a letter can't be told apart, seed by seed (95 %, paired); lines are intervals of each by itself."),
    el("div", { class: "panels" }, drawn));
}

function panel(all, group, k) {
  const order = ranked(all, group, k);
  if (!order.length) return null;
  const ends = order.flatMap((cell) => (cell.halves[k] && cell.counts[k] >= FEW ? [cell.means[k] - cell.halves[k], cell.means[k] + cell.halves[k]] : [cell.means[k]]));
  const [low, high] = [Math.min(0, ...ends), Math.max(...ends, 0)];
  const [wide, left, right, tall] = [420, 130, 118, 19];
  const x = (value) => left + ((value - low) / (high - low || 1)) * (wide - left - right);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11.5, fill: "var(--ink)" };
  const short = (text) => (text.length > 20 ? `${text.slice(0, 19)}…` : text);
  const node = svg("svg", { viewBox: `0 0 ${wide} ${tall * order.length + 26}`, width: wide, height: tall * order.length + 26, role: "img", "aria-label": `${named(all.measures[k])} ${group.column.join(", ")}` },
    svg("text", { ...words, "font-weight": 600, x: 0, y: 13 }, group.column.join(", ")),
    svg("line", { x1: x(0), x2: x(0), y1: 20, y2: tall * order.length + 22, stroke: "var(--rule)" }),
    order.map((cell, row) => {
      const [y, mean, half] = [22 + tall * (row + 0.5), cell.means[k], cell.halves[k]];
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

/** The first two measures against each other, within each choice on the other axes: others are other questions. */
function fronts({ measures, groups }) {
  const drawn = groups.slice(0, 6).map((group) => front(measures, group)).filter(Boolean);
  return drawn.length > 0 && el("div", {}, el("h3", {}, "What no other beats in both (filled)"), el("div", { class: "panels" }, drawn));
}

function front(measures, { column, cells }) {
  const points = cells.map((cell) => ({ label: cell.labels[0], x: cell.means[0], y: cell.means[1] })).filter((one) => one.x !== null && one.y !== null);
  if (points.length < 2) return null;
  const better = (a, b, k) => (measures[k].more_is_better ? a >= b : a <= b);
  const beaten = (one) => points.some((other) => other !== one && better(other.x, one.x, 0) && better(other.y, one.y, 1) && (other.x !== one.x || other.y !== one.y));
  if (new Set(points.map((one) => one.x)).size < 2 || new Set(points.map((one) => one.y)).size < 2) return null;
  const [wide, high, left, below] = [420, 260, 60, 40];
  const range = (values) => [Math.min(...values), Math.max(...values)];
  const [[x0, x1], [y0, y1]] = [range(points.map((one) => one.x)), range(points.map((one) => one.y))];
  const x = (one) => left + 14 + ((one - x0) / (x1 - x0 || 1)) * (wide - left - 110);
  const y = (one) => 16 + (1 - (one - y0) / (y1 - y0 || 1)) * (high - below - 40);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11 };
  const node = svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img" },
    points.map((one) => svg("circle", { cx: x(one.x), cy: y(one.y), r: 4.5, fill: beaten(one) ? "none" : "var(--accent)", stroke: "var(--accent)" }, svg("title", {}, one.label))),
    apart(points.filter((one) => !beaten(one)).map((one) => ({ x: x(one.x) + 9, y: y(one.y) + 4, text: one.label }))).map((one) => svg("text", { ...words, fill: "var(--ink)", x: one.x, y: one.y }, one.text)),
    ...[[x(x0), x0], [x(x1), x1]].map(([at, value]) => svg("text", { ...words, fill: "var(--soft)", x: at, y: high - 26, "text-anchor": "middle" }, round(value, 4))),
    ...[[y(y0), y0], [y(y1), y1]].map(([at, value]) => svg("text", { ...words, fill: "var(--soft)", x: left, y: at + 4, "text-anchor": "end" }, round(value, 4))),
    svg("text", { ...words, fill: "var(--soft)", x: left, y: high - 8 }, `${named(measures[0])} →`),
    svg("text", { ...words, fill: "var(--soft)", x: 12, y: high - 30, transform: `rotate(-90 12 ${high - 30})` }, `${named(measures[1])} →`));
  return el("div", {}, el("p", { class: "note" }, column.join(", ")), node, el("div", { class: "tools" }, svgButton(`front-${column.join("-")}`, () => node)));
}

const named = (measure) => `${measure.text}${measure.unit ? `, ${measure.unit}` : ""}`;

/** Labels of points that lie close: one above the other; of many at one place the first, and how many more. */
function apart(labels) {
  const near = [];
  for (const one of [...labels].sort((a, b) => a.y - b.y)) {
    const group = near.find(([first]) => Math.abs(first.x - one.x) < 60 && Math.abs(first.y - one.y) < 30);
    if (group) group.push(one);
    else near.push([one]);
  }
  return near.map(([first, ...others]) => ({ ...first, text: others.length > 0 ? `${first.text}, ${others.length > 1 ? `and ${others.length} more` : others[0].text}` : first.text }));
}
