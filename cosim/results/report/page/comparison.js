/**
 * Two runs: what was set differently, what came of it.
 * @module comparison
 */

import { el, section, table } from "report/dom.js";
import { count, percent, rate, signedTime, size, time } from "report/format.js";
import { iterationBar } from "report/overview.js";
import { csvButton } from "report/save.js";
import { tiersOf } from "report/tiers.js";

const MOST_ROWS = 40;
const MOST_MOVED = 12;
const COMPUTES = new Set(["compute", "memory", "remote"]);
const UNITS = { ps: time, bytes: size, bps: rate, share: percent };

/**
 * @param {object} data
 * @param {(ops: number[]) => void} show has both timelines show an operation
 * @param {HTMLElement} timelines
 */
export function comparison(data, show, timelines) {
  const c = data.comparison;
  const different = c.rows.filter((row) => row.told && row.a !== row.b);
  return section("comparison", "What differs", null, csvButton("differences", () => rows(different)),
    el("p", { class: "said" }, c.said?.sentence),
    c.said?.lines.map((line) => el("p", {}, line)),
    bars(data.runs), timelines,
    c.settings?.length > 0 && [el("h3", {}, "Set differently"), table([{ title: "setting", text: true, long: true }, { title: "a", text: true, long: true }, { title: "b", text: true, long: true }],
      c.settings.map((one) => ({ cells: [one.key, shown(one.a), shown(one.b)] })))],
    moved(data.runs), shifted(data.runs, show), changedTiers(data.runs), changedLinks(data.runs),
    different.length > 0 && folded("Came out differently", numbers(different)));
}

const folded = (title, ...content) => el("details", {}, el("summary", {}, title), content);

/** An iteration of each job that both have, as two bars of one scale. */
function bars([a, b]) {
  const found = a.summary.jobs.flatMap((job, k) => {
    const other = b.summary.jobs.findIndex((one) => one.name === job.name);
    if (other < 0 || !job.iteration_mean_ps || !b.summary.jobs[other].iteration_mean_ps) return [];
    return [[[a, k], [b, other]].map(([run, number]) => ({ job: run.summary.jobs[number], exposed: run.exposed[number] }))];
  }).slice(0, 4);
  return found.map((two) => {
    const most = Math.max(...two.map(({ job }) => job.iteration_mean_ps));
    return [a.summary.jobs.length > 1 && el("h3", {}, two[0].job.name), two.map(({ job, exposed }, k) =>
      el("div", { class: "pair" }, el("p", {}, el("b", {}, "ab"[k]), ` ${time(job.iteration_mean_ps)} an iteration`), el("div", { style: `width:${(100 * job.iteration_mean_ps) / most}%` }, iterationBar(job, exposed))))];
  });
}

/** How busy each tier is in both. */
function changedTiers(runs) {
  const [a, b] = runs.map((run) => new Map(tiersOf(run).map((tier) => [tier.name, tier])));
  const names = [...new Set([...a.keys(), ...b.keys()])];
  if (!names.length) return null;
  const busy = (tier) => (tier ? `${percent(tier.mean)}, busiest ${percent(tier.most)}` : "-");
  return [el("h3", {}, "Tiers of links: how busy"), table([{ title: "tier", text: true }, { title: "a" }, { title: "b" }], names.map((name) => ({ cells: [name, busy(a.get(name)), busy(b.get(name))] })))];
}

/** How the critical path of each job that both have moved, part by part. */
function moved(runs) {
  const [a, b] = runs;
  const parts = b.summary.jobs.flatMap((job, k) => {
    const before = a.summary.jobs.findIndex((one) => one.name === job.name);
    if (before < 0) return [];
    const times = (run, number) => new Map(run.paths[number].parts.map((part) => [`${part.kind}|${part.what}`, part]));
    const [one, other] = [times(a, before), times(b, k)];
    return [...new Set([...one.keys(), ...other.keys()])].map((key) => {
      const part = one.get(key) ?? other.get(key);
      return { job: job.name, what: part.what, sends: !COMPUTES.has(part.kind), a: one.get(key)?.time_ps ?? 0, b: other.get(key)?.time_ps ?? 0 };
    });
  }).filter((part) => part.a !== part.b).sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a)).slice(0, MOST_MOVED);
  if (!parts.length) return null;
  const named = b.summary.jobs.length > 1;
  const now = (part) => (part.a && part.b ? "" : part.b ? (part.sends ? "exposed now" : "there now") : part.sends ? "hidden now" : "gone");
  const columns = [...(named ? [{ title: "job", text: true }] : []), { title: "on the critical path", text: true, long: true }, { title: "", text: true, optional: !parts.some((part) => now(part)) }, { title: "a" }, { title: "b" }, { title: "b - a" }];
  return [el("h3", {}, "How the critical path moved"),
    table(columns, parts.map((part) => ({ cells: [...(named ? [part.job] : []), part.what, now(part), time(part.a), time(part.b), signedTime(part.b - part.a)] })))];
}

/** Operations of both timelines by job, rank and number, in the last iteration of each; when they begin in it. */
function lastOperations(run) {
  const c = run.columns;
  const found = new Map();
  for (let k = 0; k < c.op_lane.length; k++) {
    const lane = run.timeline.lanes[c.op_lane[k]];
    const ends = c[`iteration_${lane.job}`];
    if (c.op_iteration[k] !== ends.length - 2) continue;
    found.set(`${run.summary.jobs[lane.job].name}|${lane.rank}|${c.op_number[k]}`, { k, lane, start: c.op_start[k] - ends[ends.length - 2], time: c.op_time[k] });
  }
  return found;
}

function shifted(runs, show) {
  const [one, other] = runs.map(lastOperations);
  const both = [...one.entries()].filter(([key]) => other.has(key)).map(([key, a]) => ({ a, b: other.get(key) }))
    .filter(({ a, b }) => a.time !== b.time || a.start !== b.start);
  both.sort((x, y) => Math.abs(y.b.time - y.a.time) - Math.abs(x.b.time - x.a.time) || Math.abs(y.b.start - y.a.start) - Math.abs(x.b.start - x.a.start));
  if (!both.length) return null;
  const name = ({ k }) => runs[0].texts[runs[0].columns.op_name[k]];
  const columns = [{ title: "operation of the last iteration", text: true, long: true }, { title: "rank" }, { title: "begins in a", optional: true }, { title: "in b", optional: true }, { title: "takes in a" }, { title: "in b", optional: true }, { title: "b - a" }];
  return [el("h3", {}, `Operations that changed most, of ${count(both.length)}; choose one to see both`),
    table(columns, both.slice(0, MOST_MOVED).map(({ a, b }) => ({
      cells: [name(a), a.lane.rank, time(a.start), time(b.start), time(a.time), time(b.time), signedTime(b.time - a.time)], click: () => show([a.k, b.k]),
    })))];
}

function changedLinks(runs) {
  const shares = runs.map((run) => new Map(Array.from(run.columns.link_busy, (busy, link) => [`${run.fabric.nodes[run.columns.link_src[link]]} → ${run.fabric.nodes[run.columns.link_dst[link]]}`, busy / Math.max(run.summary.end_ps, 1)])));
  const rows = [...shares[0]].filter(([name]) => shares[1].has(name)).map(([name, a]) => ({ name, a, b: shares[1].get(name) }))
    .filter(({ a, b }) => Math.abs(b - a) > 0.005).sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
  if (!rows.length) return null;
  const points = (change) => `${change > 0 ? "+" : "-"}${(100 * Math.abs(change)).toFixed(1)} points`;
  return folded(`Links that changed most, of ${count(rows.length)}`, table([{ title: "link", text: true }, { title: "busy in a" }, { title: "in b" }, { title: "b - a" }],
    rows.slice(0, MOST_MOVED).map(({ name, a, b }) => ({ cells: [name, percent(a), percent(b), points(b - a)] }))));
}

const shown = (value) => (value === null ? "-" : typeof value === "object" ? JSON.stringify(value) : String(value));

function numbers(different) {
  const columns = [{ title: "", text: true, long: true }, { title: "", text: true, long: true }, { title: "a" }, { title: "b" }, { title: "b - a", optional: true }, { title: "b / a", optional: true }];
  const some = different.filter((row) => row.section !== "ranks").slice(0, MOST_ROWS);
  const left = different.length - some.length;
  return el("div", {}, table(columns, some.map((row) => ({ cells: [row.item, row.key.replaceAll(/_ps|_bytes|_bps/g, "").replaceAll(/[._]/g, " "), value(row.a, row), value(row.b, row), change(row), row.ratio === null ? "-" : row.ratio.toFixed(3)] }))),
    left > 0 && el("p", { class: "note" }, `... and ${left} more, in the CSV`));
}

const value = (one, row) => (one === null ? "-" : (UNITS[row.unit] ?? ((x) => x.toLocaleString("en")))(one));
const change = (row) => (row.difference === null ? "-" : row.unit === "ps" ? signedTime(row.difference) : row.unit === "share" ? `${row.difference > 0 ? "+" : "-"}${(100 * Math.abs(row.difference)).toFixed(1)} points` : `${row.difference > 0 ? "+" : "-"}${value(Math.abs(row.difference), row)}`);

function rows(different) {
  return [["section", "item", "key", "unit", "a", "b"], ...different.map((row) => [row.section, row.item, row.key, row.unit, row.a, row.b])];
}
