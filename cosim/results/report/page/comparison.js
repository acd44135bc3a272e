/**
 * Two runs: what was set differently, what came of it.
 * @module comparison
 */

import { el, section, table } from "report/dom.js";
import { percent, rate, signedTime, size, time } from "report/format.js";
import { csvButton } from "report/save.js";

const MOST_ROWS = 40;
const UNITS = { ps: time, bytes: size, bps: rate, share: percent };

/** @param {object} data */
export function comparison(data) {
  const c = data.comparison;
  const different = c.rows.filter((row) => row.told && row.a !== row.b);
  return section("comparison", "What differs", null, csvButton("differences", () => rows(different)),
    el("p", { class: "said" }, c.said?.sentence),
    c.said?.lines.map((line) => el("p", {}, line)),
    c.settings?.length > 0 && [el("h3", {}, "Set differently"), table([{ title: "setting", text: true }, { title: "a", text: true, long: true }, { title: "b", text: true, long: true }],
      c.settings.map((one) => ({ cells: [one.key, shown(one.a), shown(one.b)] })))],
    different.length > 0 && [el("h3", {}, "Came out differently"), numbers(different)]);
}

const shown = (value) => (value === null ? "-" : typeof value === "object" ? JSON.stringify(value) : String(value));

function numbers(different) {
  const columns = [{ title: "", text: true }, { title: "", text: true }, { title: "a" }, { title: "b" }, { title: "b - a" }, { title: "b / a" }];
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
