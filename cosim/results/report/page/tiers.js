/**
 * Links by tier: between which kinds of nodes, how busy each is, and whether one node carries more than its share.
 * @module tiers
 */

import { colour, el, hideTip, onTheme, showTip, table } from "report/dom.js";
import { amount, count, percent, rate } from "report/format.js";

const MOST_TIERS = 12;
const MOST_PARTS = 16; // shown of a tier
const UNEVEN = 1.5; // times an even share
/** What kind of node a name is of: its name without numbers. */
export const kindOf = (name) => name.replaceAll(/\d+/g, "").replaceAll(/[._-]+$/g, "") || "node";

/**
 * Tiers that carried anything, the busiest first: `{name, links, mean, most, top, share, among}`; `top` is the node that most of a
 * tier's bytes go over, `share` its part, `among` how many nodes of its kind the tier has.
 */
export function tiersOf(run) {
  const c = run.columns;
  const kinds = run.fabric.nodes.map(kindOf);
  const found = new Map();
  for (let link = 0; link < c.link_src.length; link++) {
    const name = `${kinds[c.link_src[link]]} → ${kinds[c.link_dst[link]]}`;
    if (!found.has(name)) found.set(name, { name, links: [] });
    found.get(name).links.push(link);
  }
  return [...found.values()].map((tier) => {
    const load = loadOf(run, tier.links);
    return { ...tier, ...load, ...uneven(run, tier.links, load.bytes) };
  }).filter((tier) => tier.bytes > 0).sort((a, b) => b.most - a.most || b.mean - a.mean).slice(0, MOST_TIERS);
}

/** The node of the end with fewer nodes that carries most, and what it would carry were all alike. */
function uneven(run, links, bytes) {
  const ends = [run.columns.link_src, run.columns.link_dst].map((end) => {
    const sums = new Map();
    for (const link of links) sums.set(end[link], (sums.get(end[link]) ?? 0) + run.columns.link_bytes[link]);
    return sums;
  });
  const among = Math.min(...ends.map((sums) => sums.size));
  const fewer = ends.filter((sums) => sums.size === among); // both, where there are as many of either
  const [node, most] = fewer.flatMap((sums) => [...sums]).reduce((a, b) => (b[1] > a[1] ? b : a));
  return { top: run.fabric.nodes[node], share: bytes ? most / bytes : 0, among };
}

/** Where the fabric is busiest, in a sentence; empty where nothing was sent. */
export function bottleneck(run) {
  const tiers = tiersOf(run);
  const [tier] = tiers;
  if (!tier) return "";
  const ends = run.summary.num_endpoints;
  const tilted = tiers.find((one) => isUneven(one) && run.columns.link_src[one.links[0]] >= ends && run.columns.link_dst[one.links[0]] >= ends);
  const most = tier.links.reduce((a, b) => (run.columns.link_busy[b] > run.columns.link_busy[a] ? b : a));
  const all = tier.links.length;
  const alike = percent(tier.mean) === percent(tier.most);
  const where = all === 1 ? `The link ${nameOf(run, most)} is the busiest, ${percent(tier.most)} of the time`
    : `The links ${tier.name} are the busiest: ${alike ? `all ${count(all)} ` : ""}${percent(tier.mean)} of the time${alike ? "" : ` on average, ${nameOf(run, most)} ${percent(tier.most)}`}`;
  return `${where}${tilted ? `. ${said(tilted)}` : ""}.`;
}

const nameOf = (run, link) => `${run.fabric.nodes[run.columns.link_src[link]]} → ${run.fabric.nodes[run.columns.link_dst[link]]}`;
const isUneven = (tier) => tier.among > 1 && tier.share * tier.among > UNEVEN;
const said = (tier) => `${tier.top} carries ${percent(tier.share)} of what goes ${tier.name}, ${(tier.share * tier.among).toPrecision(2)} times an even share of ${tier.among}`;

/** A strip for each tier, a place for each link, the darker the busier; what is uneven; and its parts, if it is opened. */
export function tierStrips(run, choose) {
  const tiers = tiersOf(run);
  if (!tiers.length) return null;
  const columns = [{ title: "tier", text: true }, { title: "links", optional: true }, { title: "", text: true }, { title: "busy" }, { title: "busiest" }, { title: "most goes over", optional: true }];
  const opened = new Set();
  const place = el("div", {});
  const toggle = (k) => {
    opened[opened.has(k) ? "delete" : "add"](k);
    draw();
    place.querySelectorAll("button.plain")[[...tiers.keys()].filter((one) => partsOf(run, tiers[one]).length > 1).indexOf(k)].focus();
  };
  const row = (one, name, last) => ({ cells: [name, count(one.links.length), strip(run, one, choose), percent(one.mean), percent(one.most), last] });
  const draw = () => place.replaceChildren(table(columns, tiers.flatMap((tier, k) => {
    const parts = partsOf(run, tier);
    const name = parts.length > 1 ? el("button", { type: "button", class: "plain", "aria-expanded": String(opened.has(k)), title: `Its ${count(parts.length)} parts`, onclick: () => toggle(k) }, `${opened.has(k) ? "▾" : "▸"} ${tier.name}`) : tier.name;
    const own = row(tier, name, isUneven(tier) ? `${tier.top}: ${percent(tier.share)}` : "even");
    if (!opened.has(k)) return [own];
    const left = parts.length - MOST_PARTS;
    return [own, ...parts.slice(0, MOST_PARTS).map((part) => row(part, el("span", { class: "part" }, part.name), percent(tier.bytes ? part.bytes / tier.bytes : 0))),
      ...(left > 0 ? [{ cells: [el("span", { class: "part" }, `... and ${count(left)} more, none carries more`), "", "", "", "", ""] }] : [])];
  })));
  draw();
  return el("div", {}, el("h3", {}, "Tiers: every link, the darker the busier"),
    tiers.filter(isUneven).slice(0, 3).map((tier) => el("p", {}, `${said(tier)}.`)), place);
}

/** A tier by pod, host or switch: whichever end of its links has fewer of them; what carries most comes first. */
function partsOf(run, tier) {
  const c = run.columns;
  const whole = (node) => run.fabric.nodes[node].split(".")[0];
  const ends = [c.link_src, c.link_dst].map((end) => {
    const groups = new Map();
    for (const link of tier.links) (groups.get(whole(end[link])) ?? groups.set(whole(end[link]), []).get(whole(end[link]))).push(link);
    return groups;
  });
  const fewer = ends[0].size < ends[1].size ? ends[0] : ends[1];
  return [...fewer].map(([name, links]) => ({ name, ...loadOf(run, links) })).sort((a, b) => b.bytes - a.bytes || b.most - a.most);
}

/** How busy links are, and what they carried. */
function loadOf(run, links) {
  const c = run.columns;
  const busy = links.map((link) => c.link_busy[link] / Math.max(run.summary.end_ps, 1));
  return { links, bytes: links.reduce((sum, link) => sum + c.link_bytes[link], 0), mean: busy.reduce((a, b) => a + b, 0) / busy.length, most: busy.reduce((a, b) => Math.max(a, b), 0) };
}

function strip(run, tier, choose) {
  const c = run.columns;
  const end = Math.max(run.summary.end_ps, 1);
  const places = Math.min(tier.links.length, 512);
  const part = (k) => tier.links.slice(Math.floor((k * tier.links.length) / places), Math.floor(((k + 1) * tier.links.length) / places));
  const busiest = Array.from({ length: places }, (_, k) => part(k).reduce((a, b) => (c.link_busy[b] > c.link_busy[a] ? b : a)));
  const at = (event) => busiest[Math.min(places - 1, Math.max(0, Math.floor(((event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth) * places)))];
  const canvas = el("canvas", { class: "strip", role: "img", "aria-label": `${tier.name}: ${percent(tier.mean)} busy on average`,
    onpointermove: (event) => showTip(event.clientX, event.clientY, [nameOf(run, at(event)), `${percent(c.link_busy[at(event)] / end)} busy, ${amount(c.link_bytes[at(event)])}`, rate(c.link_rate[at(event)])]),
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
