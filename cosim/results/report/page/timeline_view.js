/**
 * One run's timeline on a canvas, with its critical path and what was chosen.
 * @module timeline_view
 */

import { colour, el, hideTip, onTheme, printed, showTip } from "report/dom.js";
import { size, time } from "report/format.js";
import { Minimap } from "report/minimap.js";
import { canvasPainter, svgPainter } from "report/painter.js";
import { stepsOf } from "report/path.js";
import { NAMES, PURPOSES, TimelinePainting, TOP } from "report/timeline_painting.js";
import { computingOf, hostsOf, ROW, rowsOf } from "report/timeline_rows.js";

const MOST_HIGH = 560;
const MOST_UNFOLDED = 16; // lanes
const CLICK = 4; // pixels that a click may move

export class TimelineView extends TimelinePainting {
  constructor(run, which) {
    super();
    this.run = run;
    this.which = which;
    this.end = Math.max(run.summary.end_ps, 1);
    this.scroll = 0;
    this.room = 0; // past the run's end
    this.messages = false;
    this.folded = new Set(run.timeline.lanes.length > MOST_UNFOLDED ? hostsOf(run) : []);
    this.hidden = new Set();
    this.found = null; // whether each text is what is looked for
    this.chosen = null;
    this.computing = computingOf(run);
    this.arrange();
    this.steps = stepsOf(run);
    this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": `Timeline ${which}`.trim() });
    this.map = new Minimap(run, this.computing, (middle) => this.look(middle - (this.to - this.from) / 2, middle + (this.to - this.from) / 2));
    this.told = el("p", { class: "note chosen", "aria-live": "polite" });
    this.element = el("div", {}, printed(el("div", { class: "canvas" }, this.map.canvas, this.canvas), () => this.figure()), this.told);
    const last = run.columns[`iteration_${Math.max(0, run.summary.jobs.findIndex((one) => one.iterations_done > 0))}`];
    [this.from, this.to] = last && last.length > 1 && !run.queued.length ? [last[last.length - 2], last[last.length - 1]] : [0, this.end];
    this.origin = this.from; // what times are counted from: the start of the iteration that was chosen
    this.showPath();
    this.listen();
  }

  /** What there is to see of: computation, and communication by what it is for. */
  shades() {
    if (!this.run.columns.op_shade) return ["compute"];
    const there = new Set(this.run.columns.op_shade);
    return this.run.timeline.shades.filter((_, k) => there.has(k));
  }

  arrange() {
    this.rows = rowsOf(this.run, { messages: this.messages && this.run.messages, folded: this.folded });
    this.scroll = this.scrolled(this.scroll);
  }

  /** Show messages, or leave them out. */
  withMessages(shown) {
    this.messages = shown;
    this.arrange();
    this.draw();
  }

  /** Fold every host, or none. */
  foldAll(folded) {
    this.folded = new Set(folded ? hostsOf(this.run) : []);
    this.arrange();
    this.draw();
  }

  /** Hide a shade, or show it. */
  filter(shade, hidden) {
    this.hidden[hidden ? "add" : "delete"](shade);
    this.draw();
  }

  /** Make all pale that has not these words in its name; how many operations have. */
  seek(words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = wanted.length ? this.run.texts.map((text) => wanted.every((word) => text.toLowerCase().includes(word))) : null;
    this.at = -1;
    this.hits = this.found ? [...this.run.columns.op_name.keys()].filter((k) => this.found[this.run.columns.op_name[k]]).sort((a, b) => this.run.columns.op_start[a] - this.run.columns.op_start[b]) : [];
    this.draw();
    return this.hits.length;
  }

  /** Choose the next one that was found, from what is in sight on. */
  next(step) {
    if (!this.hits?.length) return;
    if (this.at < 0) this.at = Math.max(0, this.hits.findIndex((k) => this.run.columns.op_start[k] >= this.from)) - step;
    this.at = (this.at + step + this.hits.length) % this.hits.length;
    this.showOperation(this.hits[this.at]);
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
    at.addEventListener("pointerdown", (event) => (this.held = { x: event.clientX, y: event.clientY, from: this.from, to: this.to, scroll: this.scroll, moved: false }));
    at.addEventListener("pointerup", (event) => this.held && !this.held.moved && this.click(event));
    addEventListener("pointerup", () => (this.held = null));
    at.addEventListener("pointermove", (event) => (this.held ? this.drag(event) : this.hover(event)));
    at.addEventListener("pointerleave", hideTip);
  }

  /** Show a span of time. */
  look(from, to) {
    const span = Math.min(Math.max(to - from, 10), this.end * 1.02 + this.room);
    this.from = Math.min(Math.max(from, -0.01 * this.end), Math.max(0, 1.01 * this.end + this.room - span));
    this.to = this.from + span;
    this.draw();
  }

  /** Show so long a span from where it begins now, past the run's end where it has to be. */
  beyond(span) {
    this.room = Math.max(0, span - (this.to - this.from));
    this.look(this.from, this.from + span);
  }

  /** Show the whole run, in its own time. */
  whole() {
    this.origin = 0;
    this.look(0, this.end);
  }

  /** Show an iteration of a job, and count time from its start; the last one where it has fewer. */
  showIteration(job, number) {
    const ends = this.run.columns[`iteration_${job}`];
    if (!ends || ends.length < 2) return;
    const k = Math.min(number, ends.length - 2);
    this.origin = ends[k];
    this.look(ends[k], ends[k + 1]);
  }

  /** Show an operation, in the middle of three times as long. */
  showOperation(k) {
    const c = this.run.columns;
    this.choose({ lane: c.op_lane[k], op: c.op_number[k], start: c.op_start[k], time: c.op_time[k], lines: this.lines(k) });
    this.look(c.op_start[k] - Math.max(c.op_time[k], 1), c.op_start[k] + 2 * Math.max(c.op_time[k], 1));
  }

  /** Show a step of the critical path. */
  showStep(step) {
    const margin = Math.max(step.time * 0.5, 1);
    const node = step.between ? [step.between] : [];
    this.choose({ ...step, lines: [step.name, `${time(step.time)} from ${time(step.start - this.origin)}`, ...node, `rank ${step.rank}`] });
    this.look(step.start - margin, step.start + step.time + margin);
  }

  /** Outline an operation or a step, say what it is, and have it in sight. */
  choose(one) {
    this.chosen = one;
    this.told.replaceChildren(el("b", {}, one.lines[0]), `: ${one.lines.slice(1).join(", ")}`);
    const row = this.rowOf(one);
    if (row && (row.y < this.scroll || row.y + row.high > this.scroll + Math.min(this.height, MOST_HIGH) - TOP)) this.scrollTo(one.lane);
    this.draw();
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
    if (!row) return;
    // From the beginning of its host on, or of a rank where that has too many.
    const above = (places, most) => places.map((one) => one.y).filter((y) => y <= row.y - MOST_HIGH / 3 && y > row.y - most);
    const hosts = above(this.rows.titles, MOST_HIGH - TOP - 4 * ROW);
    const begins = hosts.length ? hosts : above(this.rows.list.filter((one) => one.first), Infinity);
    this.scroll = this.scrolled(Math.max(0, ...begins) - 2);
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
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.whole(),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }

  drag(event) {
    const [dx, dy] = [this.held.x - event.clientX, this.held.y - event.clientY];
    if (!this.held.moved && Math.hypot(dx, dy) < CLICK) return;
    this.held.moved = true;
    const moved = (dx / (this.canvas.clientWidth - this.rows.label)) * (this.held.to - this.held.from);
    this.scroll = this.scrolled(this.held.scroll + dy);
    this.look(this.held.from + moved, this.held.to + moved);
    hideTip();
  }

  /** What is drawn at a place: a row and its operation, -1 where there is none. */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.scroll - TOP];
    const row = this.rows.list.find((one) => y >= one.y && y < one.y + one.high);
    const at = this.from + ((x - this.rows.label) / (box.width - this.rows.label)) * (this.to - this.from);
    return { x, y, row, k: row && x > this.rows.label ? row.at(at, ((this.to - this.from) / box.width) * 2) : -1 };
  }

  hover(event) {
    const { x, y, row, k } = this.under(event);
    this.canvas.style.cursor = this.titleAt(x, y) ? "pointer" : "";
    if (k < 0) return hideTip();
    showTip(event.clientX, event.clientY, row.sends ? this.linesOfMessage(k) : this.lines(k));
  }

  /** Fold or unfold a host, or choose an operation. */
  click(event) {
    const { x, y, row, k } = this.under(event);
    const title = this.titleAt(x, y);
    if (title) {
      this.folded[title.folded ? "delete" : "add"](title.host);
      this.arrange();
      this.draw();
    } else if (k >= 0 && !row.sends) {
      const c = this.run.columns;
      this.choose({ lane: row.lane, op: c.op_number[k], start: c.op_start[k], time: c.op_time[k], lines: this.lines(k) });
    }
  }

  titleAt(x, y) {
    return y < 0 || x > this.rows.label + 60 ? null : this.rows.titles.find((one) => y >= one.y && y < one.y + 14);
  }

  linesOfMessage(k) {
    const c = this.run.columns;
    const lane = this.run.timeline.lanes[c.message_lane[k]];
    return [`${size(c.message_size[k])} to ${this.run.fabric.nodes[c.message_dst[k]]}`, `${time(c.message_time[k])} from ${time(c.message_start[k] - this.origin)}`,
      `iteration ${c.message_iteration[k]}, operation ${c.message_op[k]}`, `sent by rank ${lane.rank} on ${lane.node}`];
  }

  lines(k) {
    const c = this.run.columns;
    const lane = this.run.timeline.lanes[c.op_lane[k]];
    const alike = lane.alike > 1 ? `, as ${lane.alike - 1} others` : "";
    const shade = this.shadeOf(k);
    const waits = PURPOSES.has(shade) ? [`${NAMES[shade]}, exposed ${time(this.gaps(k).reduce((sum, [a, b]) => sum + b - a, 0))}`] : [];
    return [this.nameOf(k) || `operation ${c.op_number[k]}`, `${time(c.op_time[k])} from ${time(c.op_start[k] - this.origin)}`, ...waits,
      `iteration ${c.op_iteration[k]}, stream ${this.run.timeline.streams[c.op_stream[k]] || "of receives"}`, `rank ${lane.rank} on ${lane.node}${alike}`];
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
    this.map.frame(this.from, this.to);
  }

  /** The view as a figure of its own. */
  figure() {
    const high = Math.min(this.height, MOST_HIGH);
    const painter = svgPainter(this.canvas.clientWidth, high);
    this.paint(painter, this.canvas.clientWidth, high);
    return painter.node;
  }

  csv() {
    const c = this.run.columns;
    const lanes = this.run.timeline.lanes;
    const names = ["job", "rank", "iteration", "operation", "name", "for", "start_ps", "time_ps"];
    return [names, ...Array.from(c.op_start, (start, k) => {
      const lane = lanes[c.op_lane[k]];
      const shade = this.shadeOf(k);
      return [this.run.summary.jobs[lane.job].name, lane.rank, c.op_iteration[k], c.op_number[k], this.nameOf(k), PURPOSES.has(shade) ? shade : "", start, c.op_time[k]];
    })];
  }
}
