/**
 * A whole training: what its time went into, week by week, and which causes cost how much.
 * @module lifetime
 */

import { el, meter, narrow, svg, table } from "report/dom.js";
import { count, marks, percent, span } from "report/format.js";
import { csvButton, svgButton } from "report/save.js";

const DAY = 86_400e12;
const ROW = 20;
const PARTS = [["useful_ps", "compute", "training"], ["checkpoint_ps", "accent-soft", "checkpoints"], ["redone_ps", "accent", "lost and computed again"], ["down_ps", "path", "down"]];

/** @param {object} job that has a training */
export function lifetime(job) {
  const life = job.training;
  const share = (ps) => ps / life.lasts_ps;
  const failures = life.causes.reduce((sum, cause) => sum + cause.failures, 0);
  const kept = Math.floor(life.useful_ps / life.iteration_ps);
  const parts = PARTS.map(([key, shade, text]) => ({ shade, text, ps: life[key] })).filter((part) => part.ps > 0);
  const facts = [[percent(share(life.useful_ps)), "goodput: the time that brought the training on"], [span(life.lasts_ps - life.useful_ps), `lost of ${span(life.lasts_ps)}`],
    [count(failures), failures ? `failures, one each ${span(life.lasts_ps / failures)}` : "failures"], [span(life.every_ps), `of computing between checkpoints, ${count(life.checkpoints)} in all`], [count(kept), `iterations kept, of ${span(life.iteration_ps)} each`]];
  return el("div", {},
    el("p", { class: "said" }, `Goodput is ${percent(share(life.useful_ps))} over ${span(life.lasts_ps)}: ${lost(life, failures)}.`),
    el("div", { class: "facts" }, facts.map(([value, text]) => el("div", { class: "fact" }, el("b", {}, value), el("span", {}, text)))),
    el("div", { class: "bar", role: "img", "aria-label": parts.map((part) => `${part.text} ${percent(share(part.ps))}`).join(", ") },
      parts.map((part) => el("i", { style: `width:${100 * share(part.ps)}%;background:var(--${part.shade})`, title: part.text }))),
    el("div", { class: "key" }, parts.map((part) => el("span", {}, el("i", { style: `background:var(--${part.shade})` }), `${part.text} ${span(part.ps)}, ${percent(share(part.ps))}`))),
    life.setbacks?.length > 0 && strip(life, failures), life.causes.length > 0 && causes(life));
}

function lost(life, failures) {
  const worst = [...life.causes].sort((a, b) => b.redone_ps + b.down_ps - a.redone_ps - a.down_ps)[0];
  if (!worst) return "nothing failed";
  return `${count(failures)} failures and ${count(life.checkpoints)} checkpoints cost the rest, ${worst.name} most of all causes (${percent((worst.redone_ps + worst.down_ps) / life.lasts_ps)})`;
}

/** A row for each week (of a short training: day), in it what was computed again and when the job was down. */
function strip(life, failures) {
  const long = life.lasts_ps > 14 * DAY ? 7 * DAY : life.lasts_ps > 2 * DAY ? DAY : life.lasts_ps;
  const unit = long > 2 * DAY ? DAY : DAY / 24;
  const rows = Math.ceil(life.lasts_ps / long);
  const name = long === 7 * DAY ? "week" : long === DAY ? "day" : "";
  const [wide, left, right] = [narrow() ? 420 : 1100, 64, 74];
  const x = (ps) => left + (ps / long) * (wide - left - right);
  const gone = new Float64Array(rows);
  const boxes = [];
  const mark = (from, to, shade, text) => {
    for (let row = Math.max(0, Math.floor(from / long)); row < rows && row * long < to; row++) {
      const [a, b] = [Math.max(from, row * long), Math.min(to, (row + 1) * long)];
      gone[row] += b - a;
      boxes.push(svg("rect", { x: x(a - row * long).toFixed(2), y: row * ROW + 3, width: Math.max(x(b - row * long) - x(a - row * long), 0.7).toFixed(2), height: ROW - 6, fill: `var(--${shade})` }, svg("title", {}, text)));
    }
  };
  for (const one of life.setbacks) {
    const text = `${life.causes[one.cause].name}, after ${span(one.time_ps)}: ${span(one.redone_ps)} computed again, ${span(one.down_ps)} down`;
    mark(one.time_ps - one.redone_ps, one.time_ps, "accent", text);
    mark(one.time_ps, one.time_ps + one.down_ps, "path", text);
  }
  const words = { "font-family": "system-ui, sans-serif", "font-size": 11, fill: "var(--soft)" };
  const whole = Array.from({ length: rows }, (_, row) => Math.min(long, life.lasts_ps - row * long));
  const node = svg("svg", { viewBox: `0 0 ${wide} ${rows * ROW + 18}`, width: wide, height: rows * ROW + 18, role: "img", "aria-label": "Failures over the training" },
    whole.map((ps, row) => [svg("rect", { x: left, y: row * ROW + 3, width: x(ps) - left, height: ROW - 6, fill: "var(--compute)" }),
      svg("text", { ...words, x: 0, y: row * ROW + 14 }, `${name} ${name && row + 1}`),
      svg("text", { ...words, x: wide, y: row * ROW + 14, "text-anchor": "end" }, `${percent(gone[row] / ps)} lost`)]), boxes,
    marks(0, long / unit, 7).map((at) => svg("text", { ...words, x: x(at * unit), y: rows * ROW + 15, "text-anchor": "middle" }, `${Number(at.toFixed(6))} ${unit === DAY ? "d" : "h"}`)));
  const rowsOut = () => [["time_ps", "cause", "redone_ps", "down_ps"], ...life.setbacks.map((one) => [one.time_ps, life.causes[one.cause].name, one.redone_ps, one.down_ps])];
  const left_out = failures - life.setbacks.length;
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, name ? `Each ${name}: what failures cost` : "What failures cost over time"), el("div", { class: "tools" }, csvButton("failures", rowsOut), svgButton("failures", () => node))),
    el("div", { class: "map plain" }, node), left_out > 0 && el("p", { class: "note" }, `Drawn are the first ${count(life.setbacks.length)} failures; ${count(left_out)} later ones are only in the sums.`));
}

function causes(life) {
  const all = [...life.causes].sort((a, b) => b.redone_ps + b.down_ps - a.redone_ps - a.down_ps);
  const most = all[0].redone_ps + all[0].down_ps || 1;
  const share = (ps) => percent(ps / life.lasts_ps);
  const rows = () => [["cause", "failures", "redone_ps", "down_ps"], ...all.map((one) => [one.name, one.failures, one.redone_ps, one.down_ps])];
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, "Goodput lost, by cause"), csvButton("causes", rows)),
    table([{ title: "cause", text: true, long: true }, { title: "", text: true, optional: true }, { title: "failures" }, { title: "computed again" }, { title: "down" }, { title: "goodput lost" }],
      all.map((one) => ({ cells: [one.name, meter((one.redone_ps + one.down_ps) / most), count(one.failures), share(one.redone_ps), share(one.down_ps), share(one.redone_ps + one.down_ps)] }))));
}
