/**
 * How a timeline is painted, on a canvas or into an SVG: rows, what is exposed of them, the critical path, what was chosen.
 * @module timeline_painting
 */

import { axis, marks } from "report/format.js";
import { ROW } from "report/timeline_rows.js";

export const TOP = 24;

/** What each shade is called. */
export const NAMES = { compute: "computation", memory: "memory access", remote: "remote memory", host: "host", tp: "tensor parallel", dp: "data parallel", pp: "pipeline", ep: "expert parallel", other: "other communication" };
/** Shades of communication. */
export const PURPOSES = new Set(["dp", "ep", "pp", "tp", "other"]);

/** Paints what a view shows: its `run`, `rows`, `steps`, `computing`, `from`, `to`, `origin`, `scroll`, `hidden`, `found`, `chosen`. */
export class TimelinePainting {
  rowOf(step) {
    const mine = this.rows.of.get(step.lane);
    return mine?.find((row) => row.has(step)) ?? mine?.[0];
  }

  paint(painter, wide, high) {
    const { label } = this.rows;
    const scale = (wide - label) / (this.to - this.from);
    const x = (at) => label + (at - this.from) * scale;
    const sight = (one, tall) => one.y + TOP - this.scroll + tall > TOP && one.y + TOP - this.scroll < high;
    const since = marks(this.from - this.origin, this.to - this.origin, (wide - label) / 110);
    const words = axis(since);
    since.map((at) => at + this.origin).forEach((at, k) => {
      painter.rect(x(at), TOP - 5, 1, high, "rule");
      if (x(at) < wide - 50) painter.text(x(at) + 4, 13, words[k], "soft");
    });
    for (const event of this.run.events) for (const [from, to] of event.spans) {
      const [a, b] = [Math.max(x(from), label), Math.min(x(to), wide)];
      if (b <= a) continue;
      painter.rect(a, TOP - 6, b - a, high, "event");
      painter.text(a + 4, TOP + 3, `${event.name} ${event.what}`, "soft", b - a - 6, 9);
    }
    for (const row of this.rows.list) if (sight(row, row.high)) this.paintRow(painter, row, x, row.y + TOP - this.scroll, wide);
    this.paintPath(painter, x, wide, high);
    this.paintChosen(painter, x, wide);
    painter.rect(0, TOP - 5, label, high, "paper");
    painter.rect(0, 0, label, TOP - 5, "paper");
    if (this.height > high) painter.rect(wide - 5, TOP + (this.scroll / this.height) * (high - TOP), 4, (high / this.height) * (high - TOP), "soft");
    for (const row of this.rows.list) if (sight(row, row.high)) painter.text(6, row.y + TOP - this.scroll + 10, row.text, row.first ? "ink" : "soft", label - 8);
    for (const one of this.rows.titles) if (sight(one, 14)) painter.text(6, one.y + TOP - this.scroll + 10, `${one.folded ? "▸" : "▾"} ${one.text}${one.folded ? `, ${one.ranks} rank${one.ranks > 1 ? "s" : ""}` : ""}`, "soft", label + 110);
  }

  paintRow(painter, row, x, y, wide) {
    const thin = row.high < ROW;
    // Of a rank in one row: communication first, so that computation covers what it hides.
    for (const computing of thin ? [false, true] : [null]) {
      let painted = -1;
      for (let i = row.before(this.from); i < row.ops.length; i++) {
        const k = row.ops[i];
        if (row.start[k] > this.to) break;
        const shade = row.sends ? "accent-soft" : this.shadeOf(k);
        if (this.hidden.has(shade) || (computing !== null && computing !== (shade === "compute" || shade === "memory"))) continue;
        const left = Math.max(x(row.start[k]), this.rows.label);
        const right = Math.min(x(row.start[k] + row.time[k]), wide);
        if (right < painted + 0.5 || right < this.rows.label) continue; // nothing of it would be seen
        const pale = this.found && !row.sends && !this.found[this.run.columns.op_name[k]];
        const tall = row.high - (thin ? 1 : 3);
        const bar = Math.max(right - left - (right - left > 3 && !thin ? 0.6 : 0), 0.7);
        const sends = PURPOSES.has(shade);
        painter.rect(left, y, bar, tall, pale ? "idle" : sends ? `${shade}-pale` : shade);
        if (sends && !pale) this.paintExposed(painter, k, x, y, tall, shade, wide);
        if (right - left > 60 && !thin) this.paintName(painter, row, k, x, left, right, y, pale);
        painted = right;
      }
    }
  }

  /** The name of an operation, on as much of it as has one colour. */
  paintName(painter, row, k, x, left, right, y, pale) {
    if (row.sends) return painter.text(left + 4, y + 8.5, this.linesOfMessage(k)[0], "ink", right - left - 8, 9);
    const gap = PURPOSES.has(this.shadeOf(k)) && !pale ? this.gaps(k).find(([, to]) => x(to) > left + 1) : null;
    const waits = gap && x(gap[0]) <= left + 1;
    const end = gap ? Math.min(right, x(waits ? gap[1] : gap[0])) : right;
    painter.text(left + 4, y + 8.5, this.nameOf(k), pale ? "soft" : waits ? "paper" : "ink", end - left - 8, 9);
  }

  paintExposed(painter, k, x, y, tall, shade, wide) {
    let painted = -1;
    for (const [from, to] of this.gaps(k)) {
      const [left, right] = [Math.max(x(from), this.rows.label), Math.min(x(to), wide)];
      if (right <= left || right < painted + 0.5) continue;
      painter.rect(left, y, Math.max(right - left, 0.7), tall, shade);
      painted = right;
    }
  }

  /** When an operation is under way and its rank doesn't compute, as pairs. */
  gaps(k) {
    const c = this.run.columns;
    const [starts, ends] = this.computing[c.op_lane[k]];
    const end = c.op_start[k] + c.op_time[k];
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] <= c.op_start[k]) low = middle + 1;
      else high = middle;
    }
    const out = [];
    let at = c.op_start[k];
    for (; low < starts.length && starts[low] < end; low++) {
      if (starts[low] > at) out.push([at, starts[low]]);
      at = ends[low];
    }
    if (at < end) out.push([at, end]);
    return out;
  }

  shadeOf(k) {
    return this.run.timeline.shades[this.run.columns.op_shade[k]];
  }

  nameOf(k) {
    return this.run.texts[this.run.columns.op_name[k]];
  }

  paintPath(painter, x, wide, high) {
    let before = null;
    let lane = -1;
    let job = -1;
    let joined = -Infinity; // where the last line between rows was: nearer ones would make a black block
    for (const step of this.steps) {
      const row = this.rowOf(step);
      if (!row) continue;
      const y = row.y + TOP - this.scroll + row.high - (row.high < ROW ? 2 : 3);
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

  /** An outline of what was chosen. */
  paintChosen(painter, x, wide) {
    const row = this.chosen && this.rowOf(this.chosen);
    if (!row || row.y + row.high < this.scroll) return;
    const y = row.y + TOP - this.scroll - 2;
    const [left, right] = [Math.max(x(this.chosen.start) - 2, this.rows.label), Math.min(x(this.chosen.start + this.chosen.time) + 2, wide)];
    if (right < this.rows.label || left > wide) return;
    const [tall, line] = [row.high + 1, row.high < ROW ? 1 : 2];
    for (const box of [[left, y, right - left, line], [left, y + tall - line, right - left, line], [left, y, line, tall], [right - line, y, line, tall]]) painter.rect(...box, "chosen");
  }
}
