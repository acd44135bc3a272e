/**
 * Which design to choose: the winner and how sure that is, all of them beside one another, why others lose, what could happen.
 * @module decision
 */

import { button, doubtful, el, meter, narrow, section, sortedTable, svg, table } from "report/dom.js";
import { count, percent } from "report/format.js";
import { frontPlot } from "report/front.js";
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
  const facts = [[first.told[column(all, name)], `${all.columns[column(all, name)].text}; in 80 % of cases ${first.interval}`], ...all.columns.map((one, k) => [first.told[k], one.text]).filter((_, k) => all.columns[k].name !== name), [percent(first.best), "probability that it is the best"]];
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
  return section("ranking", "Ranking", note, [csvButton("ranking", saved), svgButton("ranking", () => bars)], el("div", { class: "map plain" }, bars), costs(all), sortedTable(columns, rows));
}

/** The first objective of each with its interval. */
function intervals(all) {
  const shown = all.ranked.slice(0, MOST_BARS);
  const k = column(all, all.objectives[0]);
  const long = (texts) => 7.4 * Math.max(...texts.map((text) => text.length));
  const [wide, tall] = [narrow() ? 430 : 900, 24];
  const [left, right] = [12 + long(shown.map((one) => short(`${named(one)} ?`))), 20 + long(shown.map((one) => one.told[k]))];
  const ends = shown.flatMap((one) => [one.low, one.high]);
  const room = 0.06 * (Math.max(...ends) - Math.min(...ends) || Math.abs(ends[0]) || 1);
  const [low, high] = [Math.min(...ends) - room, Math.max(...ends) + room];
  const x = (value) => left + ((value - low) / (high - low)) * (wide - left - right);
  const words = { "font-family": "system-ui, sans-serif", "font-size": 12.5, fill: "var(--ink)" };
  return svg("svg", { viewBox: `0 0 ${wide} ${tall * shown.length + 26}`, width: wide, height: tall * shown.length + 26, role: "img", "aria-label": `${all.objectives[0]} of each design, with intervals` },
    svg("text", { ...words, x: narrow() ? 0 : left, y: 14, fill: "var(--soft)" }, `${narrow() ? all.columns[k].name : all.columns[k].text} (${all.columns[k].more_is_better ? "more" : "less"} is better)`),
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

function short(text) {
  const most = narrow() ? 24 : 42;
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** What it takes against what it costs. */
function costs(all) {
  const names = all.columns.map((one) => one.name);
  const [a, b] = names.includes("price") && names.length > 1 ? [names.includes("iteration") ? "iteration" : names.find((one) => one !== "price"), "price"] : all.objectives.slice(0, 2);
  if (!b) return null;
  const two = [column(all, b), column(all, a)];
  const [along, up] = two.map((k) => all.columns[k]);
  const points = all.ranked.map((one) => ({ label: short(named(one)), told: `${named(one)}: ${one.told[two[0]]}, ${one.told[two[1]]}`, x: one.values[two[0]] / along.per, y: one.values[two[1]] / up.per }));
  const node = frontPlot({ points, names: [along, up].map((one) => `${one.text}${one.unit ? `, ${one.unit}` : ""}`), more: [along.more_is_better, up.more_is_better], wide: 900 });
  return node && el("div", {}, el("h3", {}, `${a} against ${b}: what no other beats in both is filled`), el("div", { class: "map plain" }, node), el("div", { class: "tools" }, svgButton("front", () => node)));
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
