/**
 * Jobs beside one another: iteration times, and how they change.
 * @module jobs
 */

import { el, section, table } from "report/dom.js";
import { percent, time } from "report/format.js";
import { plot, plotRows, plotted } from "report/plot.js";
import { csvButton, svgButton } from "report/save.js";

const MOST_SERIES = 5;

/** @param {object} run */
export function jobs(run) {
  const all = run.summary.jobs;
  const several = all.some((job) => job.iterations_done > 1);
  if (all.length < 2 && !several) return null;
  const columns = [{ title: "job", text: true }, { title: "workload", text: true, optional: true }, { title: "ranks" }, { title: "iterations" },
    { title: "mean" }, { title: "min", optional: true }, { title: "max", optional: true }, { title: "exposed" }, { title: "compute", optional: true }];
  const rows = all.map((job) => ({
    cells: [job.name, job.workload, job.num_ranks, `${job.iterations_done} of ${job.iterations_asked}`, time(job.iteration_mean_ps), time(job.iteration_min_ps),
      time(job.iteration_max_ps), percent(job.exposed.share), percent(job.compute.share)],
  }));
  return section("jobs", "Jobs", null, null, table(columns, rows), several && overTime(run));
}

/** Iteration times over time: each counts from when it began to when it ended. */
function overTime(run) {
  const shown = run.summary.jobs.map((job, k) => ({ job, ends: run.columns[`iteration_${k}`] })).filter(({ ends }) => ends.length > 2).slice(0, MOST_SERIES);
  const x = Float64Array.from(new Set(shown.flatMap(({ ends }) => [...ends]))).sort();
  const series = shown.map(({ job, ends }) => ({ label: job.name, steps: true, values: stepped(x, ends) }));
  const about = { x, series, formatX: time, formatY: time, nameX: "time" };
  const left = run.summary.jobs.length - shown.length;
  const tools = el("div", { class: "tools" }, csvButton("iterations-over-time", () => plotRows(about)), svgButton("iterations", () => plotted(about)));
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, "Iteration time over the run"), tools), plot(about),
    left > 0 && el("p", { class: "note" }, `${shown.length} of ${run.summary.jobs.length} jobs are drawn.`));
}

function stepped(x, ends) {
  let k = 0;
  return Array.from(x, (at) => {
    while (k < ends.length - 2 && ends[k + 1] <= at) k++;
    return at < ends[0] || at > ends[ends.length - 1] ? null : ends[k + 1] - ends[k];
  });
}
