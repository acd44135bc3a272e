/**
 * The first screen: how long an iteration takes, where its time goes, what limits it.
 * @module overview
 */

import { doubtful, el, section } from "report/dom.js";
import { count, flops, percent, size, time } from "report/format.js";
import { csvButton } from "report/save.js";

const PARTS = [["compute", "compute", "computation"], ["exposed", "accent", "exposed communication"],
  ["memory", "memory", "remote memory"], ["host_alone", "host", "host alone"], ["idle", "idle", "idle"]];
const EXPOSED = { receive: "waiting to receive: pipeline bubble", send: "exposed send" };
const MOST_JOBS = 8;
const MOST_OF_A_QUEUE = 3;

/** @param {object} run @param {string} [which] `a` or `b` where there are two */
export function overview(run, which = "") {
  const s = run.summary;
  const shown = s.jobs.slice(0, run.queued.length ? MOST_OF_A_QUEUE : MOST_JOBS);
  const left = s.jobs.length - shown.length;
  const cost = `${time(s.end_ps)} simulated in ${s.wall_s.toFixed(2)} s, ${count(s.num_messages)} messages, ${size(s.traffic.total_bytes)} of traffic`;
  const rows = () => [["job", "iteration", "picoseconds"],
    ...s.jobs.flatMap((job) => job.iteration_ps.map((one, k) => [job.name, k, one]))];
  return section(`answer${which}`, which ? `Answer of ${which}` : "Answer", cost, csvButton("iterations", rows),
    s.doubts.length > 0 && doubtful(s.doubts.map((one) => [one.what, `${one.why} (${one.instead})`])),
    s.interrupted && el("p", { class: "changed" }, `Interrupted (${s.interrupted}): what follows was computed until then.`),
    run.queued.map((line, k) => el("p", { class: k ? "" : "said" }, line)),
    run.queued.length > 0 && el("p", {}, `Of all endpoints and all the time ${percent(run.computing)} computed.`),
    shown.map((job, k) => jobCard(job, s.jobs.length > 1, run.exposed[k])),
    left > 0 && el("p", { class: "note" }, `... and ${left} more jobs, below under Jobs`));
}

function jobCard(job, named, exposed) {
  const iteration = job.iteration_mean_ps;
  const interval = job.interval_ps && `80 % of such iterations: ${time(job.interval_ps[0])} to ${time(job.interval_ps[1])}`;
  const facts = [
    [time(iteration), interval || `mean of ${job.iterations_done} iteration${job.iterations_done === 1 ? "" : "s"}`],
    [percent(job.exposed.share), `waits for communication, ${time(perIteration(job, job.exposed.mean_ps))} an iteration`],
    [job.free_communication_speedup ? `${job.free_communication_speedup.toFixed(2)} x` : "-",
      `faster at most, were communication free (${time(job.free_communication_iteration_ps)})`],
    [count(job.num_ranks), job.num_ranks === 1 ? "rank" : "ranks"],
  ];
  if (job.flops_utilisation !== null) facts.push([percent(job.flops_utilisation), `of what its GPUs could do (${counted(job)})`]);
  else if (job.flops_per_gpu_s) facts.push([flops(job.flops_per_gpu_s), `a GPU (${counted(job)})`]);
  if (job.tokens_per_gpu_s !== null) facts.push([count(job.tokens_per_gpu_s), "tokens a second and GPU"]);
  if (job.memory) facts.push([size(job.memory.size_bytes), "to and from remote memory, by the ranks that are simulated"]);
  if (job.work?.memory_bytes) facts.push([size(job.work.memory_bytes), job.work.memory_of_bytes ? `on the fullest GPU, of ${size(job.work.memory_of_bytes)}` : "on the fullest GPU"]);
  if (job.training) facts.push([percent(job.training.useful_ps / job.training.lasts_ps), "goodput of the training"]);
  return el("div", { class: "job" },
    named && el("h3", {}, job.name),
    job.limit && el("p", { class: "said" }, `Limited by ${job.limit}.`),
    el("div", { class: "facts" }, facts.map(([value, text]) => el("div", { class: "fact" }, el("b", {}, value), el("span", {}, text)))),
    iterationBar(job, exposed),
    job.stragglers.length > 0 && el("p", { class: "note" }, late(job.stragglers[0])));
}

const counted = (job) => (job.work.counted === "model" ? "model FLOPs utilisation" : "FLOPs of its kernels, computed again or not");
const perIteration = (job, ps) => (job.iterations_done ? ps / job.iterations_done : ps);

function late(one) {
  return `Rank ${one.rank} was last at ${count(one.times_last)} collective${one.times_last === 1 ? "" : "s"}; others waited up to ${time(one.waited_ps)} in all.`;
}

/**
 * Where the ranks' time went, on average; exposed communication by what was sent, where that is known.
 * @param {object} job @param {Object<string, number>} [exposed] picoseconds of each kind
 */
export function iterationBar(job, exposed = {}) {
  const whole = (key) => (key === "memory" ? job.memory?.alone : job[key]);
  const kinds = Object.entries(exposed).sort((a, b) => b[1] - a[1]);
  const split = ([key, shade, text]) => {
    const { mean_ps: ps, share } = whole(key) ?? { mean_ps: 0, share: 0 };
    if (key !== "exposed" || !kinds.length || !ps) return [{ shade, text, ps, share, strong: 1 }];
    const all = kinds.reduce((sum, [, own]) => sum + own, 0);
    return kinds.map(([kind, own], k) => ({ shade, text: EXPOSED[kind] ?? `exposed ${kind.replaceAll("_", "-")}`, ps: (ps * own) / all, share: (share * own) / all, strong: 1 - (0.65 * k) / kinds.length }));
  };
  const parts = PARTS.flatMap(split).filter((part) => part.share > 0).map((part) => ({ ...part, ps: perIteration(job, part.ps) }));
  const words = parts.map((part) => `${part.text} ${percent(part.share)}`).join(", ");
  return el("div", {},
    el("div", { class: "bar", role: "img", "aria-label": words },
      parts.map((part) => el("i", { style: `width:${100 * part.share}%;background:var(--${part.shade});opacity:${part.strong}`, title: part.text }))),
    el("div", { class: "key" }, parts.map((part) =>
      el("span", {}, el("i", { style: `background:var(--${part.shade});opacity:${part.strong}` }), `${part.text} ${time(part.ps)}, ${percent(part.share)}`))));
}

