/**
 * The whole run as a strip: how many ranks compute, and how many only communicate. What the timeline shows of it is framed.
 * @module minimap
 */

import { colour, el, onTheme } from "report/dom.js";
import { unions } from "report/timeline_rows.js";

const PLACES = 600;
const HIGH = 34;

export class Minimap {
  /** @param {object} run @param {Array} computing as `computingOf` has it @param {(middle: number) => void} move a place was chosen */
  constructor(run, computing, move) {
    this.end = Math.max(run.summary.end_ps, 1);
    this.computes = shares(computing, this.end);
    const sends = unions(run, (shade) => !["compute", "memory", "host", "remote"].includes(shade));
    this.busy = shares(merged(computing, sends), this.end);
    this.canvas = el("canvas", { class: "minimap", role: "img", "aria-label": "The whole run: ranks that compute, and that wait for communication",
      onpointerdown: (event) => ((this.held = true), this.canvas.setPointerCapture(event.pointerId), move(this.at(event))),
      onpointermove: (event) => this.held && move(this.at(event)), onpointerup: () => (this.held = false) });
    this.span = [0, this.end];
    onTheme(() => this.draw());
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return (Math.min(Math.max(event.clientX - box.left, 0), box.width) / box.width) * this.end;
  }

  /** Frame a span of time. */
  frame(from, to) {
    this.span = [from, to];
    this.draw();
  }

  draw() {
    const wide = this.canvas.clientWidth;
    if (!wide) return;
    const ratio = devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [Math.round(wide * ratio), HIGH * ratio];
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    for (const [shade, values] of [["other-pale", this.busy], ["compute", this.computes]]) {
      context.fillStyle = colour(shade);
      values.forEach((share, k) => context.fillRect((k * wide) / PLACES, HIGH * (1 - share), wide / PLACES + 0.5, HIGH * share));
    }
    const [a, b] = this.span.map((at) => Math.min(Math.max((at / this.end) * wide, 0), wide));
    context.globalAlpha = 0.72;
    context.fillStyle = colour("paper");
    context.fillRect(0, 0, a, HIGH);
    context.fillRect(b, 0, wide - b, HIGH);
    context.globalAlpha = 1;
    context.strokeStyle = colour("accent");
    context.lineWidth = 1.5;
    context.strokeRect(a + 0.75, 0.75, Math.max(b - a - 1.5, 2), HIGH - 1.5);
  }
}

/** The part of lanes that is busy in each place. */
function shares(lanes, end) {
  const sums = new Float64Array(PLACES);
  const used = lanes.filter(([starts]) => starts.length).length || 1;
  for (const [starts, ends] of lanes) {
    starts.forEach((from, k) => {
      const [a, b] = [(from / end) * PLACES, (ends[k] / end) * PLACES];
      for (let place = Math.floor(a); place < Math.min(b, PLACES); place++) sums[place] += Math.min(b, place + 1) - Math.max(a, place);
    });
  }
  return [...sums].map((sum) => Math.min(1, sum / used));
}

/** The union of two lists of spans, lane by lane. */
function merged(one, two) {
  return one.map(([starts, ends], lane) => {
    const all = [...starts.map((from, k) => [from, ends[k]]), ...two[lane][0].map((from, k) => [from, two[lane][1][k]])].sort((a, b) => a[0] - b[0]);
    const out = [[], []];
    for (const [from, to] of all) {
      if (out[0].length && from <= out[1].at(-1)) out[1][out[1].length - 1] = Math.max(out[1].at(-1), to);
      else out[0].push(from), out[1].push(to);
    }
    return out;
  });
}
