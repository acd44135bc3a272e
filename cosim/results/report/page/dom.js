/**
 * Elements. Texts only ever become text nodes, so that whatever a name has in it is shown and never run.
 * @module dom
 */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node|string|number|null|undefined|false} Child */

/**
 * An HTML element.
 * @param {string} tag
 * @param {Object<string, unknown>} [about] attributes; `on...` are listeners, `class` and `style` as in HTML
 * @param {...(Child|Child[])} children
 * @returns {HTMLElement}
 */
export function el(tag, about = {}, ...children) {
  return filled(document.createElement(tag), about, children);
}

/** An SVG element, as {@link el}. */
export function svg(tag, about = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), about, children);
}

function filled(node, about, children) {
  for (const [name, value] of Object.entries(about)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, String(value));
  }
  node.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

/** A part of the page with a heading, a note and buttons beside it. */
export function section(id, title, note, tools, ...children) {
  const head = el("div", { class: "head" }, el("h2", {}, title), el("div", { class: "tools" }, tools));
  return el("section", { id }, head, note && el("p", { class: "note" }, note), children);
}

/** The block that stands above an answer; of each doubt its subject and what is said of it. */
export function doubtful(doubts) {
  return el("div", { class: "doubtful", role: "note" }, el("b", {}, "doubtful:"),
    el("ul", {}, doubts.map(([what, why]) => el("li", {}, el("b", {}, what), `: ${why}`))));
}

/**
 * A table.
 * @param {Array<{title: string, text?: boolean, optional?: boolean, long?: boolean, broad?: boolean}>} columns
 * @param {Array<{cells: Child[], click?: () => void}>} rows
 */
export function table(columns, rows) {
  const kind = (c) => [c.text && "text", c.optional && "optional", c.long && "long", c.broad && "broad"].filter(Boolean).join(" ");
  const head = el("tr", {}, columns.map((c) => el("th", { class: kind(c), scope: "col" }, c.title)));
  const body = rows.map(({ cells, click }) => {
    const keys = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), click());
    const about = click ? { class: "link", tabindex: 0, onclick: click, onkeydown: keys } : {};
    return el("tr", about, cells.map((cell, k) => el("td", { class: kind(columns[k]) }, cell)));
  });
  return scrolling(el("div", { class: "wide" }, el("table", {}, el("thead", {}, head), el("tbody", {}, body))));
}

/** The same, which keys can scroll sideways wherever there is not room for all of it. */
export function scrolling(node) {
  const seen = new ResizeObserver(() => (node.scrollWidth > node.clientWidth ? node.setAttribute("tabindex", "0") : node.removeAttribute("tabindex")));
  [node, ...node.children].forEach((one) => seen.observe(one));
  return node;
}

/**
 * A table that is sorted by a click on a column's title, and shows the rows that have the words in them.
 * @param {Array<object>} columns as {@link table} takes them
 * @param {Array<{cells: Child[], values: Array<string|number|null>}>} rows `values` are what is sorted by
 */
export function sortedTable(columns, rows) {
  let [by, up] = [-1, true];
  let shown = [];
  const place = el("div", {});
  const words = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter rows", oninput: () => filter() });
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/);
    [...place.querySelectorAll("tbody tr")].forEach((row) => (row.hidden = !wanted.every((word) => row.textContent.toLowerCase().includes(word))));
  };
  const order = (a, b) => {
    const [one, other] = up ? [a.values[by], b.values[by]] : [b.values[by], a.values[by]];
    if (one === null || other === null) return (a.values[by] === null) - (b.values[by] === null);
    return typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
  };
  const draw = () => {
    shown = by < 0 ? rows : [...rows].sort(order);
    const heads = columns.map((column, k) => ({ ...column, title: column.title && el("button", { type: "button", class: "plain", onclick: () => ([by, up] = [k, by === k ? !up : true], draw()) }, column.title) }));
    place.replaceChildren(table(heads, shown));
    place.querySelectorAll("th").forEach((th, k) => k === by && th.setAttribute("aria-sort", up ? "ascending" : "descending"));
    filter();
  };
  draw();
  return el("div", {}, rows.length > 8 && el("p", {}, words), place);
}

/** A button. */
export function button(text, title, onclick) {
  return el("button", { type: "button", title, onclick }, text);
}

/** A small bar of a share from 0 to 1. */
export function meter(share) {
  const width = `width:${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
  return el("span", { class: "meter", "aria-hidden": "true" }, el("i", { style: width }));
}

/** The colour that a custom property of the page has now. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Call when colours change: between dark and light, and for paper, which is light. */
export function onTheme(call) {
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", call);
}

/** What a screen shows, and instead of it on paper a figure that has paper's width: it is made when the page is printed. */
export function printed(shown, make) {
  const paper = el("div", { class: "paper" });
  addEventListener("beforeprint", () => paper.replaceChildren(make()));
  return el("div", { class: "printed" }, shown, paper);
}

/** Whether the page is as narrow as a phone. */
export const narrow = () => matchMedia("(max-width: 600px)").matches;

const tip = { node: null };

/** Show lines beside the pointer; the first is bold. */
export function showTip(x, y, lines) {
  tip.node ??= document.body.appendChild(el("div", { class: "tip", role: "status" }));
  tip.node.hidden = false;
  tip.node.replaceChildren(...lines.map((line, k) => el(k ? "div" : "b", {}, line)));
  const box = tip.node.getBoundingClientRect();
  tip.node.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.node.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
}

/** Hide what {@link showTip} showed. */
export function hideTip() {
  if (tip.node) tip.node.hidden = true;
}
