/**
 * Messages and traffic: how long they took, who sends to whom, and when.
 * @module network
 */

import { groupsOf } from "report/alike.js";
import { colour, el, hideTip, onTheme, section, showTip, table } from "report/dom.js";
import { amount, count, rate, size, time } from "report/format.js";
import { figure } from "report/plot.js";
import { csvButton } from "report/save.js";
import { series } from "report/series.js";

/** @param {object} run */
export function network(run) {
  if (!run.fct.messages) return null;
  const s = run.summary;
  const note = s.fct && `${count(s.num_messages)} messages: p50 ${time(s.fct.p50_ps)}, p99 ${time(s.fct.p99_ps)}, p99.9 ${time(s.fct.p999_ps)}, max ${time(s.fct.max_ps)}`;
  return section("network", "Network", note, null,
    el("div", { class: "two" }, completion(run), goodput(run)), series(run), bySize(run), matrix(run), collectives(run));
}

function completion(run) {
  const c = run.columns;
  let sum = 0;
  const shares = Array.from(c.fct_count, (one) => (sum += one) / run.fct.messages);
  const about = { x: [c.fct_time[0], ...c.fct_time], series: [{ label: "share of messages", values: [0, ...shares], steps: true }], formatX: time, formatY: (y) => `${(100 * y).toFixed(0)} %`, logX: true, top: 1, nameX: "completes within" };
  return figure("Flow completion time", "completion", about);
}

function goodput(run) {
  const sent = run.columns.goodput_bytes;
  const bins = run.traffic.goodput_bins;
  const edges = Array.from({ length: bins + 1 }, (_, k) => Math.min(k * run.traffic.goodput_bin_ps, run.summary.end_ps));
  const several = sent.length > bins;
  const series = Array.from({ length: sent.length / bins }, (_, job) => {
    const values = Array.from({ length: bins }, (_, k) => (8e12 * sent[job * bins + k]) / Math.max(1, edges[k + 1] - edges[k]));
    return { label: several ? run.summary.jobs[job].name : "all endpoints", steps: true, values: [...values, values.at(-1) ?? 0] };
  });
  return figure(several ? "Goodput by job" : "Goodput", "goodput", { x: edges, series, formatX: time, formatY: rate });
}

function bySize(run) {
  if (!run.sizes.length) return el("p", { class: "note" }, "Times by size need the messages: run with --set record.messages=true.");
  const each = run.columns.size_quantiles.length / run.sizes.length;
  const x = Array.from({ length: each }, (_, k) => k / (each - 1));
  const about = (quantiles, per, formatY) => {
    const series = run.sizes.slice(-5).map((one, k, few) => {
      const at = (run.sizes.length - few.length + k) * each;
      return { label: `from ${size(one.from)}`, values: [...quantiles.slice(at, at + each)].map((y) => y / per) };
    });
    return { x, series, formatX: (y) => `${(100 * y).toFixed(0)} %`, formatY, nameX: "share of messages" };
  };
  const slowdowns = run.columns.size_slowdowns;
  const columns = [{ title: "size from", text: true }, { title: "messages" }, { title: "p50" }, { title: "p99" }, { title: "max" }, { title: "goodput of one" }];
  return el("div", { class: "two" }, figure("Time by size", "time-by-size", about(run.columns.size_quantiles, 1, time)),
    slowdowns && figure("Slowdown by size: times what it takes alone", "slowdown-by-size", about(slowdowns, 1000, (y) => Number(y.toPrecision(3)).toString())),
    el("div", {}, el("h3", {}, "Messages by size"), table(columns, run.sizes.map((one) => ({ cells: [size(one.from), count(one.count), time(one.p50), time(one.p99), time(one.max), rate(one.rate_bps)] })))));
}

function matrix(run) {
  const { groups, each, bins, bin_ps } = run.traffic;
  const pairs = run.columns.traffic_pair;
  const first = (group) => run.fabric.nodes[group * each];
  const called = (group) => (each > 1 ? `${first(group)} ... ${run.fabric.nodes[Math.min((group + 1) * each, run.summary.num_endpoints) - 1]}` : first(group));
  const numbered = new Map(Array.from(pairs, (pair, k) => [pair, k]));
  const hover = (event) => {
    const box = canvas.getBoundingClientRect();
    const [to, from] = [event.clientX - box.left, event.clientY - box.top].map((at) => Math.min(groups - 1, Math.max(0, Math.floor((at / box.width) * groups))));
    const k = numbered.get(from * groups + to);
    showTip(event.clientX, event.clientY, [`${called(from)} → ${called(to)}`, k === undefined ? "nothing" : amount(bytes(Number(input.value))[k])]);
  };
  const canvas = el("canvas", { role: "img", "aria-label": "Traffic matrix", onpointermove: hover, onpointerleave: hideTip,
    style: "width:100%;aspect-ratio:1;image-rendering:pixelated;border:1px solid var(--rule)" });
  canvas.width = canvas.height = groups;
  const output = el("output", {});
  const input = el("input", { type: "range", min: 0, max: bins, value: 0, "aria-label": "Time of the matrix", oninput: () => draw() });
  const bytes = (bin) => Float64Array.from(pairs, (_, k) => {
    if (bin > 0) return run.columns.traffic_bytes[(bin - 1) * pairs.length + k];
    let sum = 0;
    for (let b = 0; b < bins; b++) sum += run.columns.traffic_bytes[b * pairs.length + k];
    return sum;
  });
  const draw = () => {
    const bin = Number(input.value);
    const values = bytes(bin);
    const most = Math.max(...values, 1);
    const context = canvas.getContext("2d");
    context.fillStyle = colour("idle");
    context.fillRect(0, 0, groups, groups);
    context.fillStyle = colour("accent");
    pairs.forEach((pair, k) => {
      context.globalAlpha = values[k] > 0 ? 0.12 + 0.88 * Math.sqrt(values[k] / most) : 0;
      context.fillRect(pair % groups, Math.floor(pair / groups), 1, 1);
    });
    context.globalAlpha = 1;
    output.textContent = `${bin === 0 ? "over the whole run" : `${time((bin - 1) * bin_ps)} to ${time(bin === bins ? run.summary.end_ps : bin * bin_ps)}`}, darkest ${amount(most)}`;
  };
  onTheme(draw);
  draw();
  const name = each > 1 ? `groups of ${each} endpoints` : "endpoints";
  const rows = () => [["from", "to", "bytes"], ...Array.from(bytes(0), (value, k) => [Math.floor(pairs[k] / groups), pairs[k] % groups, value])];
  return el("div", {}, el("div", { class: "head" }, el("h3", {}, `Traffic matrix, ${name}: rows send, columns receive`), csvButton("traffic", rows)),
    el("div", { class: "slider" }, el("span", {}, "Time"), input, output),
    el("div", { class: "matrix" }, el("span", {}, `from ${first(0)}`), el("span", {}, `to ${called(groups - 1)}`), canvas, el("span", {}, `from ${called(groups - 1)}`)));
}

function collectives(run) {
  const all = run.summary.collectives;
  if (!all.length) return null;
  const columns = [{ title: "collective", text: true }, { title: "algorithm", text: true, optional: true }, { title: "size" }, { title: "ranks", optional: true }, { title: "count", optional: true },
    { title: "time" }, { title: "max", optional: true }, { title: "straggler", optional: true }, { title: "busbw" }];
  const cells = (one, times) => [one.collective, one.algorithm, size(one.size_bytes), one.group_size, count(times), time(one.mean_ps), time(one.max_ps), time(one.wait_mean_ps), rate(one.busbw_bps)];
  const rows = groupsOf(all, (one) => cells(one, 0)).map((group) => ({ cells: cells(group[0], group.reduce((sum, one) => sum + one.count, 0)) }));
  return el("div", {}, el("h3", {}, "Collectives"), table(columns, rows));
}
