/**
 * Series over an axis, by uPlot, in the page's colours.
 * @module plot
 */

import uPlot from "report/uplot";
import { colour, el, onTheme, svg } from "report/dom.js";
import { csvButton, svgButton } from "report/save.js";

/**
 * A plot that follows the width of the page.
 * @param {{x: ArrayLike<number>, series: Array<{label: string, values: ArrayLike<number>, steps?: boolean}>,
 *   formatX: (x: number) => string, formatY: (y: number) => string, logX?: boolean, top?: number,
 *   height?: number}} about
 * @returns {HTMLElement}
 */
export function plot(about) {
  const place = el("div", {});
  let made = null;
  const draw = () => {
    made?.destroy();
    if (place.clientWidth > 0) made = new uPlot(options(about, place.clientWidth), [about.x, ...about.series.map((s) => s.values)], place);
  };
  new ResizeObserver(() => (made ? made.setSize({ width: place.clientWidth, height: made.height }) : draw())).observe(place);
  onTheme(draw);
  return place;
}

const shade = (k) => [colour("accent"), colour("soft"), colour("accent-soft"), colour("ink"), colour("memory")][k % 5];

function options(about, width) {
  const axis = (format, size) => ({
    stroke: colour("soft"), grid: { stroke: colour("rule"), width: 1 }, ticks: { stroke: colour("rule"), width: 1 },
    values: (_, marks) => marks.map((mark) => (mark === null ? "" : format(mark))), size, font: "11px system-ui",
  });
  return {
    width, height: about.height ?? 220, legend: { live: true, show: about.series.length > 0 },
    scales: {
      x: { time: false, distr: about.logX ? 3 : 1 },
      y: { range: (_, low, high) => [Math.min(0, low), about.top ?? (high > 0 ? high * 1.05 : 1)] },
    },
    axes: [{ ...axis(about.formatX, 30), space: 90 }, axis(about.formatY, 74)],
    series: [
      { label: about.nameX ?? "time", value: (_, x) => (x === null ? "" : about.formatX(x)) },
      ...about.series.map((one, k) => ({
        label: one.label, stroke: shade(k), width: 1.5, points: { show: about.x.length < 3 },
        paths: one.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (_, y) => (y === null ? "" : about.formatY(y)),
      })),
    ],
  };
}

/** A plot with its title, and buttons that save it and its data. */
export function figure(title, name, about) {
  const tools = el("div", { class: "tools" }, csvButton(name, () => plotRows(about)), svgButton(name, () => plotted(about)));
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, title), tools), plot(about));
}

/** The same as a figure that can be saved. */
export function plotted(about) {
  const [wide, high, left, below] = [720, 300, 80, 40];
  const xs = [...about.x].map((x) => (about.logX ? Math.log10(Math.max(x, 1)) : x));
  const [low, far] = [Math.min(...xs), Math.max(...xs)];
  const top = about.top ?? Math.max(...about.series.flatMap((one) => [...one.values]), 1e-9);
  const at = (x, y) => `${left + ((x - low) / (far - low || 1)) * (wide - left - 10)},${(high - below) * (1 - y / top) + 6}`;
  const lines = about.series.map((one, k) =>
    svg("polyline", { fill: "none", stroke: shade(k), "stroke-width": 1.5, points: [...one.values].map((y, i) => (y === null ? "" : at(xs[i], y))).join(" ") }));
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11, fill: "var(--soft)" };
  const names = about.series.map((one, k) => svg("text", { ...words, fill: shade(k), x: left + 8, y: 18 + 14 * k }, one.label));
  return svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high },
    svg("rect", { width: wide, height: high, fill: "var(--paper)" }), lines, names,
    svg("text", { ...words, x: left, y: high - 14 }, about.formatX(about.x[0] ?? 0)),
    svg("text", { ...words, x: wide - 10, y: high - 14, "text-anchor": "end" }, about.formatX(about.x[about.x.length - 1] ?? 0)),
    svg("text", { ...words, x: left - 8, y: 14, "text-anchor": "end" }, about.formatY(top)),
    svg("text", { ...words, x: left - 8, y: high - below + 6, "text-anchor": "end" }, about.formatY(0)));
}

/** Rows of a plot's data. */
export function plotRows(about) {
  const names = [about.nameX ?? "time", ...about.series.map((one) => one.label)];
  return [names, ...Array.from(about.x, (x, k) => [x, ...about.series.map((one) => one.values[k])])];
}
