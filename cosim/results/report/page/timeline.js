/**
 * The timeline: ranks by streams over time, with what filters, searches and folds them.
 * @module timeline
 */

import { button, el, section } from "report/dom.js";
import { count } from "report/format.js";
import { traceButtons } from "report/perfetto.js";
import { csvButton, svgButton } from "report/save.js";
import { NAMES } from "report/timeline_painting.js";
import { hostsOf } from "report/timeline_rows.js";
import { TimelineView } from "report/timeline_view.js";

const MOST_CHOICES = 200;

/**
 * @param {object[]} runs one, or two that are aligned by the beginning of the iteration shown
 * @returns {{section: HTMLElement, show: (step: object) => void, showBoth: (ops: number[]) => void}}
 */
export function timeline(runs) {
  const views = runs.map((run, k) => new TimelineView(run, runs.length > 1 ? "ab"[k] : ""));
  const all = (call) => () => views.forEach(call);
  const tools = [
    iterationChoice(views), messageChoice(views), foldChoice(views),
    button("−", "Zoom out (key -)", all((view) => view.zoom(2))), button("+", "Zoom in (key +)", all((view) => view.zoom(0.5))),
    button("all", "The whole run (key 0)", all((view) => view.whole())),
  ];
  const files = (view) => [csvButton(`timeline${view.which}`, () => view.csv()), svgButton(`timeline${view.which}`, () => view.figure()), ...traceButtons(view.run, view.which)];
  const two = (view) => [el("div", { class: "head" }, el("h3", {}, `${view.which}: ${view.run.summary.name || "run"}`), el("div", { class: "tools" }, files(view))), view.element];
  align(views);
  const note = "Time counts from the start of the iteration chosen, of jobs in a queue from the run's. Drag or arrows to move, Ctrl and the wheel, + or - to zoom, / to search. Communication is dark where its rank waits for it, pale where it is hidden by computation; the line below operations is the critical path.";
  const folded = (run) => new Set(run.summary.jobs.flatMap((job) => job.folding));
  const said = views.flatMap((view) => [...folded(view.run), view.run.timeline.said, view.run.messages?.said]).filter(Boolean).map((text) => el("p", { class: "note" }, `Summarised: ${text}.`));
  const part = section("timeline", "Timeline", note, [tools, views.length > 1 ? null : files(views[0])], said, el("div", { class: "filters" }, key(views), search(views)), views.map((view) => (views.length > 1 ? two(view) : view.element)));
  const look = () => part.scrollIntoView({ behavior: "smooth" });
  const show = (step) => (views[0].showStep(step), look());
  const showBoth = (ops) => (ops.forEach((k, n) => views[n]?.showOperation(k)), look());
  return { section: part, show, showBoth };
}

/** Have two runs on one scale, from the same host on. */
function align(views) {
  const longest = Math.max(...views.map((view) => view.to - view.from));
  for (const view of views) view.beyond(longest);
  const [top] = views[0].rows.titles.filter((one) => one.y >= views[0].scroll);
  for (const view of views.slice(1)) view.scroll = view.scrolled(view.rows.titles.find((one) => one.host === top?.host)?.y ?? view.scroll);
}

/** What is drawn in which colour; each is a button that takes it out, and back in. */
function key(views) {
  const there = new Set(views.flatMap((view) => view.shades()));
  const alone = ![...there].some((shade) => ["dp", "ep", "pp", "tp"].includes(shade));
  const entries = Object.entries(NAMES).filter(([shade]) => there.has(shade)).map(([shade, text]) => {
    const toggle = (event) => {
      const hidden = event.currentTarget.getAttribute("aria-pressed") === "true";
      event.currentTarget.setAttribute("aria-pressed", String(!hidden));
      views.forEach((view) => view.filter(shade, hidden));
    };
    return el("button", { type: "button", "aria-pressed": "true", title: "Show or hide it", onclick: toggle }, el("i", { style: `background:var(--${shade})` }), shade === "other" && alone ? "communication" : text);
  });
  return el("div", { class: "key", role: "group", "aria-label": "Shown in the timeline" }, entries);
}

/** A search that `/` leads to: what has not all of its words in its name is pale; Enter goes from one to the next. */
function search(views) {
  const told = el("output", {});
  const seek = () => {
    const found = views.map((view) => view.seek(input.value)).reduce((a, b) => a + b, 0);
    told.textContent = input.value.trim() ? `${count(found)} found` : "";
  };
  const keys = (event) => {
    if (event.key === "Enter") views.forEach((view) => view.next(event.shiftKey ? -1 : 1));
    if (event.key === "Escape") (input.value = ""), seek();
  };
  const input = el("input", { type: "search", placeholder: "Search operations ( / )", "aria-label": "Search operations", oninput: seek, onkeydown: keys });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest?.("input, textarea, select")) return;
    event.preventDefault();
    input.focus();
  });
  return el("span", { class: "search" }, input, told);
}

/** The last iterations of each job. */
function iterationChoice(views) {
  const run = views[0].run;
  const jobs = [...run.summary.jobs.keys()].filter((k) => run.summary.jobs[k].iterations_done > 0);
  if (!jobs.length || run.queued.length) return null; // jobs come and go: there is no iteration of all
  const choose = (event) => {
    const [job, number] = event.target.value.split(" ").map(Number);
    views.forEach((view) => view.showIteration(job, number));
    align(views);
  };
  const options = (job) => {
    const last = run.columns[`iteration_${job}`].length - 2;
    const first = Math.max(0, last + 1 - Math.ceil(MOST_CHOICES / jobs.length));
    return Array.from({ length: last + 1 - first }, (_, k) => el("option", { value: `${job} ${first + k}`, selected: job === jobs[0] && first + k === last ? "" : null }, `${jobs.length > 1 ? `${run.summary.jobs[job].name}, ` : ""}iteration ${first + k}`));
  };
  return el("select", { "aria-label": "Iteration", onchange: choose },
    jobs.length > 1 ? jobs.map((job) => el("optgroup", { label: run.summary.jobs[job].name }, options(job))) : options(jobs[0]));
}

/** Whether messages are shown below the ranks that sent them. */
function messageChoice(views) {
  if (!views.some((view) => view.run.messages)) return null;
  return el("label", { class: "choice" }, el("input", { type: "checkbox", onchange: (event) => views.forEach((view) => view.withMessages(event.target.checked)) }), " messages");
}

/** Whether hosts are folded; one alone by a click on its name. */
function foldChoice(views) {
  const [group] = views.flatMap((view) => hostsOf(view.run));
  if (!group) return null;
  const fold = (event) => views.forEach((view) => view.foldAll(event.target.checked));
  return el("label", { class: "choice" }, el("input", { type: "checkbox", checked: views.some((view) => view.folded.size) ? "" : null, onchange: fold }), ` fold ${group.startsWith("host") ? "hosts" : "switches"}`);
}
