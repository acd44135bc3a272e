/**
 * The page: unpacks its data and shows the parts that there are data for.
 * @module main
 */

import { el } from "report/dom.js";
import { unpack } from "report/data.js";
import { overview } from "report/overview.js";
import { timeline } from "report/timeline.js";
import { path } from "report/path.js";
import { fabric } from "report/fabric.js";
import { network } from "report/network.js";
import { jobs } from "report/jobs.js";
import { showEvents } from "report/plot.js";
import { comparison } from "report/comparison.js";
import { decision } from "report/decision.js";
import { sweep } from "report/sweep.js";

/** Show the report. */
export async function start() {
  const place = document.getElementById("report");
  try {
    const data = await unpack(document.getElementById("data").textContent);
    if (data.runs?.length === 1) await answerFirst(data, place);
    place.replaceChildren(...(data.decision ? decided(data) : data.sweep ? swept(data) : data.runs.length > 1 ? two(data) : one(data)));
    document.documentElement.dataset.shown = "yes";
    performance.mark("shown");
  } catch (error) {
    place.replaceChildren(el("p", {}, `The page can't be shown: ${error.message}`));
    throw error;
  }
}

/** Have the answer painted before all else is drawn. */
async function answerFirst(data, place) {
  const [run] = data.runs;
  run.answer = overview(run);
  place.replaceChildren(...laid(data, title(run), [run.answer]));
  await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  performance.mark("answered");
}

function one(data) {
  const run = data.runs[0];
  showEvents(run.events);
  const line = timeline([run]);
  return laid(data, title(run), [
    run.answer, line.section, path(run, line.show), run.columns.link_bytes.some((sent) => sent > 0) && fabric(run), network(run), jobs(run), settings(run),
  ]);
}

function two(data) {
  const called = data.runs.map((run) => run.summary.name || "run");
  const names = called[0] === called[1] && data.runs.every((run) => run.place) ? data.runs.map((run) => run.place) : called;
  const line = timeline(data.runs);
  const parts = data.runs.flatMap((run, k) => {
    const id = "ab"[k];
    return [overview(run, id), path(run, k ? null : line.show, id), fabric(run, id)];
  });
  return laid(data, [el("h1", {}, names.join(" against ")), about(data.runs[0], "a: "), about(data.runs[1], "b: ")], [
    comparison(data, line.showBoth, line.section), ...parts,
  ]);
}

function swept(data) {
  return laid(data, [el("h1", {}, data.sweep.name || "sweep"), el("p", { class: "question" }, data.sweep.question)], [sweep(data)]);
}

function decided(data) {
  return laid(data, [el("h1", {}, data.decision.name), el("p", { class: "question" }, data.decision.question)], decision(data.decision));
}

function laid(data, head, parts) {
  const shown = parts.filter(Boolean);
  const links = shown.map((part) => el("a", { href: `#${part.id}` }, part.querySelector("h2").textContent));
  const foot = el("p", { class: "note" }, `Made by cosim ${data.version}. One file: it needs no network.`);
  return [...head, el("nav", { "aria-label": "Parts" }, links), ...shown, foot];
}

function title(run) {
  return [el("h1", {}, run.summary.name || "run"), el("p", { class: "question" }, run.question), about(run, "")];
}

function about(run, which) {
  const s = run.summary;
  const words = [
    `${s.topology}, ${s.num_endpoints.toLocaleString("en")} endpoints`, `network ${s.network}`, `release ${s.release}`,
    `seed ${s.seed}`, `digest ${s.digest.slice(0, 16)}`, run.place,
  ];
  return el("p", { class: "note" }, which + words.filter(Boolean).join(" · "));
}

function settings(run) {
  const s = run.summary;
  const reports = [["topology", s.topology_report], ...s.jobs.map((job) => [`workload of ${job.name}`, job])];
  const lines = reports.flatMap(([name, said]) =>
    ["read", "ignored", "assumed"].filter((key) => said[key]?.length)
      .map((key) => el("p", { class: "note" }, `${name}, ${key}: ${said[key].join(", ")}`)));
  const notes = s.warnings.map((warning) => el("p", {}, warning));
  if (!run.settings && !lines.length && !notes.length) return null;
  return el("section", { id: "settings" }, el("div", { class: "head" }, el("h2", {}, "Scenario")),
    notes, run.settings && el("pre", { class: "box", tabindex: 0 }, run.settings), lines);
}
