/**
 * Figures and their data as files.
 * @module save
 */

import { button } from "report/dom.js";

/** Offer a file for download. */
export function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** A cell as CSV has it; what a spreadsheet would take for a formula is kept a text. */
function cell(value) {
  const text = typeof value === "string" && /^[=+\-@\t]/.test(value) ? `'${value}` : String(value ?? "");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows as CSV, the first with names. */
export const csv = (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

/** A button that saves rows, made when it is pressed. */
export function csvButton(name, rows) {
  return button("CSV", "Save the data", () => save(`${name}.csv`, "text/csv", csv(rows())));
}

/** A button that saves a figure, made when it is pressed. */
export function svgButton(name, drawn) {
  return button("SVG", "Save the figure", () => save(`${name}.svg`, "image/svg+xml", standing(drawn())));
}

/** An SVG element as a file of its own, with the colours that the page has now. */
function standing(node) {
  const copy = node.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const style = getComputedStyle(document.documentElement);
  const text = new XMLSerializer().serializeToString(copy);
  return text.replaceAll(/var\(--([a-z-]+)\)/g, (_, name) => style.getPropertyValue(`--${name}`).trim());
}
