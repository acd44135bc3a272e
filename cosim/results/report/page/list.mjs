/**
 * The list of runs: search, sort, at most eight chosen, looked at again every few seconds while nobody has chosen one.
 * @module list
 */

const EVERY_MS = 3000;
const MOST = 8;
let [by, up] = [-1, true];
let last = document.getElementById("runs")?.innerHTML;

const search = document.getElementById("search");
const rows = () => [...document.querySelectorAll("#runs tr")];

/** Show the rows that have the words in them. */
function filter() {
  const words = search.value.toLowerCase().split(/\s+/);
  for (const row of rows()) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
}

/** As many as can be told apart: a choice beyond lets go of the first. */
function limit(event) {
  const chosen = [...document.querySelectorAll("#runs input:checked")];
  if (chosen.length > MOST) chosen.find((one) => one !== event.target).checked = false;
}

/** Sort by a column, the other way round where it was. */
function sort() {
  if (by < 0) return;
  const text = (row) => row.cells[by]?.dataset.by ?? row.cells[by]?.textContent ?? "";
  const sorted = rows().sort((a, b) => (up ? 1 : -1) * text(a).localeCompare(text(b), "en", { numeric: true }));
  document.getElementById("runs").append(...sorted);
  document.querySelectorAll("thead th").forEach((th, k) => (k === by ? th.setAttribute("aria-sort", up ? "ascending" : "descending") : th.removeAttribute("aria-sort")));
}

/** What has come meanwhile. */
async function again() {
  if (document.hidden || document.querySelector("#runs input:checked")) return;
  const text = await (await fetch("/")).text().catch(() => "");
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("runs");
  if (fresh && fresh.innerHTML !== last) {
    last = fresh.innerHTML;
    document.getElementById("runs").replaceWith(document.adoptNode(fresh));
    sort();
    filter();
  }
}

if (search) {
  search.addEventListener("input", filter);
  document.addEventListener("change", limit);
  document.querySelectorAll("thead th").forEach((th, k) => th.querySelector("button")?.addEventListener("click", () => (([by, up] = [k, by === k ? !up : true]), sort())));
  setInterval(() => again().catch(() => {}), EVERY_MS);
}
