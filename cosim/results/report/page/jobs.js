/**
 * Jobs beside one another: iteration times, and how they change.
 * @module jobs
 */

import { el, section, table } from "report/dom.js";
import { percent, rate, time } from "report/format.js";
import { figure } from "report/plot.js";

const MOST_SERIES = 5;

/** @param {object} run */
export function jobs(run) {
  const all = run.summary.jobs;
  const slowed = Object.keys(run.alone).length > 0;
  const several = all.some((job) => job.iterations_done > 1);
  if (all.length < 2 && !several) return null;
  const waited = run.summary.scheduling?.queue && run.summary.scheduling.waited_ps;
  const columns = [{ title: "job", text: true }, { title: "workload", text: true, optional: true }, { title: "ranks" }, { title: "iterations" },
    { title: "mean" }, { title: "min", optional: true }, { title: "max", optional: true }, { title: "exposed" }, { title: "compute", optional: true }, ...(waited ? [{ title: "arrived", optional: true }, { title: "waited" }] : []), ...(slowed ? [{ title: "alone" }, { title: "slowdown" }] : [])];
  const rows = all.map((job) => ({
    cells: [job.name, job.workload, job.num_ranks, `${job.iterations_done} of ${job.iterations_asked}`, time(job.iteration_mean_ps), time(job.iteration_min_ps),
      time(job.iteration_max_ps), percent(job.exposed.share), percent(job.compute.share), ...(waited ? [time(run.summary.scheduling.arrived_ps[job.name]), time(waited[job.name])] : []), ...(slowed ? slowdown(run, job) : [])],
  }));
  return section("jobs", "Jobs", null, null, table(columns, rows), decided(run), several && overTime(run), interleaving(run));
}

/** What a scheduler decided, as the terminal's page has it. */
function decided(run) {
  return run.decided.map((part) => {
    if (part.lines) return part.lines.map((line) => el("p", { class: "note" }, line));
    const [head, ...rows] = part.rows;
    return table(head.map((title, k) => ({ title, text: k === 0 })), rows.map((cells) => ({ cells })));
  });
}

/** A job's iteration by itself, and how many times longer it takes here. */
function slowdown(run, job) {
  const alone = run.alone[job.name];
  return alone && job.iteration_mean_ps ? [time(alone), `${(job.iteration_mean_ps / alone).toFixed(3)} x`] : ["-", "-"];
}

/** Who sends over the busiest links that several jobs share, and when. */
function interleaving(run) {
  if (!run.shared) return null;
  const { bins, bin_ps, rows } = run.shared;
  const end = run.summary.end_ps;
  const x = Array.from({ length: bins + 1 }, (_, k) => (k === bins ? end : k * bin_ps));
  const links = [...new Set(rows.map((one) => one.link))];
  const name = (link) => `${run.fabric.nodes[run.columns.link_src[link]]} → ${run.fabric.nodes[run.columns.link_dst[link]]}`;
  const rates = (row) => Array.from({ length: bins + 1 }, (_, k) => {
    const bin = Math.min(k, bins - 1);
    return (8e12 * run.columns.shared_sent_bytes[row * bins + bin]) / Math.max(1, (bin === bins - 1 ? end : (bin + 1) * bin_ps) - bin * bin_ps);
  });
  const drawn = (link) => {
    const series = rows.map((one, row) => ({ ...one, row })).filter((one) => one.link === link).slice(0, MOST_SERIES)
      .map((one) => ({ label: run.summary.jobs[one.job].name, values: rates(one.row), steps: true }));
    return figure(`Who shares ${name(link)}: what each sends over it`, "shared-link", { x, series, formatX: time, formatY: rate, top: Math.max(run.columns.link_rate[link], ...series.flatMap((one) => one.values)) });
  };
  const place = el("div", {}, drawn(links[0]));
  const options = links.map((link, k) => el("option", { value: k }, name(link)));
  const select = el("select", { "aria-label": "Shared link", onchange: (event) => place.replaceChildren(drawn(links[event.target.value])) }, options);
  return el("div", {}, el("p", {}, select), place);
}

/** Iteration times over time: each counts from when it began to when it ended. */
function overTime(run) {
  const shown = run.summary.jobs.map((job, k) => ({ job, ends: run.columns[`iteration_${k}`] })).filter(({ ends }) => ends.length > 2).slice(0, MOST_SERIES);
  const x = Float64Array.from(new Set(shown.flatMap(({ ends }) => [...ends]))).sort();
  const series = shown.map(({ job, ends }) => ({ label: job.name, steps: true, values: stepped(x, ends) }));
  const about = { x, series, formatX: time, formatY: time, nameX: "time" };
  const left = run.summary.jobs.length - shown.length;
  return el("div", {}, figure("Iteration time over the run", "iterations-over-time", about),
    left > 0 && el("p", { class: "note" }, `${shown.length} of ${run.summary.jobs.length} jobs are drawn.`));
}

function stepped(x, ends) {
  let k = 0;
  return Array.from(x, (at) => {
    while (k < ends.length - 2 && ends[k + 1] <= at) k++;
    return at < ends[0] || at > ends[ends.length - 1] ? null : ends[k + 1] - ends[k];
  });
}
