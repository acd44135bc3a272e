/**
 * The fabric as a map: lines coloured by how busy their links are, at a time or over the run.
 * @module fabric
 */

import { groupsOf, named } from "report/alike.js";
import { el, section, svg, table } from "report/dom.js";
import { amount, count, percent, rate, time } from "report/format.js";
import { plot } from "report/plot.js";
import { lineOf, queueOf } from "report/series.js";
import { csvButton, svgButton } from "report/save.js";
import { kindOf, tierStrips } from "report/tiers.js";

const WIDE = 1100;
const MOST_LISTED = 12;
const DEAD = { "stroke-dasharray": "2 5", stroke: "var(--chosen)", "stroke-opacity": 1, "stroke-width": 2.4 };

/** @param {object} run @param {string} [which] */
export function fabric(run, which = "") {
  const c = run.columns;
  const { boxes, bins, bin_ps } = run.fabric;
  const line = linesOf(run);
  const map = drawn(boxes, c, (k) => choose(k));
  const output = el("output", {});
  const input = el("input", { type: "range", min: 0, max: bins, value: 0, "aria-label": "Time", oninput: () => colourAt(Number(input.value)) });
  const chosen = el("div", {});
  const measures = measuresOf(run, line);
  let measure = measures[0];
  const says = el("span", { class: "note" });
  const dead = deadLines(run);
  const colourAt = (bin) => {
    const span = bin === 0 ? null : [(bin - 1) * bin_ps, bin * bin_ps];
    const shares = measure.shares(bin, span);
    map.lines.forEach((node, k) => paint(node, shares[k]));
    const down = [...dead].filter(([, when]) => span && when.some(([from, to]) => from < span[1] && to > span[0])).map(([k]) => k);
    for (const k of dead.keys()) map.lines[k].setAttribute("stroke-dasharray", "none");
    for (const k of down) for (const [name, value] of Object.entries(DEAD)) map.lines[k].setAttribute(name, value);
    output.textContent = span && measure.moves ? `${time(span[0])} to ${time(span[1])}` : "over the whole run";
    says.textContent = [measure.said, down.length > 0 && "Dashed: down."].filter(Boolean).join(" ");
  };
  const by = el("select", { "aria-label": "Colour links by", onchange: (event) => ((measure = measures[event.target.value]), colourAt(Number(input.value))) },
    measures.map((one, k) => el("option", { value: k }, one.name)));
  const choose = (k) => {
    chosen.replaceChildren(...aboutLine(run, k));
    map.lines.forEach((node, other) => node.classList.toggle("chosen", other === k));
  };
  const click = (link) => c.link_line[link] >= 0 && (choose(c.link_line[link]), chosen.scrollIntoView({ block: "center", behavior: "smooth" }));
  colourAt(0);
  const note = "Each line is all links between two boxes, coloured by the busiest; choose one for its links and their load over time.";
  return section(`fabric${which}`, which ? `Fabric of ${which}` : "Fabric", note, [csvButton("links", () => linkRows(run)), svgButton("fabric", () => map.node)],
    tierStrips(run, click),
    el("div", { class: "slider" }, measures.length > 1 ? by : null, el("span", {}, "Time"), input, output),
    el("div", { class: "map" }, map.node), legend(), says, chosen, busiest(run, click));
}

/** When the links of each line were down: dashed then. */
function deadLines(run) {
  const found = new Map();
  for (const event of run.events) for (const link of event.links) {
    const line = run.columns.link_line[link];
    if (line >= 0) found.set(line, [...(found.get(line) ?? []), ...event.spans]);
  }
  return found;
}

function paint(node, share) {
  node.setAttribute("stroke", share > 0.005 ? "var(--accent)" : "var(--rule)");
  node.setAttribute("stroke-opacity", share > 0.005 ? (0.15 + 0.85 * Math.min(1, share)).toFixed(3) : 1);
  node.setAttribute("stroke-width", (1 + 2.4 * Math.min(1, share)).toFixed(2));
}

function legend() {
  const steps = [0.1, 0.25, 0.5, 0.75, 1];
  return el("div", { class: "key" }, steps.map((share) =>
    el("span", {}, el("i", { style: `background:var(--accent);opacity:${0.15 + 0.85 * share}` }), `${100 * share} %`)));
}

/**
 * What lines can be coloured by: use, and what the network counted on links; over time where the run kept it.
 * `shares(bin, span)` of each line is from 0 to 1, 1 being the most of any link.
 */
function measuresOf(run, line) {
  const c = run.columns;
  const { bins, counted } = run.fabric;
  const busy = { name: "use", moves: true, said: "Part of the link's rate in use.", shares: (bin) => (bin === 0 ? line.mean : Array.from(line.mean, (_, k) => c.line_share[k * bins + bin - 1] / 1000)) };
  const fixed = counted.filter((name) => c[`counted_${name}`].some((one) => one > 0)).map((name) => {
    const most = c[`counted_${name}`].reduce((a, b) => Math.max(a, b), 0);
    const shares = ofLines(run, (link) => c[`counted_${name}`][link] / most);
    return { name: called(name), shares: () => shares, said: `100 %: ${shown(name, most)}, over the whole run; over time of links that record.queues names.` };
  });
  return [busy, ...(run.series?.links.length ? overTime(run) : []), ...fixed];
}

/** Queues and marks at a time, of the links whose series the run kept. */
function overTime(run) {
  const { links } = run.series;
  const at = run.columns.series_at;
  const number = new Map(links.map((link, k) => [link, k]));
  return [["queue over time", "series_queue", amount], ["marks over time", "series_marks", count], ["drops over time", "series_drops", count], ["pauses over time", "series_pause", time]].map(([name, column, say]) => {
    const lines = links.map((_, k) => lineOf(run, column, k));
    const most = Math.max(...lines.map((one) => one.reduce((a, b) => Math.max(a, b), 0)));
    const value = (k, span) => lines[k].reduce((high, y, j) => (!span || (at[j] >= span[0] && at[j] < span[1]) ? Math.max(high, y) : high), 0);
    return { name, moves: true, most, said: `100 %: ${say(most)}`, shares: (_, span) => ofLines(run, (link) => (number.has(link) ? value(number.get(link), span) / most : 0)) };
  }).filter((one) => one.most > 0);
}

/** The largest value of the links of each line. */
function ofLines(run, value) {
  const c = run.columns;
  const out = new Float64Array(c.line_a.length);
  for (let link = 0; link < c.link_line.length; link++) if (c.link_line[link] >= 0) out[c.link_line[link]] = Math.max(out[c.link_line[link]], value(link));
  return out;
}

/** How busy the busiest link of each line was over the run. */
function linesOf(run) {
  const c = run.columns;
  return { mean: ofLines(run, (link) => c.link_busy[link] / Math.max(run.summary.end_ps, 1)) };
}

function drawn(boxes, c, choose) {
  const rows = new Set(boxes.map((box) => box.y)).size;
  const high = rows > 6 ? 620 : Math.max(180, Math.min(560, rows * 110));
  const x = (box) => 40 + box.x * (WIDE - 80);
  const y = (box) => 26 + box.y * (high - 52);
  const lines = Array.from(c.line_a, (a, k) => {
    const [one, other] = [boxes[a], boxes[c.line_b[k]]];
    const keys = (event) => event.key === "Enter" && choose(k);
    const [across, down, bend] = [x(other) - x(one), y(other) - y(one), c.line_bend[k]];
    const middle = `${(x(one) + x(other)) / 2 - bend * down} ${(y(one) + y(other)) / 2 + bend * across}`;
    return svg("path", { class: "line", d: `M${x(one)} ${y(one)}Q${middle} ${x(other)} ${y(other)}`, fill: "none", stroke: "var(--rule)",
      tabindex: c.line_a.length <= 400 ? 0 : null, style: "cursor:pointer", onclick: () => choose(k), onkeydown: keys },
    svg("title", {}, `${one.label} and ${other.label}`));
  });
  const width = (box) => Math.max(5, Math.min(92, box.room * (WIDE - 80) - 4));
  const textOf = (box) => (box.size > 1 ? [`${box.size} × ${box.label.split(" ... ")[0]}`, `${box.size}`] : [box.label, box.label.split(".").at(-1)]).find((name) => name.length * 5.8 < width(box) - 4);
  const levels = [...new Set(boxes.map((box) => box.y))].map((level) => boxes.filter((box) => box.y === level));
  const titles = levels.filter((row) => row.length > 1 && row.every((box) => !/[a-z]/i.test(textOf(box) ?? ""))).map((row) => svg("text", { x: 6, y: y(row[0]) - 14, "font-size": 11, "font-family": "system-ui, sans-serif", fill: "var(--soft)", stroke: "var(--paper)", "stroke-width": 4, "paint-order": "stroke" },
    `${count(row.reduce((sum, box) => sum + box.size, 0))} × ${kindOf(row[0].label.split(" ... ")[0])}`));
  const nodes = boxes.map((box) => {
    const wide = width(box);
    const tall = Math.min(20, Math.max(8, wide));
    const text = textOf(box);
    return svg("g", {}, svg("title", {}, box.size > 1 ? `${box.label} (${box.size})` : box.label),
      svg("rect", { x: x(box) - wide / 2, y: y(box) - tall / 2, width: wide, height: tall, rx: box.endpoint ? 3 : 8,
        fill: "var(--field)", stroke: "var(--soft)", "stroke-width": 0.8 }),
      text && svg("text", { x: x(box), y: y(box) + 3.5, "text-anchor": "middle", "font-size": 10, "font-family": "system-ui, sans-serif", fill: "var(--ink)" }, text));
  });
  const node = svg("svg", { viewBox: `0 0 ${WIDE} ${high}`, width: WIDE, height: high, role: "img", "aria-label": "Map of the fabric" },
    svg("rect", { width: WIDE, height: high, fill: "var(--paper)" }), lines, nodes, titles);
  return { node, lines };
}

const linkName = (run, link) => `${run.fabric.nodes[run.columns.link_src[link]]} → ${run.fabric.nodes[run.columns.link_dst[link]]}`;

function linkTable(run, links, click, times = new Map()) {
  const c = run.columns;
  const counted = run.fabric.counted.filter((name) => links.some((link) => c[`counted_${name}`][link] > 0));
  const end = Math.max(run.summary.end_ps, 1);
  const columns = [{ title: "link", text: true }, { title: "rate", optional: true }, { title: "sent" }, { title: "busy" }, ...counted.map((name) => ({ title: called(name), optional: true }))];
  return table(columns, links.map((link) => ({
    cells: [named(linkName(run, link), times.get(link) ?? 1), rate(c.link_rate[link]), amount(c.link_bytes[link]), percent(c.link_busy[link] / end), ...counted.map((name) => shown(name, c[`counted_${name}`][link]))],
    click: click ? () => click(link) : null,
  })));
}

const called = (name) => name.replace(/_(bytes|ps)$/, "").replaceAll("_", " ");
const shown = (name, value) => (name.endsWith("_bytes") ? amount(value) : name.endsWith("_ps") ? time(value) : count(value));

function aboutLine(run, line) {
  const c = run.columns;
  const links = Array.from(c.link_line.keys()).filter((link) => c.link_line[link] === line);
  links.sort((a, b) => c.link_busy[b] - c.link_busy[a]);
  const few = links.slice(0, MOST_LISTED);
  const [a, b] = [run.fabric.boxes[c.line_a[line]], run.fabric.boxes[c.line_b[line]]];
  const left = links.length - few.length;
  return [el("h3", {}, `Between ${a.label} and ${b.label}`), loads(run, line, few), ...kept(run, few), linkTable(run, few), users(run, few), left > 0 && el("p", { class: "note" }, `... and ${left} more links`)].filter(Boolean);
}

/** What was kept over time of links, the first two that have it. */
function kept(run, links) {
  const numbers = links.map((link) => run.series?.links.indexOf(link) ?? -1).filter((k) => k >= 0);
  return numbers.slice(0, 2).map((k) => queueOf(run, k));
}

/** Whose traffic links carried, as far as that is known. */
function users(run, links) {
  const c = run.columns;
  if (!c.use_link?.length) return el("p", { class: "note" }, "Whose traffic it was is not known: paths changed, or a load balancer chose them.");
  const wanted = new Set(links);
  const rows = Array.from(c.use_link.keys()).filter((k) => wanted.has(c.use_link[k]));
  const job = (k) => (c.use_job[k] < 0 ? "" : run.summary.jobs[c.use_job[k]].name);
  const nodes = run.fabric.nodes;
  return el("div", {}, el("h3", {}, "Who uses it: the largest pairs of each link"),
    !run.use_texts && el("p", { class: "note" }, "What it was sent for is known where messages are kept: --set record.messages=true."),
    table([{ title: "link", text: true }, { title: "pairs on it" }, { title: "from and to", text: true }, { title: "job", text: true }, ...(run.use_texts ? [{ title: "most of it", text: true, long: true }] : []), { title: "sent" }],
      rows.map((k) => ({ cells: [linkName(run, c.use_link[k]), count(c.link_pairs[c.use_link[k]]), `${nodes[c.use_src[k]]} → ${nodes[c.use_dst[k]]}`, job(k), ...(run.use_texts ? [run.use_texts[c.use_what[k]]] : []), amount(c.use_bytes[k])] }))),
    links.map((link) => collisions(run, link)));
}

/** How evenly routing spread pairs over the links that leave a switch for others: where it didn't, paths collide. */
function collisions(run, link) {
  const c = run.columns;
  const ends = run.summary.num_endpoints;
  if (c.link_src[link] < ends || c.link_dst[link] < ends || !c.link_pairs[link]) return null;
  const equal = Array.from(c.link_src.keys()).filter((one) => c.link_src[one] === c.link_src[link] && c.link_dst[one] >= ends && c.link_rate[one] === c.link_rate[link]);
  if (equal.length < 2) return null;
  const pairs = equal.map((one) => c.link_pairs[one]);
  const mean = pairs.reduce((a, b) => a + b, 0) / pairs.length;
  const more = c.link_pairs[link] > mean ? `: ${count(c.link_pairs[link] - mean)} more than an even spread, so that paths collide here` : "";
  return el("p", { class: "note" }, `${count(c.link_pairs[link])} pairs go over ${linkName(run, link)}; over the ${equal.length} links from ${run.fabric.nodes[c.link_src[link]]} to other switches ${Number(mean.toFixed(1))} each in the mean${more}.`);
}

function loads(run, line, links) {
  const c = run.columns;
  const { bins, bin_ps } = run.fabric;
  const x = Array.from({ length: bins + 1 }, (_, k) => Math.min(k * bin_ps, run.summary.end_ps));
  const each = c.link_share.length > 0;
  const closed = (values) => [...values, values.at(-1) ?? 0];
  const series = each
    ? links.slice(0, 4).map((link) => ({ label: linkName(run, link), steps: true, values: closed([...c.link_share.slice(link * bins, (link + 1) * bins)].map((one) => one / 1000)) }))
    : [{ label: "busiest link", steps: true, values: closed([...c.line_share.slice(line * bins, (line + 1) * bins)].map((one) => one / 1000)) }];
  const top = Math.max(1, ...series.flatMap((one) => one.values));
  return plot({ x, series, formatX: time, formatY: (y) => `${(100 * y).toFixed(0)} %`, top, height: 180 });
}

function busiest(run, click) {
  const c = run.columns;
  const order = Array.from(c.link_busy.keys()).filter((link) => c.link_busy[link] > 0).sort((a, b) => c.link_busy[b] - c.link_busy[a]);
  if (!order.length) return null;
  const kinds = run.fabric.nodes.map((name) => name.replaceAll(/\d+/g, ""));
  const end = Math.max(run.summary.end_ps, 1);
  const figures = (link) => [kinds[c.link_src[link]], kinds[c.link_dst[link]], c.link_rate[link], amount(c.link_bytes[link]), percent(c.link_busy[link] / end), ...run.fabric.counted.map((name) => shown(name, c[`counted_${name}`][link]))];
  const groups = groupsOf(order, figures).slice(0, 10);
  const times = new Map(groups.map((links) => [links[0], links.length]));
  return el("div", {}, el("h3", {}, `Busiest of ${count(c.link_busy.length)} links`), linkTable(run, groups.map(([link]) => link), click, times));
}

function linkRows(run) {
  const c = run.columns;
  const head = ["link", "rate_bps", "sent_bytes", "busy_ps", ...run.fabric.counted];
  return [head, ...Array.from(c.link_busy, (busy, link) => [linkName(run, link), c.link_rate[link], c.link_bytes[link], busy, ...run.fabric.counted.map((name) => c[`counted_${name}`][link])])];
}
