/**
 * What a figure is painted with: a canvas, or an SVG that can be saved. Colours are named.
 * @module painter
 */

import { svg } from "report/dom.js";

const FONT = "system-ui, -apple-system, sans-serif";

/** Paint on a canvas. */
export function canvasPainter(context, colour) {
  const known = new Map();
  const shade = (name) => known.get(name) ?? known.set(name, colour(name)).get(name);
  return {
    rect(x, y, wide, high, name) {
      context.fillStyle = shade(name);
      context.fillRect(x, y, wide, high);
    },
    text(x, y, words, name, most = Infinity, size = 10.5) {
      context.font = `${size}px ${FONT}`;
      context.fillStyle = shade(name);
      context.fillText(fitted(words, most, (one) => context.measureText(one).width), x, y);
    },
  };
}

/** Paint into an SVG; `node` is the element. */
export function svgPainter(wide, high) {
  const node = svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high },
    svg("rect", { width: wide, height: high, fill: "var(--paper)" }));
  return {
    node,
    rect(x, y, width, height, name) {
      node.append(svg("rect", { x: x.toFixed(2), y: y.toFixed(2), width: width.toFixed(2), height: height.toFixed(2), fill: `var(--${name})` }));
    },
    text(x, y, words, name, most = Infinity, size = 10.5) {
      const about = { x: x.toFixed(1), y: y.toFixed(1), fill: `var(--${name})`, "font-size": size, "font-family": FONT };
      node.append(svg("text", about, fitted(words, most, (one) => one.length * size * 0.55)));
    },
  };
}

/** As much of a text as there is room for; nothing where that is hardly anything. */
function fitted(words, most, measure) {
  if (measure(words) <= most) return words;
  let [low, high] = [0, words.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(`${words.slice(0, middle)}…`) <= most) low = middle;
    else high = middle - 1;
  }
  return low > 2 ? `${words.slice(0, low)}…` : "";
}
