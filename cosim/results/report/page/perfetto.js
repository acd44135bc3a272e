/**
 * What a timeline shows as Chrome's trace events: for Perfetto, and as a file.
 * @module perfetto
 */

import { button } from "report/dom.js";
import { save } from "report/save.js";

const PERFETTO = "https://ui.perfetto.dev";
const PATIENCE_MS = 60_000;
const FORMAT = "https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU";

/** A trace as text: a process for each lane, a thread for each stream; microseconds. The format is {@link FORMAT}. */
export function traceOf(run) {
  const c = run.columns;
  const { lanes, streams, shades } = run.timeline;
  const events = lanes.map((lane, pid) => ({ ph: "M", name: "process_name", pid, tid: 0, ts: 0,
    args: { name: `${run.summary.jobs[lane.job].name} rank ${lane.rank} (${lane.node})${lane.alike > 1 ? `, as ${lane.alike - 1} others` : ""}` } }));
  const ends = new Map(); // of each thread: slices of one have to nest, so what overlaps has a thread each
  for (let k = 0; k < c.op_lane.length; k++) {
    const [pid, stream, from] = [c.op_lane[k], c.op_stream[k], c.op_start[k]];
    const place = `${pid} ${stream}`;
    const free = ends.get(place) ?? ends.set(place, []).get(place);
    const at = free.findIndex((end) => end <= from);
    const row = at < 0 ? free.length : at;
    const tid = stream * 1000 + row;
    if (row === free.length) events.push({ ph: "M", name: "thread_name", pid, tid, ts: 0, args: { name: `${streams[stream] || "receives"}${row ? ` ${row + 1}` : ""}` } });
    free[row] = from + c.op_time[k];
    events.push({ ph: "X", name: run.texts[c.op_name[k]], cat: shades[c.op_shade[k]],
      pid, tid, ts: from / 1e6, dur: c.op_time[k] / 1e6, args: { iteration: c.op_iteration[k], operation: c.op_number[k] } });
  }
  return JSON.stringify({ traceEvents: events, displayTimeUnit: "ns", otherData: { digest: run.summary.digest } });
}

/** Buttons: open it in Perfetto, which needs a network, or save it. */
export function traceButtons(run, which) {
  const name = `${run.summary.name || "run"}${which}`;
  return [button("Perfetto", `Open it at ${PERFETTO}, in a new tab; it stays in this browser`, () => open(name, traceOf(run))),
    button("Trace", "Save it as Chrome's trace events, for Perfetto without a network", () => save(`timeline${which}.json`, "application/json", traceOf(run)))];
}

/** Perfetto answers PING with PONG once it can take a trace: https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui */
function open(title, text) {
  const tab = window.open(PERFETTO);
  if (!tab) return;
  const stop = () => (clearInterval(asking), removeEventListener("message", answered));
  const asking = setInterval(() => (tab.closed ? stop() : tab.postMessage("PING", PERFETTO)), 100);
  const answered = (event) => {
    if (event.source !== tab || event.origin !== PERFETTO || event.data !== "PONG") return;
    stop();
    tab.postMessage({ perfetto: { buffer: new TextEncoder().encode(text).buffer, title, fileName: "timeline.json" } }, PERFETTO);
  };
  addEventListener("message", answered);
  setTimeout(stop, PATIENCE_MS);
}
