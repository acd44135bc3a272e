/**
 * The list of runs: search, at most two chosen, looked at again every few seconds while nobody has chosen one.
 * @module list
 */

const EVERY_MS = 3000;

const search = document.getElementById("search");
const rows = () => [...document.querySelectorAll("#runs tr")];

/** Show the rows that have the words in them. */
function filter() {
  const words = search.value.toLowerCase().split(/\s+/);
  for (const row of rows()) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
}

/** Two at most: a third choice lets go of the first. */
function limit(event) {
  const chosen = [...document.querySelectorAll("#runs input:checked")];
  if (chosen.length > 2) chosen.find((one) => one !== event.target).checked = false;
}

/** What has come meanwhile. */
async function again() {
  if (document.hidden || document.querySelector("#runs input:checked")) return;
  const text = await (await fetch("/")).text().catch(() => "");
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("runs");
  if (fresh && fresh.innerHTML !== document.getElementById("runs").innerHTML) {
    document.getElementById("runs").replaceWith(document.adoptNode(fresh));
    filter();
  }
}

if (search) {
  search.addEventListener("input", filter);
  document.addEventListener("change", limit);
  setInterval(() => again().catch(() => {}), EVERY_MS);
}
