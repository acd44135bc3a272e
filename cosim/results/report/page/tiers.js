/**
 * Links by tier: between which kinds of nodes, how busy each is, and whether one node carries more than its share.
 * @module tiers
 */

import { colour, el, hideTip, onTheme, showTip, table } from "report/dom.js";
import { count, percent, rate, size } from "report/format.js";

const MOST_TIERS = 12;
const UNEVEN = 1.5; // times an even share
const kindOf = (name) => name.replaceAll(/\d+/g, "").replaceAll(/[._-]+$/g, "") || "node";

/**
 * Tiers that carried anything, the busiest first: `{name, links, mean, most, top, share, among}`; `top` is the node that most of a
 * tier's bytes go over, `share` its part, `among` how many nodes of its kind the tier has.
 */
export function tiersOf(run) {
  const c = run.columns;
  const end = Math.max(run.summary.end_ps, 1);
  const kinds = run.fabric.nodes.map(kindOf);
  const found = new Map();
  for (let link = 0; link < c.link_src.length; link++) {
    const name = `${kinds[c.link_src[link]]} → ${kinds[c.link_dst[link]]}`;
    if (!found.has(name)) found.set(name, { name, links: [] });
    found.get(name).links.push(link);
  }
  return [...found.values()].map((tier) => {
    const busy = tier.links.map((link) => c.link_busy[link] / end);
    const bytes = tier.links.reduce((sum, link) => sum + c.link_bytes[link], 0);
    return { ...tier, bytes, mean: busy.reduce((a, b) => a + b, 0) / busy.length, most: busy.reduce((a, b) => Math.max(a, b), 0), ...uneven(run, tier.links, bytes) };
  }).filter((tier) => tier.bytes > 0).sort((a, b) => b.most - a.most || b.mean - a.mean).slice(0, MOST_TIERS);
}

/** The node of the end with fewer nodes that carries most, and what it would carry were all alike. */
function uneven(run, links, bytes) {
  const ends = [run.columns.link_src, run.columns.link_dst].map((end) => {
    const sums = new Map();
    for (const link of links) sums.set(end[link], (sums.get(end[link]) ?? 0) + run.columns.link_bytes[link]);
    return sums;
  });
  const fewer = ends[0].size < ends[1].size ? ends[0] : ends[1];
  const [node, most] = [...fewer].reduce((a, b) => (b[1] > a[1] ? b : a));
  return { top: run.fabric.nodes[node], share: bytes ? most / bytes : 0, among: fewer.size };
}

/** Where the fabric is busiest, in a sentence; empty where nothing was sent. */
export function bottleneck(run) {
  const tiers = tiersOf(run);
  const [tier] = tiers;
  if (!tier) return "";
  const ends = run.summary.num_endpoints;
  const tilted = tiers.find((one) => isUneven(one) && run.columns.link_src[one.links[0]] >= ends && run.columns.link_dst[one.links[0]] >= ends);
  const where = `Busiest are the links ${tier.name}: ${percent(tier.mean)} of their rate on average, the busiest of ${count(tier.links.length)} ${percent(tier.most)}`;
  return `${where}${tilted ? `. ${said(tilted)}` : ""}.`;
}

const isUneven = (tier) => tier.among > 1 && tier.share * tier.among > UNEVEN;
const said = (tier) => `${tier.top} carries ${percent(tier.share)} of what goes ${tier.name}, ${(tier.share * tier.among).toPrecision(2)} times an even share of ${tier.among}`;

/** A strip for each tier, a place for each link, the darker the busier; and what is uneven. */
export function tierStrips(run, choose) {
  const tiers = tiersOf(run);
  if (!tiers.length) return null;
  const rows = tiers.map((tier) => ({
    cells: [tier.name, count(tier.links.length), strip(run, tier, choose), percent(tier.mean), percent(tier.most), isUneven(tier) ? `${tier.top}: ${percent(tier.share)}` : "even"],
  }));
  return el("div", {}, el("h3", {}, "Tiers: every link, the darker the busier"),
    tiers.filter(isUneven).slice(0, 3).map((tier) => el("p", {}, `${said(tier)}.`)),
    table([{ title: "tier", text: true }, { title: "links" }, { title: "", text: true, optional: true }, { title: "busy" }, { title: "busiest" }, { title: "most goes over" }], rows));
}

function strip(run, tier, choose) {
  const c = run.columns;
  const end = Math.max(run.summary.end_ps, 1);
  const nameOf = (link) => `${run.fabric.nodes[c.link_src[link]]} → ${run.fabric.nodes[c.link_dst[link]]}`;
  const places = Math.min(tier.links.length, 512);
  const part = (k) => tier.links.slice(Math.floor((k * tier.links.length) / places), Math.floor(((k + 1) * tier.links.length) / places));
  const busiest = Array.from({ length: places }, (_, k) => part(k).reduce((a, b) => (c.link_busy[b] > c.link_busy[a] ? b : a)));
  const at = (event) => busiest[Math.min(places - 1, Math.max(0, Math.floor(((event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth) * places)))];
  const canvas = el("canvas", { class: "strip", role: "img", "aria-label": `${tier.name}: ${percent(tier.mean)} busy on average`,
    onpointermove: (event) => showTip(event.clientX, event.clientY, [nameOf(at(event)), `${percent(c.link_busy[at(event)] / end)} busy, ${size(c.link_bytes[at(event)])}`, rate(c.link_rate[at(event)])]),
    onpointerleave: hideTip, onclick: (event) => choose(at(event)) });
  [canvas.width, canvas.height] = [places, 1];
  const draw = () => {
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, places, 1);
    context.fillStyle = colour("accent");
    busiest.forEach((link, k) => ((context.globalAlpha = 0.06 + 0.94 * Math.min(1, c.link_busy[link] / end)), context.fillRect(k, 0, 1, 1)));
  };
  onTheme(draw);
  draw();
  return canvas;
}
