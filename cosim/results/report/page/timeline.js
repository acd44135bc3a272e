/**
 * The timeline: ranks by streams over time, on a canvas, with the critical path over it.
 * @module timeline
 */

import { button, colour, el, hideTip, onTheme, section, showTip } from "report/dom.js";
import { axis, marks, size, time } from "report/format.js";
import { csvButton, svgButton } from "report/save.js";
import { canvasPainter, svgPainter } from "report/painter.js";
import { stepsOf } from "report/path.js";

const ROW = 13;
const GAP = 7;
const TOP = 24;
const MOST_HIGH = 560;
const SHADES = { compute: "compute", memory: "memory", collective: "accent", send: "accent", recv: "accent-soft" };

/**
 * @param {object[]} runs one, or two that are aligned by the beginning of the iteration shown
 * @returns {{section: HTMLElement, show: (step: object) => void, showBoth: (ops: number[]) => void}}
 */
export function timeline(runs) {
  const views = runs.map((run, k) => new View(run, runs.length > 1 ? "ab"[k] : ""));
  const all = (call) => () => views.forEach(call);
  const tools = [
    iterationChoice(views), messageChoice(views),
    button("−", "Zoom out (key -)", all((view) => view.zoom(2))), button("+", "Zoom in (key +)", all((view) => view.zoom(0.5))),
    button("all", "The whole run (key 0)", all((view) => ((view.origin = 0), view.look(0, view.end)))),
    ...views.flatMap((view) => [csvButton(`timeline${view.which}`, () => view.csv()), svgButton(`timeline${view.which}`, () => view.figure())]),
  ];
  const note = "Time counts from the start of the iteration chosen. Drag or arrows to move, the wheel for ranks below, with Ctrl or + and - to zoom; the line below operations is the critical path.";
  const folded = (run) => new Set(run.summary.jobs.flatMap((job) => job.folding));
  const said = views.flatMap((view) => [...folded(view.run), view.run.timeline.said, view.run.messages?.said]).filter(Boolean).map((text) => el("p", { class: "note" }, `Summarised: ${text}.`));
  const part = section("timeline", "Timeline", note, tools, said, views.map((view) => view.element), key(runs));
  const show = (step) => {
    const margin = Math.max(step.time * 0.5, 1);
    views[0].scrollTo(step.lane);
    views[0].look(step.start - margin, step.start + step.time + margin);
    part.scrollIntoView({ behavior: "smooth" });
  };
  const showBoth = (ops) => {
    ops.forEach((k, n) => views[n]?.showOperation(k));
    part.scrollIntoView({ behavior: "smooth" });
  };
  return { section: part, show, showBoth };
}

function key(runs) {
  const there = new Set(runs.flatMap((run) => [...new Set(run.columns.op_kind ?? [])].map((kind) => SHADES[run.timeline.kinds[kind]])));
  const words = [["compute", "computation"], ["memory", "memory access"], ["accent", "collective or send"], ["accent-soft", "receive"]].filter(([shade]) => there.has(shade));
  return el("div", { class: "key" }, words.map(([shade, text]) => el("span", {}, el("i", { style: `background:var(--${shade})` }), text)));
}

function iterationChoice(views) {
  const run = views[0].run;
  const job = run.summary.jobs.findIndex((one) => one.iterations_done > 0);
  if (job < 0 || run.queued.length) return null; // jobs come and go: there is no iteration of all
  const number = Math.min(run.columns[`iteration_${job}`].length - 1, 200);
  const from = Math.max(0, run.columns[`iteration_${job}`].length - 1 - number);
  const choose = (event) => {
    for (const view of views) {
      const ends = view.run.columns[`iteration_${job}`];
      const k = Math.min(Number(event.target.value), ends.length - 2);
      view.origin = ends[k];
      view.look(ends[k], ends[k + 1]);
    }
  };
  const options = Array.from({ length: number }, (_, k) => el("option", { value: from + k, selected: k === number - 1 ? "" : null }, `iteration ${from + k}`));
  return el("select", { "aria-label": "Iteration", onchange: choose }, options);
}

/** Whether messages are shown below the ranks that sent them. */
function messageChoice(views) {
  if (!views.some((view) => view.run.messages)) return null;
  const show = (event) => views.forEach((view) => view.withMessages(event.target.checked));
  return el("label", { class: "choice" }, el("input", { type: "checkbox", onchange: show }), " messages");
}

class View {
  constructor(run, which) {
    this.run = run;
    this.which = which;
    this.end = Math.max(run.summary.end_ps, 1);
    this.scroll = 0;
    this.rows = rowsOf(run);
    this.steps = stepsOf(run);
    this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": `Timeline ${which}` });
    this.element = el("div", {}, which && el("h3", {}, `${which}: ${run.summary.name || "run"}`), el("div", { class: "canvas" }, this.canvas));
    const last = run.columns[`iteration_${Math.max(0, run.summary.jobs.findIndex((one) => one.iterations_done > 0))}`];
    [this.from, this.to] = last && last.length > 1 && !run.queued.length ? [last[last.length - 2], last[last.length - 1]] : [0, this.end];
    this.origin = this.from; // what times are counted from: the start of the iteration that was chosen
    this.showPath();
    this.listen();
  }

  /** Show messages, or leave them out. */
  withMessages(shown) {
    this.rows = rowsOf(this.run, shown && this.run.messages);
    this.scroll = this.scrolled(this.scroll);
    this.draw();
  }

  get height() {
    return this.rows.height + TOP;
  }

  listen() {
    const at = this.canvas;
    new ResizeObserver(() => this.draw()).observe(at.parentElement);
    onTheme(() => this.draw());
    at.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    at.addEventListener("keydown", (event) => this.key(event));
    at.addEventListener("pointerdown", (event) => (this.held = { x: event.clientX, y: event.clientY, from: this.from, to: this.to, scroll: this.scroll }));
    addEventListener("pointerup", () => (this.held = null));
    at.addEventListener("pointermove", (event) => (this.held ? this.drag(event) : this.hover(event)));
    at.addEventListener("pointerleave", hideTip);
  }

  /** Show a span of time. */
  look(from, to) {
    const span = Math.min(Math.max(to - from, 10), this.end * 1.02);
    this.from = Math.min(Math.max(from, -0.01 * this.end), Math.max(0, 1.01 * this.end - span));
    this.to = this.from + span;
    this.draw();
  }

  /** Show an operation, in the middle of three times as long. */
  showOperation(k) {
    const c = this.run.columns;
    this.scrollTo(c.op_lane[k]);
    this.look(c.op_start[k] - Math.max(c.op_time[k], 1), c.op_start[k] + 2 * Math.max(c.op_time[k], 1));
  }

  /** Have the longest step of the critical path in sight, where the rank of it is drawn below what is seen first. */
  showPath() {
    const longest = this.steps.reduce((most, step) => (most === null || step.time > most.time ? step : most), null);
    const [row] = (longest && this.rows.of.get(longest.lane)) ?? [];
    if (row && !this.run.queued.length && row.y + TOP + 6 * ROW > MOST_HIGH) this.scrollTo(longest.lane);
  }

  /** Have a lane in sight. */
  scrollTo(lane) {
    const [row] = this.rows.of.get(lane) ?? [];
    if (row) this.scroll = this.scrolled(row.y - MOST_HIGH / 3);
  }

  /** Zoom by a factor about a place from 0 to 1. */
  zoom(factor, about = 0.5) {
    const span = this.to - this.from;
    const middle = this.from + about * span;
    this.look(middle - about * span * factor, middle + (1 - about) * span * factor);
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) {
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      const about = (event.clientX - box.left - this.rows.label) / (box.width - this.rows.label);
      this.zoom(1.0015 ** (event.deltaY || event.deltaX), Math.min(1, Math.max(0, about)));
    } else if (this.height > MOST_HIGH) {
      const next = this.scrolled(this.scroll + event.deltaY);
      if (next !== this.scroll) event.preventDefault();
      this.scroll = next;
      this.draw();
    }
  }

  scrolled(to) {
    return Math.max(0, Math.min(to, this.height - Math.min(this.height, MOST_HIGH)));
  }

  key(event) {
    const span = this.to - this.from;
    const moves = {
      ArrowLeft: () => this.look(this.from - span / 8, this.to - span / 8), ArrowRight: () => this.look(this.from + span / 8, this.to + span / 8),
      ArrowUp: () => ((this.scroll = this.scrolled(this.scroll - 40)), this.draw()), ArrowDown: () => ((this.scroll = this.scrolled(this.scroll + 40)), this.draw()),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => ((this.origin = 0), this.look(0, this.end)),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  drag(event) {
    const span = this.held.to - this.held.from;
    const moved = ((this.held.x - event.clientX) / (this.canvas.clientWidth - this.rows.label)) * span;
    this.scroll = this.scrolled(this.held.scroll + this.held.y - event.clientY);
    this.look(this.held.from + moved, this.held.to + moved);
    hideTip();
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.scroll - TOP];
    const row = this.rows.list.find((one) => y >= one.y && y < one.y + ROW);
    const at = this.from + ((x - this.rows.label) / (box.width - this.rows.label)) * (this.to - this.from);
    const found = row && x > this.rows.label ? row.at(at, ((this.to - this.from) / box.width) * 2) : -1;
    if (found < 0) return hideTip();
    showTip(event.clientX, event.clientY, row.sends ? this.toldOfMessage(found) : this.told(found));
  }

  toldOfMessage(k) {
    const c = this.run.columns;
    const lane = this.run.timeline.lanes[c.message_lane[k]];
    return [`${size(c.message_size[k])} to ${this.run.fabric.nodes[c.message_dst[k]]}`, `${time(c.message_time[k])} from ${time(c.message_start[k] - this.origin)}`,
      `iteration ${c.message_iteration[k]}, operation ${c.message_op[k]}`, `sent by rank ${lane.rank} on ${lane.node}`];
  }

  told(k) {
    const c = this.run.columns;
    const lane = this.run.timeline.lanes[c.op_lane[k]];
    const name = c.op_name ? this.run.texts[c.op_name[k]] : `operation ${c.op_number[k]}`;
    const alike = lane.alike > 1 ? `, as ${lane.alike - 1} others` : "";
    return [name, `${time(c.op_time[k])} from ${time(c.op_start[k] - this.origin)}`, `iteration ${c.op_iteration[k]}${c.op_stream ? `, stream ${this.run.timeline.streams[c.op_stream[k]] || "of receives"}` : ""}`, `rank ${lane.rank} on ${lane.node}${alike}`];
  }

  draw() {
    const [wide, high] = [this.canvas.parentElement.clientWidth, Math.min(this.height, MOST_HIGH)];
    if (!wide) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.style.height = `${high}px`;
    if (this.canvas.width !== Math.round(wide * ratio)) this.canvas.width = Math.round(wide * ratio);
    if (this.canvas.height !== Math.round(high * ratio)) this.canvas.height = Math.round(high * ratio);
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, wide, high);
    this.paint(canvasPainter(context, colour), wide, high);
  }

  /** The view as a figure of its own. */
  figure() {
    const high = Math.min(this.height, MOST_HIGH);
    const painter = svgPainter(this.canvas.clientWidth, high);
    this.paint(painter, this.canvas.clientWidth, high);
    return painter.node;
  }

  paint(painter, wide, high) {
    const { label } = this.rows;
    const scale = (wide - label) / (this.to - this.from);
    const x = (at) => label + (at - this.from) * scale;
    const visible = (y) => y + TOP - this.scroll + ROW > TOP && y + TOP - this.scroll < high;
    const since = marks(this.from - this.origin, this.to - this.origin, (wide - label) / 110);
    const words = axis(since);
    const ticks = since.map((at) => at + this.origin);
    ticks.forEach((at, k) => {
      painter.rect(x(at), TOP - 5, 1, high, "rule");
      if (x(at) < wide - 50) painter.text(x(at) + 4, 13, words[k], "soft");
    });
    for (const event of this.run.events) for (const [from, to] of event.spans) {
      const [a, b] = [Math.max(x(from), label), Math.min(x(to), wide)];
      if (b <= a) continue;
      painter.rect(a, TOP - 6, b - a, high, "event");
      painter.text(a + 4, TOP + 3, `${event.name} ${event.what}`, "soft", b - a - 6, 9);
    }
    for (const row of this.rows.list) if (visible(row.y)) this.paintRow(painter, row, x, row.y + TOP - this.scroll, wide);
    this.paintPath(painter, x, wide, high);
    painter.rect(0, TOP - 5, label, high, "paper");
    painter.rect(0, 0, label, TOP - 5, "paper");
    if (this.height > high) painter.rect(wide - 5, TOP + (this.scroll / this.height) * (high - TOP), 4, (high / this.height) * (high - TOP), "soft");
    for (const row of this.rows.list) if (visible(row.y)) painter.text(6, row.y + TOP - this.scroll + 10, row.text, row.first ? "ink" : "soft", label - 8);
  }

  paintRow(painter, row, x, y, wide) {
    let painted = -1;
    for (let i = row.before(this.from); i < row.ops.length; i++) {
      const k = row.ops[i];
      if (row.start[k] > this.to) break;
      const left = Math.max(x(row.start[k]), this.rows.label);
      const right = Math.min(x(row.start[k] + row.time[k]), wide);
      if (right < painted + 0.5 || right < this.rows.label) continue; // nothing of it would be seen
      const shade = this.shadeOf(row, k);
      painter.rect(left, y, Math.max(right - left - (right - left > 3 ? 0.6 : 0), 0.7), ROW - 3, shade);
      if (right - left > 60) painter.text(left + 4, y + 8.5, this.nameOf(row, k), shade === "accent" ? "paper" : "ink", right - left - 8, 9);
      painted = right;
    }
  }

  shadeOf(row, k) {
    return row.sends ? "accent-soft" : SHADES[this.run.timeline.kinds[this.run.columns.op_kind?.[k]]] ?? "compute";
  }

  nameOf(row, k) {
    const c = this.run.columns;
    if (row.sends) return `${size(c.message_size[k])} to ${this.run.fabric.nodes[c.message_dst[k]]}`;
    return c.op_name ? this.run.texts[c.op_name[k]] : "";
  }

  paintPath(painter, x, wide, high) {
    let before = null;
    let lane = -1;
    let job = -1;
    let joined = -Infinity; // where the last line between rows was: nearer ones would make a black block
    for (const step of this.steps) {
      const row = this.rows.of.get(step.lane)?.find((one) => one.has(step)) ?? this.rows.of.get(step.lane)?.[0];
      if (!row) continue;
      const y = row.y + TOP - this.scroll + ROW - 3;
      if (step.job !== job) [before, job] = [null, step.job]; // a path of its own
      const [left, right] = [Math.max(x(step.start), this.rows.label), Math.min(x(step.start + step.time), wide)];
      if (right >= this.rows.label && left <= wide) {
        if (before !== null && before !== y && x(step.start) >= this.rows.label && x(step.start) > joined + (step.lane === lane ? 12 : 2)) {
          joined = x(step.start);
          painter.rect(x(step.start) - 0.5, Math.max(TOP - 5, Math.min(before, y)), 1.2, Math.min(Math.abs(y - before), high), "path");
        }
        if (y > TOP - 5) painter.rect(left, y, Math.max(right - left, 1), 2.2, "path");
      }
      before = y;
      lane = step.lane;
    }
  }

  csv() {
    const c = this.run.columns;
    const lanes = this.run.timeline.lanes;
    const names = ["job", "rank", "iteration", "operation", "name", "start_ps", "time_ps"];
    return [names, ...Array.from(c.op_start, (start, k) => {
      const lane = lanes[c.op_lane[k]];
      return [this.run.summary.jobs[lane.job].name, lane.rank, c.op_iteration[k], c.op_number[k], c.op_name ? this.run.texts[c.op_name[k]] : "", start, c.op_time[k]];
    })];
  }
}

const SENDS = 4000;

/**
 * Rows of a timeline: a lane's streams below one another, each with its operations in order of start, and then the
 * messages that it sent, where they are asked for.
 */
function rowsOf(run, messages = false) {
  const c = run.columns;
  const { lanes, streams } = run.timeline;
  const found = new Map();
  const put = (place, k) => (found.get(place) ?? found.set(place, []).get(place)).push(k);
  for (let k = 0; k < c.op_lane.length; k++) put(c.op_lane[k] * 4096 + (c.op_stream ? c.op_stream[k] : 0), k);
  if (messages) for (let k = 0; k < c.message_lane.length; k++) put(c.message_lane[k] * 4096 + SENDS + c.message_row[k], k);
  const named = new Set(lanes.map((lane) => lane.job)).size > 1;
  const list = [];
  const of = new Map();
  let y = 0;
  for (const place of [...found.keys()].sort((a, b) => a - b)) {
    const [lane, stream] = [Math.floor(place / 4096), place % 4096];
    const first = !of.has(lane);
    if (first && list.length) y += GAP;
    const one = lanes[lane];
    const alike = one.alike > 1 ? ` ×${one.alike}` : "";
    const title = `${named ? `${run.summary.jobs[one.job].name} ` : "rank "}${one.rank}${alike}`;
    const text = stream > SENDS ? "" : stream === SENDS ? "  sends" : `  ${streams[stream] || "receives"}`;
    const row = new Row(c, found.get(place), y, first ? title : text, first, stream >= SENDS);
    list.push(row);
    of.set(lane, [...(of.get(lane) ?? []), row]);
    y += ROW;
  }
  return { list, of, height: y + 8, label: matchMedia("(max-width: 600px)").matches ? 64 : 104 };
}

class Row {
  constructor(columns, ops, y, text, first, sends) {
    Object.assign(this, { columns, ops, y, text, first, sends });
    [this.start, this.time] = sends ? [columns.message_start, columns.message_time] : [columns.op_start, columns.op_time];
    this.most = ops.reduce((most, k) => Math.max(most, this.time[k]), 0);
    this.numbers = null;
  }

  /** The first operation that may reach a time. */
  before(at) {
    let [low, high] = [0, this.ops.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[this.ops[middle]] + this.most < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The operation at a time, or so near; -1: none. */
  at(when, near) {
    for (let i = this.before(when - near); i < this.ops.length; i++) {
      const k = this.ops[i];
      if (this.start[k] > when + near) break;
      if (this.start[k] + this.time[k] >= when - near) return k;
    }
    return -1;
  }

  /** Whether a step of a critical path is an operation of this row. */
  has(step) {
    if (this.sends) return false;
    this.numbers ??= new Set(this.ops.map((k) => this.columns.op_number[k]));
    return this.numbers.has(step.op);
  }
}
