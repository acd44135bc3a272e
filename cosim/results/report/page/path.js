/**
 * The critical path as a list: what it is made of, and its longest steps.
 * @module path
 */

import { groupsOf, named } from "report/alike.js";
import { el, meter, section, table } from "report/dom.js";
import { count, percent, time } from "report/format.js";
import { csvButton } from "report/save.js";

const LONGEST = 20;
const MOST_JOBS = 8;

/**
 * @param {object} run
 * @param {?(step: object) => void} show has the timeline show a step
 * @param {string} [which]
 */
export function path(run, show, which = "") {
  const steps = stepsOf(run);
  if (!steps.length) return null;
  const jobs = run.summary.jobs;
  const there = groupsOf([...jobs.keys()].filter((k) => run.paths[k].parts.length > 0), (k) => cellsOf(run.paths[k].parts));
  const few = there.slice(0, MOST_JOBS);
  const left = there.flat().length - few.flat().length;
  const longest = [...steps].sort((a, b) => b.time - a.time).slice(0, LONGEST);
  const messages = longest.some((step) => step.between);
  const begins = jobs.map((_, k) => run.columns[`iteration_${k}`]?.at(-2) ?? 0);
  const several = jobs.length > 1;
  const note = "Of the last iteration, from its start: what followed what, without a gap. A part that took no time would bring at most its time: another path may be as long.";
  return section(`path${which}`, which ? `Critical path of ${which}` : "Critical path", note, csvButton("critical-path", () => rows(steps)),
    few.map(([k, ...others]) => parts(run.paths[k].parts, several && named(jobs[k].name, others.length + 1))),
    left > 0 && el("p", { class: "note" }, `... and ${left} more jobs, in the CSV`),
    folded(which, `${longest.length < steps.length ? `The ${longest.length} longest of ${count(steps.length)} steps` : "All steps, the longest first"}${show ? "; choose one to see it in the timeline" : ""}`,
    table([{ title: "operation", text: true, long: true }, ...(several ? [{ title: "job", text: true }] : []), { title: "rank" }, ...(messages ? [{ title: "message", text: true, optional: true }] : []),
      { title: "starts" }, { title: "takes" }],
    longest.map((step) => ({
      cells: [step.name, ...(several ? [jobs[step.job].name] : []), step.rank, ...(messages ? [step.between] : []), time(step.start - begins[step.job]), time(step.time)],
      click: show ? () => show(step) : null,
    })))));
}

/** Beside another run's, tables are folded. */
const folded = (which, title, content) => (which ? el("details", {}, el("summary", {}, title), content) : [el("h3", {}, title), content]);

/** Parts of a path as texts; the share of each comes first. */
function cellsOf(all) {
  const total = all.reduce((sum, part) => sum + part.time_ps, 0);
  return all.map((part) => [part.time_ps / total, part.what, percent(part.time_ps / total), time(part.time_ps), count(part.steps)]);
}

function parts(all, name) {
  return el("div", {}, name && el("h3", {}, name),
    table([{ title: "on the path", text: true }, { title: "", text: true, optional: true }, { title: "share" },
      { title: "brings at most" }, { title: "steps", optional: true }],
    cellsOf(all).map(([share, what, ...cells]) => ({ cells: [what, meter(share), ...cells] }))));
}

/** Every step of the critical paths of all jobs. */
export function stepsOf(run) {
  const c = run.columns;
  if (!("path_start" in c)) return [];
  const node = (number) => run.fabric.nodes[number] ?? "";
  return Array.from(c.path_start, (start, k) => ({
    job: c.path_job[k], lane: c.path_lane[k], rank: c.path_number[k], op: c.path_op[k], kind: run.path_kinds[c.path_kind[k]],
    name: run.path_texts[c.path_name[k]], start, time: c.path_time[k], src: c.path_src[k], dst: c.path_dst[k],
    between: c.path_src[k] < 0 ? "" : c.path_src[k] === c.path_dst[k] ? `at ${node(c.path_src[k])}` : `${node(c.path_src[k])} to ${node(c.path_dst[k])}`,
  }));
}

function rows(steps) {
  const names = ["job", "rank", "kind", "name", "src", "dst", "start", "time"];
  return [names.map((one) => (one === "start" || one === "time" ? `${one}_ps` : one)), ...steps.map((step) => names.map((one) => step[one]))];
}
