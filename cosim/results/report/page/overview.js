/**
 * The first screen: the answer to what was asked. What that is depends on the run: goodput of a training, jobs
 * beside one another, tokens of a request, what events cost, or how long an iteration takes and what limits it.
 * @module overview
 */

import { groupsOf, named } from "report/alike.js";
import { doubtful, el, meter, section, table } from "report/dom.js";
import { amount, count, flops, percent, time } from "report/format.js";
import { lifetime } from "report/lifetime.js";
import { csvButton } from "report/save.js";
import { bottleneck } from "report/tiers.js";

const PARTS = [["compute", "compute", "computation"], ["exposed", "accent", "exposed communication"],
  ["memory", "memory", "remote memory"], ["host_alone", "host", "host-bound"], ["idle", "idle", "idle"]];
const EXPOSED = { receive: "waiting to receive", send: "exposed send" };
const MOST_JOBS = 8;
const MOST_OF_A_QUEUE = 3;

/** @param {object} run @param {string} [which] `a` or `b` where there are two */
export function overview(run, which = "") {
  const s = run.summary;
  const alike = groupsOf(s.jobs.map((job, k) => k), (k) => [s.jobs[k].limit, s.jobs[k].num_ranks, time(s.jobs[k].iteration_mean_ps), percent(s.jobs[k].exposed.share)]);
  const shown = alike.slice(0, run.queued.length ? MOST_OF_A_QUEUE : MOST_JOBS);
  const left = s.jobs.length - shown.flat().length;
  const cost = `${time(s.end_ps)} simulated in ${s.wall_s.toFixed(2)} s, ${count(s.num_messages)} messages, ${amount(s.traffic.total_bytes)} of traffic`;
  const rows = () => [["job", "iteration", "time_ps"],
    ...s.jobs.flatMap((job) => job.iteration_ps.map((one, k) => [job.name, k, one]))];
  return section(`answer${which}`, which ? `Answer of ${which}` : "Answer", cost, csvButton("iterations", rows),
    s.doubts.length > 0 && doubtful(s.doubts.map((one) => [one.what, `${one.why} (${one.instead})`])),
    s.interrupted && el("p", { class: "changed" }, `Interrupted (${s.interrupted}): what follows was computed until then.`),
    run.queued.map((line, k) => el("p", { class: k ? "" : "said" }, line)),
    run.queued.length > 0 && el("p", {}, `Of all endpoints and all the time ${percent(run.computing)} computed.`),
    s.jobs.length > 1 && !run.queued.length && besideOneAnother(run),
    run.events.length > 0 && happened(run),
    el("p", { class: "question" }, bottleneck(run)),
    shown.map(([k, ...others]) => jobCard(s.jobs[k], s.jobs.length > 1 && named(s.jobs[k].name, others.length + 1), run.exposed[k])),
    left > 0 && el("p", { class: "note" }, `... and ${left} more jobs, below under Jobs`));
}

/** Which job suffers: each beside itself alone where that was run. */
function besideOneAnother(run) {
  const jobs = run.summary.jobs.filter((job) => job.iterations_done > 0);
  if (jobs.length < 2) return null;
  const slowed = (job) => (run.alone[job.name] ? job.iteration_mean_ps / run.alone[job.name] : null);
  const known = jobs.some((job) => slowed(job));
  const order = [...jobs].sort((a, b) => (known ? slowed(b) - slowed(a) : b.exposed.share - a.exposed.share));
  const most = known ? Math.max(...jobs.map(slowed)) : 1;
  const columns = [{ title: "job", text: true, long: true }, { title: "iteration" }, ...(known ? [{ title: "alone", optional: true }, { title: "takes" }] : []), { title: "waits for communication" }, { title: "", text: true, optional: true }];
  return el("div", {}, el("p", { class: "said" }, suffers(order[0], slowed(order[0]))),
    table(columns, order.slice(0, MOST_JOBS).map((job) => ({
      cells: [job.name, time(job.iteration_mean_ps), ...(known ? [time(run.alone[job.name] ?? null), slowed(job) ? `${slowed(job).toFixed(3)} x` : "-"] : []), percent(job.exposed.share), meter(known ? slowed(job) / most : job.exposed.share)],
    }))),
    !known && el("p", { class: "note" }, "How much of that comes from the other jobs: cosim run --alone runs each by itself, too."));
}

function suffers(job, times) {
  if (times === null) return `${job.name} waits longest for communication: ${percent(job.exposed.share)} of its time.`;
  if (times <= 1.0005) return "No job is slower than by itself.";
  return `${job.name} suffers most: its iteration takes ${times.toFixed(3)} times as long as by itself.`;
}

/** What each event cost the iterations that it touched. */
function happened(run) {
  const s = run.summary;
  const named = (job) => (s.jobs.length > 1 ? `${s.jobs[job].name}: ` : "");
  const some = (numbers, all) => (all === 1 ? `iteration ${numbers[0]}` : `${all} iterations (${numbers.join(", ")}${all > numbers.length ? " ..." : ""})`);
  const when = (event) => event.spans.slice(0, 3).map(([a, b]) => `${time(a)} to ${b >= s.end_ps ? "the end" : time(b)}`).join(", ") + (event.spans.length > 3 ? ` and ${event.spans.length - 3} times more` : "");
  const cost = (one) => {
    const more = one.hit_ps - one.base_ps;
    const least = one.base_share > 0.0005 ? `, which events touched least (${percent(one.base_share)} of it), so this is a lower bound` : ", which no event touched";
    const which = some(one.hit, one.hits);
    return `${named(one.job) || which[0].toUpperCase()}${named(one.job) ? which : which.slice(1)} took ${time(one.hit_ps)}: ${time(Math.abs(more))} (${percent(Math.abs(more) / one.base_ps)}) ${more < 0 ? "less" : "more"} than ${some(one.base, one.bases)} with ${time(one.base_ps)}${least}.`;
  };
  return el("div", {}, el("h3", {}, "What happened, and what it cost"), run.events.map((event, k) => el("div", {},
    el("p", {}, el("b", {}, `${event.name} ${event.what}`), `, ${when(event)}`),
    event.jobs.length ? event.jobs.slice(0, 4).map((one, j) => el("p", { class: k || j ? "" : "said" }, cost(one))) : el("p", { class: "note" }, "Its cost shows beside a run without it: cosim compare."))));
}

function jobCard(job, named, exposed) {
  return el("div", { class: "job" }, named && el("h3", {}, named),
    job.training ? [lifetime(job), el("h3", {}, "One iteration")] : null,
    job.request && el("p", { class: "said" }, answers(job.request)),
    job.limit && el("p", { class: job.training || job.request ? "" : "said" }, `Limited by ${job.limit}.`),
    el("div", { class: "facts" }, factsOf(job).map(([value, text]) => el("div", { class: "fact" }, el("b", {}, value), el("span", {}, text)))),
    iterationBar(job, exposed),
    job.stragglers.length > 0 && el("p", { class: "note" }, late(job.stragglers[0])));
}

function answers(request) {
  const further = request.further_token_ps === null ? "" : `, each further one takes ${time(request.further_token_ps)}`;
  return `The first token comes after ${time(request.first_token_ps)}${further}: ${count(request.tokens_per_s)} tokens a second, ${count(request.sequences)} sequence${request.sequences === 1 ? "" : "s"} at once.`;
}

function factsOf(job) {
  const mean = `mean of ${job.iterations_done} iteration${job.iterations_done === 1 ? "" : "s"}`;
  const facts = [[time(job.iteration_mean_ps), job.interval_ps ? `an iteration; 80 % of such iterations take ${time(job.interval_ps[0])} to ${time(job.interval_ps[1])}` : `an iteration, ${mean}`]];
  if (job.request) facts.unshift([time(job.request.first_token_ps), "until the first token"], ...(job.request.further_token_ps === null ? [] : [[time(job.request.further_token_ps), "each further token"]]), [count(job.request.tokens_per_s), "tokens a second"]);
  if (job.communication.mean_ps > 0) {
    facts.push([percent(job.exposed.share), "of the ranks' time waits for communication"]);
    if (job.free_communication_speedup) facts.push([`${job.free_communication_speedup.toFixed(2)} x`, `faster at most if communication were free (${time(job.free_communication_iteration_ps)})`]);
  }
  facts.push([count(job.num_ranks), job.num_ranks === 1 ? "rank" : "ranks"]);
  if (job.flops_utilisation !== null) facts.push([percent(job.flops_utilisation), `of what its GPUs could do (${counted(job)})`]);
  else if (job.flops_per_gpu_s) facts.push([flops(job.flops_per_gpu_s), `a GPU (${counted(job)})`]);
  if (job.tokens_per_gpu_s !== null) facts.push([count(job.tokens_per_gpu_s), "tokens a second on each GPU"]);
  if (job.memory) facts.push([amount(job.memory.size_bytes), "to and from remote memory, by the ranks that are simulated"]);
  if (job.work?.memory_bytes) facts.push([amount(job.work.memory_bytes), job.work.memory_of_bytes ? `on the fullest GPU, ${percent(job.work.memory_bytes / job.work.memory_of_bytes)} of what it has` : "on the fullest GPU"]);
  return facts;
}

const counted = (job) => (job.work.counted === "model" ? "model FLOPs utilisation" : "FLOPs of its kernels, computed again or not");
const perIteration = (job, ps) => (job.iterations_done ? ps / job.iterations_done : ps);

function late(one) {
  return `Rank ${one.rank} was last at ${count(one.times_last)} collective${one.times_last === 1 ? "" : "s"}; others waited up to ${time(one.waited_ps)} in all.`;
}

/**
 * Where an iteration's time went, mean over ranks; exposed communication by what was sent, where that is known.
 * The parts add up to the iteration: a rank that ends before the last one has done so far nothing.
 * @param {object} job @param {Object<string, number>} [exposed] picoseconds of each kind
 */
export function iterationBar(job, exposed = {}) {
  const whole = (key) => (key === "memory" ? job.memory?.alone : job[key]);
  const kinds = Object.entries(exposed).sort((a, b) => b[1] - a[1]);
  const split = ([key, shade, text]) => {
    const ps = perIteration(job, whole(key)?.mean_ps ?? 0);
    if (key !== "exposed" || !kinds.length || !ps) return [{ shade, text, ps, strong: 1 }];
    const all = kinds.reduce((sum, [, own]) => sum + own, 0);
    return kinds.map(([kind, own], k) => ({ shade, text: EXPOSED[kind] ?? `exposed ${kind.replaceAll("_", "-")}`, ps: (ps * own) / all, strong: 1 - (0.65 * k) / kinds.length }));
  };
  const parts = PARTS.flatMap(split);
  const sum = parts.reduce((all, part) => all + part.ps, 0);
  const long = Math.max(job.iteration_mean_ps ?? 0, sum);
  parts.push({ shade: "idle", text: "after a rank's end, before the last one's", ps: long - sum, strong: 1 });
  const seen = parts.filter((part) => part.ps > 0.0005 * long).map((part) => ({ ...part, share: part.ps / long }));
  const words = seen.map((part) => `${part.text} ${percent(part.share)}`).join(", ");
  return el("div", {},
    el("div", { class: "bar", role: "img", "aria-label": words },
      seen.map((part) => el("i", { style: `width:${100 * part.share}%;background:var(--${part.shade});opacity:${part.strong}`, title: part.text }))),
    el("div", { class: "key" }, seen.map((part) =>
      el("span", {}, el("i", { style: `background:var(--${part.shade});opacity:${part.strong}` }), `${part.text} ${time(part.ps)}, ${percent(part.share)}`))));
}
