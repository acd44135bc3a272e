/**
 * Two measures against each other: what no other beats in both is filled, and joined by a line.
 * @module front
 */

import { narrow, svg } from "report/dom.js";
import { marks } from "report/format.js";

const HIGH = 290;
const LINE = 13; // between labels that would lie on one another

/** The points that no other beats in both. */
export function unbeaten(points, more) {
  const loss = (one) => [one.x, one.y].map((value, k) => (more[k] ? -value : value));
  const beats = (other, one) => loss(other).every((value, k) => value <= loss(one)[k]) && loss(other).some((value, k) => value < loss(one)[k]);
  return points.filter((one) => !points.some((other) => beats(other, one)));
}

/**
 * The picture, null where all have one of both alike.
 * @param {{title?: string, points: Array<{label: string, told: string, x: number, y: number}>, names: string[], more: boolean[], wide: number}} about
 *   `names` with units, and whether more is better, along x and up
 */
export function frontPlot({ title = "", points, names, more, wide: broad }) {
  const [[x0, x1], [y0, y1]] = [points.map((one) => one.x), points.map((one) => one.y)].map((all) => [Math.min(...all), Math.max(...all)]);
  if (points.length < 2 || x0 === x1 || y0 === y1) return null;
  const wide = narrow() ? 430 : broad;
  const [left, right, above, below] = [58, 16, title ? 46 : 28, 40];
  const x = (at) => left + 14 + ((at - x0) / (x1 - x0)) * (wide - left - right - 28);
  const y = (at) => above + 14 + (1 - (at - y0) / (y1 - y0)) * (HIGH - above - below - 28);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11.5, fill: "var(--soft)" };
  const rule = { stroke: "var(--rule)", "stroke-width": 1 };
  const first = unbeaten(points, more).sort((one, other) => one.x - other.x);
  const order = [...points].sort((one, other) => first.includes(one) - first.includes(other)); // filled ones above others
  const labels = placed((points.length > 12 ? first : points).map((one) => ({ text: one.label, x: x(one.x), y: y(one.y) + 4, strong: first.includes(one) })), wide, HIGH - below);
  return svg("svg", { viewBox: `0 0 ${wide} ${HIGH}`, width: wide, height: HIGH, role: "img", "aria-label": `${names[1]} against ${names[0]}` },
    svg("rect", { width: wide, height: HIGH, fill: "var(--paper)" }),
    title && svg("text", { ...words, x: 0, y: 13, fill: "var(--ink)", "font-weight": 600 }, title),
    svg("text", { ...words, x: 0, y: above - 12 }, `↑ ${names[1]}`), svg("text", { ...words, x: wide, y: HIGH - 6, "text-anchor": "end" }, `${names[0]} →`),
    marks(x0, x1, 4).map((at) => [svg("line", { ...rule, x1: x(at), x2: x(at), y1: above, y2: HIGH - below }), svg("text", { ...words, x: x(at), y: HIGH - below + 15, "text-anchor": "middle" }, brief(at))]),
    marks(y0, y1, 4).map((at) => [svg("line", { ...rule, x1: left, x2: wide - right, y1: y(at), y2: y(at) }), svg("text", { ...words, x: left - 6, y: y(at) + 4, "text-anchor": "end" }, brief(at))]),
    svg("polyline", { points: first.map((one) => `${x(one.x)},${y(one.y)}`).join(" "), fill: "none", stroke: "var(--accent-soft)", "stroke-width": 1.5 }),
    order.map((one) => svg("circle", { cx: x(one.x), cy: y(one.y), r: 4.5, fill: first.includes(one) ? "var(--accent)" : "var(--paper)", stroke: "var(--accent)", "stroke-width": 1.5 }, svg("title", {}, one.told))),
    labels.map((one) => svg("text", { ...words, stroke: "var(--paper)", "stroke-width": 3, "paint-order": "stroke", x: one.x, y: one.y, "text-anchor": one.anchor, fill: `var(--${one.strong ? "ink" : "soft"})` }, one.text)));
}

const brief = (value) => (Math.abs(value) >= 1e6 ? `${Number((value / 1e6).toPrecision(6))} M` : String(Number(value.toPrecision(6))));

/** Labels beside their points, on the side that has room, moved down past those that stand there; the filled points' first. */
function placed(labels, wide, low) {
  const done = [];
  for (const one of [...labels].sort((a, b) => b.strong - a.strong || a.y - b.y)) {
    const long = 6.4 * one.text.length;
    const turned = one.x + 9 + long > wide;
    const from = turned ? one.x - 9 - long : one.x + 9;
    const free = (y) => !done.some((other) => Math.abs(other.y - y) < LINE && other.from < from + long && from < other.from + other.long);
    const y = (one.strong ? [0, 1, -1, 2] : [0, 1, -1]).map((k) => one.y + k * LINE).find((at) => at < low && free(at));
    if (y === undefined) continue; // its point has its name where the pointer is
    done.push({ text: one.text, strong: one.strong, anchor: turned ? "end" : "start", x: turned ? one.x - 9 : from, from, long, y });
  }
  return done;
}
