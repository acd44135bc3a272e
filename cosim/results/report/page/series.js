/**
 * Queues and rates over time, where the run kept them.
 * @module series
 */

import { el } from "report/dom.js";
import { amount, count, rate, time } from "report/format.js";
import { figure } from "report/plot.js";

const TOGETHER = 5;

/** @param {object} run */
export function series(run) {
  if (!run.series) return null;
  const parts = [queues(run), rates(run)].filter(Boolean);
  return el("div", {}, run.series.said && el("p", { class: "note" }, `Shown: ${run.series.said}.`), parts);
}

/** A line of a column that has one line after the other. */
export function lineOf(run, name, k) {
  const times = run.columns.series_at.length;
  return run.columns[name].slice(k * times, (k + 1) * times);
}

const nameOf = (run, link) => `${run.fabric.nodes[run.columns.link_src[link]]} → ${run.fabric.nodes[run.columns.link_dst[link]]}`;

/** What was kept of one link over time: its queue, and what was marked, dropped and paused. */
export function queueOf(run, k) {
  const x = run.columns.series_at;
  const name = nameOf(run, run.series.links[k]);
  const line = (column, label) => ({ label, values: lineOf(run, column, k), steps: true });
  const about = (title, lines, formatY) => figure(title, `${title} of ${name}`, { x, series: lines.filter((one) => one.values.some((y) => y > 0)), formatX: time, formatY });
  const happened = [line("series_marks", "marked"), line("series_drops", "dropped")];
  const pauses = line("series_pause", "paused");
  return el("div", { class: "two" }, about("Queue", [{ ...line("series_queue", name), steps: false }], amount), about("Sent", [line("series_sent", name)], rate),
    happened.some((one) => one.values.some((y) => y > 0)) && about("Packets between two times", happened, count),
    pauses.values.some((y) => y > 0) && about("Paused between two times", [pauses], time));
}

/** The lines that go highest, highest first. */
function highest(run, name, count_) {
  const peaks = Array.from({ length: count_ }, (_, k) => ({ k, peak: lineOf(run, name, k).reduce((a, b) => Math.max(a, b), 0) }));
  return peaks.sort((a, b) => b.peak - a.peak).map((one) => one.k);
}

function choice(label, together, names, show) {
  const place = el("div", {});
  const draw = (chosen) => place.replaceChildren(show(chosen));
  draw(-1);
  const options = [el("option", { value: -1 }, together), ...names.map((name, k) => el("option", { value: k }, name))];
  const select = el("select", { "aria-label": label, onchange: (event) => draw(Number(event.target.value)) }, options);
  return el("div", {}, el("p", {}, select), place);
}

function queues(run) {
  const { links } = run.series;
  if (!links.length) return null;
  const order = highest(run, "series_queue", links.length).slice(0, TOGETHER);
  const x = run.columns.series_at;
  const all = (column) => order.map((k) => ({ label: nameOf(run, links[k]), values: lineOf(run, column, k) }));
  const together = () => el("div", { class: "two" },
    figure("Queues over time", "queues", { x, series: all("series_queue"), formatX: time, formatY: amount }),
    figure("Marks between two times", "marks", { x, series: all("series_marks").map((one) => ({ ...one, steps: true })), formatX: time, formatY: count }));
  return choice("Link", order.length > 1 ? `the ${order.length} longest queues` : "all", links.map((link) => nameOf(run, link)), (k) => (k < 0 ? together() : queueOf(run, k)));
}

function rates(run) {
  const { names, windows } = run.series;
  if (!names.length) return null;
  const x = run.columns.series_at;
  const shown = (chosen) => {
    const order = chosen < 0 ? highest(run, "series_rate", names.length).slice(0, TOGETHER) : [chosen];
    const of = (column) => order.map((k) => ({ label: names[k], values: lineOf(run, column, k), steps: true }));
    return el("div", { class: "two" }, figure("Rates over time", "rates", { x, series: of("series_rate"), formatX: time, formatY: rate }),
      windows && figure("Windows over time", "windows", { x, series: of("series_window"), formatX: time, formatY: amount }),
      names.length > 1 && chosen < 0 && figure("Fairness of those that send (Jain's index)", "fairness", { x, series: [{ label: "1: all alike", values: fairness(run), steps: true }], formatX: time, formatY: (y) => y.toFixed(2), top: 1 }));
  };
  return choice("Rates of", names.length > TOGETHER ? `the ${TOGETHER} highest rates` : "all rates", names, shown);
}

/** The square of the sum over the sum of squares, times how many send; nothing where fewer than two do. */
export function fairness(run) {
  const lines = run.series.names.map((_, k) => lineOf(run, "series_rate", k));
  return Array.from(run.columns.series_at, (_, at) => {
    const sends = lines.map((line) => line[at]).filter((y) => y > 0);
    if (sends.length < 2) return null;
    const [sum, squares] = [sends.reduce((a, b) => a + b, 0), sends.reduce((a, b) => a + b * b, 0)];
    return (sum * sum) / (sends.length * squares);
  });
}
