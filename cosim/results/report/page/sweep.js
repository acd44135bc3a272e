/**
 * A sweep: every cell of it, and what its measures say of one another.
 * @module sweep
 */

import { el, section, svg, table } from "report/dom.js";
import { csvButton, svgButton } from "report/save.js";

/** @param {object} data */
export function sweep(data) {
  const { axes, measures, cells } = data.sweep;
  const columns = [...axes.map((axis) => ({ title: axis.name, text: true })), { title: "runs" }, ...measures.map((one) => ({ title: `${one.name}${one.unit ? `, ${one.unit}` : ""}` }))];
  const row = (cell) => ({ cells: [...cell.labels, cell.count, ...cell.means.map((mean, k) => number(mean, cell.halves[k]))] });
  const rows = () => [[...axes.map((axis) => axis.name), "runs", ...measures.map((one) => one.name)], ...cells.map((cell) => [...cell.labels, cell.count, ...cell.means])];
  return section("sweep", "Sweep", data.sweep.said, csvButton("sweep", rows),
    measures.map((measure, k) => heat(axes, cells, measure, k)), measures.length > 1 && front(measures, cells), el("h3", {}, "Every cell"), table(columns, cells.map(row)));
}

const number = (mean, half) => (mean === null ? "-" : `${Number(mean.toPrecision(5))}${half ? ` ± ${Number(half.toPrecision(2))}` : ""}`);

/** A heat map: the first axis down, all others across; the darker the more. */
function heat(axes, cells, measure, k) {
  const [down, across] = [axes[0].labels, [...new Set(cells.map((cell) => cell.labels.slice(1).join(", ")))]];
  const values = cells.map((cell) => cell.means[k]).filter((one) => one !== null);
  if (!values.length) return null;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [left, wide, tall] = [150, Math.min(110, 900 / across.length), 30];
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11, fill: "var(--ink)" };
  const node = svg("svg", { viewBox: `0 0 ${left + wide * across.length + 4} ${tall * down.length + 28}`, role: "img", style: `max-width:${left + wide * across.length + 4}px;width:100%` },
    across.map((name, x) => svg("text", { ...words, fill: "var(--soft)", x: left + wide * (x + 0.5), y: 14, "text-anchor": "middle" }, name)),
    down.map((name, y) => svg("text", { ...words, x: left - 8, y: 24 + tall * (y + 0.6), "text-anchor": "end" }, name)),
    cells.map((cell) => {
      const [x, y, mean] = [across.indexOf(cell.labels.slice(1).join(", ")), down.indexOf(cell.labels[0]), cell.means[k]];
      const share = mean === null ? 0 : high > low ? (mean - low) / (high - low) : 0.5;
      return [svg("rect", { x: left + wide * x + 1, y: 23 + tall * y, width: wide - 2, height: tall - 2, rx: 3, fill: "var(--accent)", "fill-opacity": (0.08 + 0.52 * share).toFixed(3) }),
        svg("text", { ...words, x: left + wide * (x + 0.5), y: 24 + tall * (y + 0.6), "text-anchor": "middle" }, number(mean, 0))];
    }));
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, `${measure.text}${measure.unit ? `, ${measure.unit}` : ""}`), svgButton(`sweep-${measure.name}`, () => node)), node);
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
    points.map((one) => [svg("circle", { cx: x(one.x), cy: y(one.y), r: 4.5, fill: beaten(one) ? "none" : "var(--accent)", stroke: "var(--accent)" }),
      !beaten(one) && svg("text", { ...words, fill: "var(--ink)", x: x(one.x) + 8, y: y(one.y) + 4 }, one.label)]),
    ...[[x(x0), x0], [x(x1), x1]].map(([at, value]) => svg("text", { ...words, fill: "var(--soft)", x: at, y: high - 26, "text-anchor": "middle" }, number(value, 0))),
    ...[[y(y0), y0], [y(y1), y1]].map(([at, value]) => svg("text", { ...words, fill: "var(--soft)", x: left, y: at + 4, "text-anchor": "end" }, number(value, 0))),
    svg("text", { ...words, fill: "var(--soft)", x: left, y: high - 8 }, `${measures[0].text} →`),
    svg("text", { ...words, fill: "var(--soft)", x: 12, y: high - 30, transform: `rotate(-90 12 ${high - 30})` }, `${measures[1].text} →`));
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, "What no other beats in both (filled)"), svgButton("front", () => node)), node);
}
