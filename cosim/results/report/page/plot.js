/**
 * Series over an axis, by uPlot, in the page's colours; and the same picture as SVG.
 * @module plot
 */

import uPlot from "report/uplot";
import { colour, el, onTheme, printed, svg } from "report/dom.js";
import { axis, marks, time, unitOf } from "report/format.js";
import { csvButton, svgButton } from "report/save.js";

const BAND = "memory";
let bands = [];

/** Events that every axis of simulated time shows from now on: `[{name, what, spans}]`. */
export function showEvents(events) {
  bands = events.flatMap((event) => event.spans.map(([from, to], k) => ({ from, to, name: k ? "" : `${event.name} ${event.what}` })));
}

/** The bands of a plot: of those over simulated time. */
const bandsOf = (about) => (about.formatX === time && !about.logX ? bands : []);

/** From where to where a plot goes along its axis, and up. */
function reach(about) {
  let [from, to] = [about.x[0] ?? 0, about.x[about.x.length - 1] ?? 1];
  if (about.logX) [from, to] = to > from ? [Math.max(from, 1), to] : [0.8 * Math.max(from, 1), 1.25 * Math.max(to, 1)];
  const most = about.series.reduce((peak, one) => one.values.reduce((a, b) => Math.max(a, b ?? 0), peak), 0);
  const above = bandsOf(about).length ? 1.15 : 1.05; // names of events stand there
  return { x: [from, to], y: [0, about.top ? 1.02 * about.top : above * most || 1] };
}

/** Round marks along an axis, so many, and what they say: times of one axis have one unit. */
function ticksOf([from, to], many, format, log = false) {
  const at = log ? decades(from, to) : marks(from, to, many);
  return { at, words: format === time && !(log && to > 8 * from) ? axis(at) : at.map(format) };
}

/**
 * A plot that follows the width of the page.
 * @param {{x: ArrayLike<number>, series: Array<{label: string, values: ArrayLike<number>, steps?: boolean}>,
 *   formatX: (x: number) => string, formatY: (y: number) => string, logX?: boolean, top?: number,
 *   height?: number, nameX?: string, nameY?: string}} about
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

const SHADES = ["accent", "soft", "accent-soft", "ink", "memory"];
const shade = (k) => SHADES[k % SHADES.length];

function options(about, width) {
  const ends = reach(about);
  const line = (ticks, size) => ({
    stroke: colour("soft"), grid: { stroke: colour("rule"), width: 1 }, ticks: { stroke: colour("rule"), width: 1 }, size, font: "11px system-ui",
    splits: (_, k, from, to) => ticks(from, to).at, filter: (_, at) => at, values: (drawn, at, k) => ticks(...[k ? drawn.scales.y : drawn.scales.x].flatMap(({ min, max }) => [min, max])).words,
  });
  const across = (from, to) => ticksOf([from, to], width / 100, about.formatX, about.logX);
  const up = (from, to) => ticksOf([from, to], 6, about.formatY);
  return {
    width, height: about.height ?? 220, legend: { live: true, show: about.series.length > 0 },
    scales: {
      x: { time: false, distr: about.logX ? 3 : 1, range: (_, low, high) => (low === about.x[0] && high === about.x[about.x.length - 1] ? ends.x : [low, high]) },
      y: { range: () => ends.y },
    },
    hooks: { drawClear: [(drawn) => paintBands(drawn, bandsOf(about))] },
    axes: [{ ...line(across, 30), label: about.nameX ?? "time", labelSize: 18, labelGap: 0, labelFont: "11px system-ui" }, line(up, 74)],
    series: [
      { label: about.nameX ?? "time", value: (_, x) => (x === null ? "" : about.formatX(x)) },
      ...about.series.map((one, k) => ({
        label: one.label, stroke: colour(shade(k)), width: 1.5, points: { show: about.x.length < 3 },
        paths: one.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (_, y) => (y === null ? "" : about.formatY(y)),
      })),
    ],
  };
}

function paintBands(drawn, shown) {
  const { ctx, bbox } = drawn;
  ctx.save();
  ctx.font = `${10 * devicePixelRatio}px system-ui`;
  for (const { from, to, name } of shown) {
    const [a, b] = [from, to].map((at) => Math.min(bbox.left + bbox.width, Math.max(bbox.left, drawn.valToPos(at, "x", true))));
    if (b <= a) continue;
    ctx.fillStyle = colour(BAND);
    ctx.globalAlpha = 0.22;
    ctx.fillRect(a, bbox.top, b - a, bbox.height);
    ctx.globalAlpha = 1;
    ctx.fillStyle = colour("soft");
    if (b - a > ctx.measureText(name).width) ctx.fillText(name, a + 3 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
  }
  ctx.restore();
}

/** A plot with its title, and buttons that save it and its data. */
export function figure(title, name, about) {
  const tools = el("div", { class: "tools" }, csvButton(name, () => plotRows(about)), svgButton(name, () => plotted(title, about)));
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, title), tools), printed(plot(about), () => plotted(title, about)));
}

/** The same as a figure that can be saved: title, axes, events, lines as on the screen, and a legend. */
export function plotted(title, about) {
  const [wide, high, left, right, above, below] = [720, 320, 84, 14, 34, 58];
  const along = (x) => (about.logX ? Math.log10(Math.max(x, 1)) : x);
  const ends = reach(about);
  const [low, far] = ends.x.map(along);
  const top = ends.y[1];
  const x = (at) => left + ((along(at) - low) / (far - low || 1)) * (wide - left - right);
  const y = (at) => high - below - (at / top) * (high - below - above);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11, fill: "var(--soft)" };
  const { at: ticksX, words: wordsX } = ticksOf(ends.x, 6, about.formatX, about.logX);
  const { at: ticksY, words: wordsY } = ticksOf(ends.y, 6, about.formatY);
  const rule = { stroke: "var(--rule)", "stroke-width": 1 };
  let reached = left;
  const legend = about.series.map((one, k) => {
    const at = reached;
    reached += 30 + 6.2 * one.label.length;
    return [svg("rect", { x: at, y: high - 15, width: 14, height: 3, fill: `var(--${shade(k)})` }), svg("text", { ...words, x: at + 18, y: high - 10 }, one.label)];
  });
  return svg("svg", { viewBox: `0 0 ${Math.max(wide, reached)} ${high}`, width: Math.max(wide, reached), height: high },
    svg("rect", { width: Math.max(wide, reached), height: high, fill: "var(--paper)" }),
    svg("text", { ...words, x: left, y: 18, "font-size": 13, fill: "var(--ink)" }, title),
    bandsOf(about).map(({ from, to, name }) => {
      const [a, b] = [from, to].map((at) => Math.min(wide - right, Math.max(left, x(at))));
      return b > a && [svg("rect", { x: a, y: above, width: b - a, height: high - below - above, fill: `var(--${BAND})`, opacity: 0.22 }), svg("text", { ...words, x: a + 3, y: above + 11, "font-size": 10 }, name)];
    }),
    ticksX.map((at, k) => [svg("line", { ...rule, x1: x(at), x2: x(at), y1: above, y2: high - below }), svg("text", { ...words, x: x(at), y: high - below + 15, "text-anchor": "middle" }, wordsX[k])]),
    ticksY.map((at, k) => [svg("line", { ...rule, x1: left, x2: wide - right, y1: y(at), y2: y(at) }), svg("text", { ...words, x: left - 6, y: y(at) + 4, "text-anchor": "end" }, wordsY[k])]),
    about.series.map((one, k) => svg("path", { fill: "none", stroke: `var(--${shade(k)})`, "stroke-width": 1.5, "stroke-linejoin": "round", d: drawn(about.x, one, x, y) })),
    svg("text", { ...words, x: (left + wide - right) / 2, y: high - below + 32, "text-anchor": "middle" }, about.nameX ?? "time"), legend);
}

/** The way along a line: up to the next place first where it goes in steps, and a gap where nothing is known. */
function drawn(xs, one, x, y) {
  let [out, open] = ["", false];
  for (let k = 0; k < xs.length; k++) {
    if (one.values[k] === null || Number.isNaN(one.values[k])) open = false;
    else {
      const [at, up] = [x(xs[k]).toFixed(2), y(one.values[k]).toFixed(2)];
      out += !open ? `M${at} ${up}` : one.steps ? `H${at}V${up}` : `L${at} ${up}`;
      open = true;
    }
  }
  return out;
}

/** Round marks of a logarithmic axis: powers of ten, 2 and 5 between them where those are few; within a decade as of any axis. */
function decades(from, to) {
  if (to <= 8 * from) return marks(from, to, 5);
  const powers = Array.from({ length: Math.ceil(Math.log10(Math.max(to, 1))) + 1 }, (_, k) => 10 ** k);
  const many = to > 1000 * from;
  return powers.flatMap((one) => (many ? [one] : [one, 2 * one, 5 * one])).filter((one) => one >= from && one <= to);
}

/** Rows of a plot's data; columns' names have their unit at the end, and whole units are written whole. */
export function plotRows(about) {
  const [unitX, unitY] = [unitOf(about.formatX), unitOf(about.formatY)];
  const names = [`${about.nameX ?? "time"}${unitX}`, ...about.series.map((one) => `${one.label}${unitY}`)];
  const whole = (value, unit) => (unit && typeof value === "number" ? Math.round(value) : value);
  return [names, ...Array.from(about.x, (x, k) => [whole(x, unitX), ...about.series.map((one) => whole(one.values[k], unitY))])];
}
