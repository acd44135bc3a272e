/**
 * A sweep: every cell of it, and what its measures say of one another.
 * @module sweep
 */

import { doubtful, el, section, svg, table } from "report/dom.js";
import { csvButton, svgButton } from "report/save.js";

/** @param {object} data */
export function sweep(data) {
  const { axes, measures, cells } = data.sweep;
  const columns = [...axes.map((axis) => ({ title: axis.name, text: true })), { title: "runs", text: true }, ...measures.map((one) => ({ title: `${one.name}${one.unit ? `, ${one.unit}` : ""}` }))];
  const row = (cell) => ({ cells: [...cell.labels.slice(0, -1), marked(cell), opened(cell), ...cell.means.map((mean, k) => number(mean, cell.halves[k]))] });
  const doubts = cells.filter((cell) => cell.doubtful);
  const rows = () => [[...axes.map((axis) => axis.name), "runs", ...measures.map((one) => one.name)], ...cells.map((cell) => [...cell.labels, cell.count, ...cell.means])];
  return section("sweep", "Sweep", data.sweep.said, csvButton("sweep", rows),
    doubts.length > 0 && doubtful(doubts.map((cell) => [cell.labels.join(", "), cell.doubtful])),
    el("div", { class: "two" }, measures.map((measure, k) => heat(axes, cells, measure, k))), measures.length > 1 && front(measures, cells), axes.length + measures.length > 2 && parallel(axes, measures, cells), el("h3", {}, "Every cell"), table(columns, cells.map(row)));
}

/** The last of its labels, with a mark where the cell is doubtful. */
const marked = (cell) => `${cell.labels.at(-1)}${cell.doubtful ? " ?" : ""}`;

/** How many runs a cell has, and those that were kept. */
function opened(cell) {
  if (!cell.runs.length) return String(cell.count);
  return el("span", {}, `${cell.count}: `, cell.runs.map((run, k) => [k > 0 && ", ", el("a", { href: run.at }, `seed ${run.seed}`)]));
}

/** A mean, and half of its interval where that shows in the digits written. */
const number = (mean, half) => (mean === null ? "-" : `${Number(mean.toPrecision(5))}${half > 1e-5 * Math.abs(mean) ? ` ± ${Number(half.toPrecision(2))}` : ""}`);

/** A heat map: the first axis down, all others across; the darker the more. */
function heat(axes, cells, measure, k) {
  const [down, across] = [axes[0].labels, [...new Set(cells.map((cell) => cell.labels.slice(1).join(", ")))]];
  const values = cells.map((cell) => cell.means[k]).filter((one) => one !== null);
  if (!values.length) return null;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [left, wide, tall] = [220, Math.min(110, 900 / across.length), 30];
  const head = [axes[0].name, axes.length > 1 && `${axes.slice(1).map((axis) => axis.name).join(", ")} →`].filter(Boolean).join(" ↓   ");
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11, fill: "var(--ink)" };
  const node = svg("svg", { viewBox: `0 0 ${left + wide * across.length + 4} ${tall * down.length + 28}`, role: "img", style: `max-width:${left + wide * across.length + 4}px;width:100%` },
    svg("text", { ...words, fill: "var(--soft)", x: left - 8, y: 14, "text-anchor": "end" }, head),
    across.map((name, x) => svg("text", { ...words, fill: "var(--soft)", x: left + wide * (x + 0.5), y: 14, "text-anchor": "middle" }, name)),
    down.map((name, y) => svg("text", { ...words, x: left - 8, y: 24 + tall * (y + 0.6), "text-anchor": "end" }, name)),
    cells.map((cell) => {
      const [x, y, mean] = [across.indexOf(cell.labels.slice(1).join(", ")), down.indexOf(cell.labels[0]), cell.means[k]];
      const share = mean === null ? 0 : high > low ? (mean - low) / (high - low) : 0.5;
      const drawn = [svg("rect", { x: left + wide * x + 1, y: 23 + tall * y, width: wide - 2, height: tall - 2, rx: 3, fill: "var(--accent)", "fill-opacity": (0.08 + 0.52 * share).toFixed(3) }),
        svg("text", { ...words, x: left + wide * (x + 0.5), y: 24 + tall * (y + 0.6), "text-anchor": "middle" }, number(mean, 0))];
      return cell.runs.length ? svg("a", { href: cell.runs[0].at }, svg("title", {}, `Open ${cell.labels.join(", ")}, seed ${cell.runs[0].seed}`), drawn) : drawn;
    }));
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, named(measure)), svgButton(`sweep-${measure.name}`, () => node)), node);
}

/** Parallel coordinates: a line for each cell, through its choice on each axis and its value of each measure. */
function parallel(axes, measures, cells) {
  const scales = [...axes.map((axis, k) => choices(axis, k)), ...measures.map((measure, k) => values(measure, k, cells))];
  const [wide, high, top] = [1060, 300, 40];
  const side = Math.max(90, 16 + 6 * Math.max(...axes[0].labels.map((label) => label.length)));
  const x = (k) => side + (k / (scales.length - 1)) * (wide - side - 90);
  const y = (share) => top + (1 - share) * (high - top - 20);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11, stroke: "var(--paper)", "stroke-width": 4, "paint-order": "stroke" };
  const first = scales[axes.length];
  const lines = cells.filter((cell) => cell.means.every((mean) => mean !== null)).map((cell) => {
    const better = measures[0].more_is_better ? first.share(cell) : 1 - first.share(cell);
    const points = scales.map((scale, k) => `${x(k)},${y(scale.share(cell))}`).join(" ");
    const said = [...cell.labels, ...measures.map((one, k) => `${one.name} ${number(cell.means[k], cell.halves[k])}${one.unit ? ` ${one.unit}` : ""}`)].join(", ");
    return svg("polyline", { class: "line", points, fill: "none", stroke: "var(--accent)", "stroke-width": 1 + 1.6 * better, "stroke-opacity": (0.25 + 0.75 * better).toFixed(3), tabindex: cells.length <= 200 ? 0 : null }, svg("title", {}, said));
  });
  const rules = scales.map((scale, k) => [
    svg("line", { x1: x(k), x2: x(k), y1: top - 4, y2: high - 16, stroke: "var(--rule)", "stroke-width": 1.5 }),
    svg("text", { ...words, fill: "var(--ink)", x: x(k), y: 16, "text-anchor": "middle", "font-weight": 600 }, scale.name),
    scale.marks.map(([share, text]) => svg("text", { ...words, fill: "var(--soft)", x: x(k) + (k === scales.length - 1 ? 8 : -8), y: y(share) + (k > 0 && k < scales.length - 1 ? -5 : 4), "text-anchor": k === scales.length - 1 ? "start" : "end" }, text)),
  ]);
  const node = svg("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": "Parallel coordinates", style: "width:100%" }, lines, rules);
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, `Every cell as a line, the stronger the better its ${measures[0].name}`), svgButton("parallel", () => node)), el("div", { class: "map plain" }, node));
}

function choices(axis, k) {
  const at = (label) => (axis.labels.length > 1 ? axis.labels.indexOf(label) / (axis.labels.length - 1) : 0.5);
  return { name: axis.name, share: (cell) => at(cell.labels[k]), marks: axis.labels.map((label) => [at(label), label]) };
}

function values(measure, k, cells) {
  const all = cells.map((cell) => cell.means[k]).filter((one) => one !== null);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const share = (cell) => (high > low ? (cell.means[k] - low) / (high - low) : 0.5);
  return { name: `${measure.name}${measure.unit ? `, ${measure.unit}` : ""}`, share, marks: high > low ? [[0, number(low, 0)], [1, number(high, 0)]] : [[0.5, number(low, 0)]] };
}

/** The first two measures against each other; what no other cell beats in both is filled. */
function front(measures, cells) {
  const points = cells.map((cell) => ({ label: cell.labels.join(", "), x: cell.means[0], y: cell.means[1] })).filter((one) => one.x !== null && one.y !== null);
  if (points.length < 2) return null;
  const better = (a, b, k) => (measures[k].more_is_better ? a >= b : a <= b);
  const beaten = (one) => points.some((other) => other !== one && better(other.x, one.x, 0) && better(other.y, one.y, 1) && (other.x !== one.x || other.y !== one.y));
  if (new Set(points.map((one) => one.x)).size < 2 || new Set(points.map((one) => one.y)).size < 2) return null;
  const [wide, high, left, below] = [640, 320, 70, 40];
  const range = (values) => [Math.min(...values), Math.max(...values)];
  const [[x0, x1], [y0, y1]] = [range(points.map((one) => one.x)), range(points.map((one) => one.y))];
  const x = (one) => left + 14 + ((one - x0) / (x1 - x0 || 1)) * (wide - left - 160);
  const y = (one) => 16 + (1 - (one - y0) / (y1 - y0 || 1)) * (high - below - 40);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11 };
  const node = svg("svg", { viewBox: `0 0 ${wide} ${high}`, style: `max-width:${wide}px;width:100%`, role: "img" },
    points.map((one) => svg("circle", { cx: x(one.x), cy: y(one.y), r: 4.5, fill: beaten(one) ? "none" : "var(--accent)", stroke: "var(--accent)" }, svg("title", {}, one.label))),
    apart(points.filter((one) => !beaten(one)).map((one) => ({ x: x(one.x) + 9, y: y(one.y) + 4, text: one.label }))).map((one) => svg("text", { ...words, fill: "var(--ink)", x: one.x, y: one.y }, one.text)),
    ...[[x(x0), x0], [x(x1), x1]].map(([at, value]) => svg("text", { ...words, fill: "var(--soft)", x: at, y: high - 26, "text-anchor": "middle" }, number(value, 0))),
    ...[[y(y0), y0], [y(y1), y1]].map(([at, value]) => svg("text", { ...words, fill: "var(--soft)", x: left, y: at + 4, "text-anchor": "end" }, number(value, 0))),
    svg("text", { ...words, fill: "var(--soft)", x: left, y: high - 8 }, `${named(measures[0])} →`),
    svg("text", { ...words, fill: "var(--soft)", x: 12, y: high - 30, transform: `rotate(-90 12 ${high - 30})` }, `${named(measures[1])} →`));
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, "What no other beats in both (filled)"), svgButton("front", () => node)), node);
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
