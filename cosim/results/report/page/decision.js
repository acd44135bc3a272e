/**
 * Which design to choose: the winner and how sure that is, all of them beside one another, why others lose, what could happen.
 * @module decision
 */

import { button, doubtful, el, meter, scrolling, section, sortedTable, svg, table } from "report/dom.js";
import { count, percent } from "report/format.js";
import { csvButton, save, svgButton } from "report/save.js";

const SURE = 0.9;
const MOST_BARS = 24;
const MOST_LOST = 24;

/** @param {object} all what `decision_data` wrote @returns {HTMLElement[]} */
export function decision(all) {
  const [first] = all.ranked;
  if (!first) return [section("answer", "Answer", null, null, el("p", { class: "said" }, "No design that was run can be chosen."), lost(all))];
  return [answer(all, first), ranking(all), all.what_ifs.length > 0 && couldHappen(all), all.lost.length > 0 && section("lost", "Not in the ranking", null, null, lost(all)), winner(all, first)].filter(Boolean);
}

const named = (one) => one.labels.join(", ");

function answer(all, first) {
  const alike = all.ranked.slice(1).filter((one) => one.best > 0.05);
  const [name] = all.objectives;
  const doubted = all.ranked.filter((one) => one.doubtful);
  const safe = first.doubtful && all.ranked.find((one) => !one.doubtful);
  const how = first.best >= SURE ? `It is the best with a probability of ${percent(first.best)}.`
    : `It is the best with a probability of ${percent(first.best)} only${alike.length ? `; ${alike.slice(0, 3).map((one) => `${named(one)} with ${percent(one.best)}`).join("; ")}` : ""}.`;
  const facts = [[first.told[column(all, name)], `${name}, ${first.interval} in 80 % of cases`], ...all.columns.map((one, k) => [first.told[k], one.name]).filter(([, text]) => text !== name), [percent(first.best), "probability that it is the best"]];
  return section("answer", "Answer", `${count(all.points)} designs by ${all.objectives.join(", then ")}; ${all.verdict}.`, null,
    doubted.length > 0 && doubtful(doubted.slice(0, 6).map((one) => [one === first ? `${named(one)}, the winner` : named(one), one.doubtful])),
    all.interrupted && el("p", { class: "changed" }, `Interrupted (${all.interrupted}): of what was run until then.`),
    el("p", { class: "said" }, `Choose ${named(first)}${first.doubtful ? `, which is doubtful${safe ? `; the best without a doubt is ${named(safe)}` : ", as all are"}` : ""}. ${how}`),
    el("div", { class: "facts" }, facts.map(([value, text]) => el("div", { class: "fact" }, el("b", {}, value), el("span", {}, text)))));
}

const column = (all, name) => all.columns.findIndex((one) => one.name === name);

/** All that were run, the best first, with intervals; and as a table, to sort and to filter. */
function ranking(all) {
  const columns = [...all.axes.map((axis) => ({ title: axis, text: true })), ...all.columns.map((one) => ({ title: one.name })), { title: "best with" }, { title: "", text: true, optional: true }, { title: "why not", text: true, long: true, broad: true }];
  const rows = all.ranked.map((one, k) => ({
    cells: [...one.labels.slice(0, -1), `${one.labels.at(-1)}${one.doubtful ? " ?" : ""}`, ...one.told, percent(one.best), meter(one.best), k ? one.why : "the winner"],
    values: [...one.labels, ...one.values, one.best, one.best, one.why],
  }));
  const saved = () => [[...all.axes, ...all.columns.map((one) => one.name), "low_80", "high_80", "probability_best", "why_not", "doubtful"],
    ...all.ranked.map((one) => [...one.labels, ...one.values, one.low, one.high, one.best, one.why, one.doubtful])];
  const note = `Intervals hold 80 % of cases: ${all.seeds > 2 ? `the mean over ${all.seeds} seeds, and ` : ""}the compute model's error. What the network model is off by isn't in them. The table gives each design's difference from the winner.`;
  const bars = intervals(all);
  return section("ranking", "Ranking", note, [csvButton("ranking", saved), svgButton("ranking", () => bars)], scrolling(el("div", { class: "map plain" }, bars)), costs(all), sortedTable(columns, rows));
}

/** The first objective of each with its interval. */
function intervals(all) {
  const shown = all.ranked.slice(0, MOST_BARS);
  const k = column(all, all.objectives[0]);
  const [wide, tall, left, right] = [900, 24, 290, 150];
  const ends = shown.flatMap((one) => [one.low, one.high]);
  const room = 0.06 * (Math.max(...ends) - Math.min(...ends) || Math.abs(ends[0]) || 1);
  const [low, high] = [Math.min(...ends) - room, Math.max(...ends) + room];
  const x = (value) => left + ((value - low) / (high - low)) * (wide - left - right);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 12.5, fill: "var(--ink)" };
  return svg("svg", { viewBox: `0 0 ${wide} ${tall * shown.length + 26}`, width: wide, height: tall * shown.length + 26, role: "img", "aria-label": `${all.objectives[0]} of each design, with intervals` },
    svg("text", { ...words, x: left, y: 14, fill: "var(--soft)" }, `${all.columns[k].text} (${all.columns[k].more_is_better ? "more" : "less"} is better)`),
    shown.map((one, row) => {
      const y = 26 + tall * (row + 0.5);
      return svg("g", {}, svg("title", {}, `${named(one)}: ${one.told[k]}, ${one.interval}`),
        svg("text", { ...words, x: left - 12, y: y + 4, "text-anchor": "end", "font-weight": row ? 400 : 650 }, short(`${named(one)}${one.doubtful ? " ?" : ""}`)),
        svg("line", { x1: left, x2: wide - right, y1: y, y2: y, stroke: "var(--rule)" }),
        svg("line", { x1: x(one.low), x2: x(one.high), y1: y, y2: y, stroke: row ? "var(--accent-soft)" : "var(--accent)", "stroke-width": 6, "stroke-linecap": "round" }),
        svg("circle", { cx: x(one.values[k]), cy: y, r: 4.5, fill: "var(--ink)" }),
        svg("text", { ...words, x: wide - right + 14, y: y + 4, "font-weight": row ? 400 : 650 }, one.told[k]));
    }));
}

const short = (text) => (text.length > 42 ? `${text.slice(0, 41)}…` : text);

/** What it takes against what it costs; those that no other beats in both are filled, and joined. */
function costs(all) {
  const names = all.columns.map((one) => one.name);
  const [a, b] = names.includes("price") && names.length > 1 ? [names.includes("iteration") ? "iteration" : names.find((one) => one !== "price"), "price"] : all.objectives.slice(0, 2);
  if (!b) return null;
  const [p, q] = [column(all, b), column(all, a)];
  const points = all.ranked.map((one) => ({ one, x: one.values[p], y: one.values[q] }));
  const range = (values) => [Math.min(...values), Math.max(...values)];
  const [[x0, x1], [y0, y1]] = [range(points.map((at) => at.x)), range(points.map((at) => at.y))];
  if (x0 === x1 || y0 === y1) return null;
  const loss = (at) => [at.x * (all.columns[p].more_is_better ? -1 : 1), at.y * (all.columns[q].more_is_better ? -1 : 1)];
  const beaten = (at) => points.some((other) => loss(other).every((value, k) => value <= loss(at)[k]) && loss(other).some((value, k) => value < loss(at)[k]));
  const [wide, high, left, below] = [900, 290, 90, 46];
  const x = (value) => left + 16 + ((value - x0) / (x1 - x0)) * (wide - left - 260);
  const y = (value) => 38 + (1 - (value - y0) / (y1 - y0)) * (high - below - 60);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 12, fill: "var(--soft)" };
  const said = (k, value) => all.ranked.find((one) => one.values[k] === value).told[k];
  const front = points.filter((at) => !beaten(at)).sort((one, other) => one.x - other.x);
  const node = svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img", "aria-label": `${a} against ${b}` },
    svg("line", { x1: left, x2: wide - 40, y1: high - below, y2: high - below, stroke: "var(--rule)" }), svg("line", { x1: left, x2: left, y1: 22, y2: high - below, stroke: "var(--rule)" }),
    svg("polyline", { points: front.map((at) => `${x(at.x)},${y(at.y)}`).join(" "), fill: "none", stroke: "var(--accent-soft)", "stroke-width": 1.5 }),
    [...points].sort((one, other) => beaten(other) - beaten(one)).map((at) => svg("circle", { cx: x(at.x), cy: y(at.y), r: 5, fill: beaten(at) ? "var(--paper)" : "var(--accent)", stroke: "var(--accent)", "stroke-width": 1.5 }, svg("title", {}, `${named(at.one)}: ${at.one.told[p]}, ${at.one.told[q]}`))),
    front.map((at) => svg("text", { ...words, fill: "var(--ink)", x: x(at.x) + 9, y: y(at.y) - 7 }, short(named(at.one)))),
    [[x0, "start"], [x1, "end"]].map(([value, anchor]) => svg("text", { ...words, x: x(value), y: high - below + 17, "text-anchor": anchor }, said(p, value))),
    [y0, y1].map((value) => svg("text", { ...words, x: left - 8, y: y(value) + 4, "text-anchor": "end" }, said(q, value))),
    svg("text", { ...words, x: wide - 40, y: high - 8, "text-anchor": "end" }, `${b} →`), svg("text", { ...words, x: left - 8, y: 14 }, `↑ ${a}`));
  return el("div", {}, el("h3", {}, `${a} against ${b}: what no other beats in both is filled`), scrolling(el("div", { class: "map plain" }, node)), el("div", { class: "tools" }, svgButton("front", () => node)));
}

/** What could happen, to the first of the ranking. */
function couldHappen(all) {
  const heads = all.what_ifs[0].cells.map((cell) => named(cell));
  const [name] = all.objectives;
  const worse = (cell) => (all.columns[column(all, name)].more_is_better ? cell.change < 0 : cell.change > 0);
  const shown = (cell) => {
    if (cell.error) return el("span", { class: "note", title: cell.error }, `can't be: ${cell.error.split("\n")[0]}`);
    const change = cell.change === null ? "" : `${Math.abs(cell.change) < 0.0005 ? "±" : cell.change > 0 ? "+" : "−"}${percent(Math.abs(cell.change))}`;
    return [el("b", { class: worse(cell) && Math.abs(cell.change) > 0.0005 ? "changed" : "" }, change), ` ${cell.told}${cell.doubtful ? " ?" : ""}`];
  };
  return section("what-if", "What if", `${name} of the first ${heads.length} of the ranking.`, null,
    table([{ title: "", text: true, long: true }, ...heads.map((title) => ({ title, long: true }))], all.what_ifs.map((row) => ({ cells: [row.what, ...row.cells.map(shown)] }))));
}

function lost(all) {
  const left = all.lost.length - MOST_LOST;
  return el("div", {}, table([...all.axes.map((axis) => ({ title: axis, text: true })), { title: "why", text: true, long: true }], all.lost.slice(0, MOST_LOST).map((one) => ({ cells: [...one.labels, one.why] }))),
    left > 0 && el("p", { class: "note" }, `... and ${count(left)} more`));
}

/** How to run the winner: its scenario, to be saved. */
function winner(all, first) {
  if (!all.winner) return null;
  const copy = button("winner.yaml", "Save the winner's scenario", () => save("winner.yaml", "text/yaml", all.winner));
  return section("run", "Run the winner", `Save the scenario of ${named(first)} as winner.yaml, and run it:`, copy,
    el("pre", { class: "box", tabindex: 0 }, "cosim run winner.yaml --report winner.html"),
    el("details", {}, el("summary", {}, "winner.yaml"), el("pre", { class: "box", tabindex: 0 }, all.winner)));
}
