/**
 * The first screen: how long an iteration takes, where its time goes, what limits it.
 * @module overview
 */

import { el, section } from "report/dom.js";
import { count, percent, size, time } from "report/format.js";
import { csvButton } from "report/save.js";

const PARTS = [["compute", "compute", "computation"], ["exposed", "accent", "exposed communication"],
  ["host_alone", "memory", "host alone"], ["idle", "idle", "idle"]];
const MOST_JOBS = 8;

/** @param {object} run @param {string} [which] `a` or `b` where there are two */
export function overview(run, which = "") {
  const s = run.summary;
  const shown = s.jobs.slice(0, MOST_JOBS);
  const left = s.jobs.length - shown.length;
  const cost = `${time(s.end_ps)} simulated in ${s.wall_s.toFixed(2)} s, ${count(s.num_messages)} messages, ${size(s.traffic.total_bytes)} of traffic`;
  const rows = () => [["job", "iteration", "picoseconds"],
    ...s.jobs.flatMap((job) => job.iteration_ps.map((one, k) => [job.name, k, one]))];
  return section(`answer${which}`, which ? `Answer of ${which}` : "Answer", cost, csvButton("iterations", rows),
    s.interrupted && el("p", { class: "changed" }, `Interrupted (${s.interrupted}): what follows was computed until then.`),
    shown.map((job) => jobCard(job, s.jobs.length > 1)),
    left > 0 && el("p", { class: "note" }, `... and ${left} more jobs, below under Jobs`));
}

function jobCard(job, named) {
  const iteration = job.iteration_mean_ps;
  const interval = job.interval_ps && `80 % of such iterations: ${time(job.interval_ps[0])} to ${time(job.interval_ps[1])}`;
  const facts = [
    [time(iteration), interval || `mean of ${job.iterations_done} iteration${job.iterations_done === 1 ? "" : "s"}`],
    [percent(job.exposed.share), `waits for communication, ${time(perIteration(job, job.exposed.mean_ps))} an iteration`],
    [job.free_communication_speedup ? `${job.free_communication_speedup.toFixed(2)} x` : "-",
      `faster at most, were communication free (${time(job.free_communication_iteration_ps)})`],
    [count(job.num_ranks), job.num_ranks === 1 ? "rank" : "ranks"],
  ];
  if (job.training) facts.push([percent(job.training.useful_ps / job.training.lasts_ps), "goodput of the training"]);
  return el("div", { class: "job" },
    named && el("h3", {}, job.name),
    job.limit && el("p", { class: "said" }, `Limited by ${job.limit}.`),
    el("div", { class: "facts" }, facts.map(([value, text]) => el("div", { class: "fact" }, el("b", {}, value), el("span", {}, text)))),
    iterationBar(job),
    job.stragglers.length > 0 && el("p", { class: "note" }, late(job.stragglers[0])));
}

const perIteration = (job, ps) => (job.iterations_done ? ps / job.iterations_done : ps);

function late(one) {
  return `Rank ${one.rank} was last at ${count(one.times_last)} collective${one.times_last === 1 ? "" : "s"}; others waited up to ${time(one.waited_ps)} in all.`;
}

/** Where the ranks' time went, on average. */
export function iterationBar(job) {
  const parts = PARTS.map(([key, shade, text]) => ({ shade, text, ps: perIteration(job, job[key].mean_ps), share: job[key].share }))
    .filter((part) => part.share > 0);
  const words = parts.map((part) => `${part.text} ${percent(part.share)}`).join(", ");
  return el("div", {},
    el("div", { class: "bar", role: "img", "aria-label": words },
      parts.map((part) => el("i", { style: `width:${100 * part.share}%;background:var(--${part.shade})`, title: part.text }))),
    el("div", { class: "key" }, parts.map((part) =>
      el("span", {}, el("i", { style: `background:var(--${part.shade})` }), `${part.text} ${time(part.ps)}, ${percent(part.share)}`))));
}

