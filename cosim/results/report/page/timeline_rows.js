/**
 * Rows of a timeline: a lane's streams below one another, under the host that they are on. A host that is folded has a
 * thin row for each rank, with all of its streams in it.
 * @module timeline_rows
 */

export const ROW = 13;
const THIN = 6;
const GAP = 7;
const SENDS = 4000;
const TITLE = 15;

/**
 * @param {object} run
 * @param {{messages?: boolean, folded?: Set<string>}} [shown]
 * @returns {{list: Row[], titles: object[], of: Map<number, Row[]>, height: number, label: number}} `of` has the rows of
 *   each lane, `titles` the names of hosts and where they stand
 */
export function rowsOf(run, { messages = false, folded = new Set() } = {}) {
  const c = run.columns;
  const { lanes, streams } = run.timeline;
  const places = operationsOf(run, messages);
  const hosts = hostsOf(run);
  const named = new Set(lanes.map((lane) => lane.job)).size > 1;
  const [list, titles, of] = [[], [], new Map()];
  let [y, host] = [0, null];
  const add = (lane, ops, about) => {
    const row = new Row(c, ops, { y, lane, ...about });
    list.push(row);
    of.set(lane, [...(of.get(lane) ?? []), row]);
    y += row.high;
  };
  for (const lane of [...places.keys()].sort((a, b) => a - b)) {
    const one = lanes[lane];
    const at = `${one.job} ${one.host}`;
    if (hosts.length && at !== host) {
      if (list.length) y += GAP;
      host = at;
      const mine = lanes.filter((other) => other.host === one.host && other.job === one.job);
      const ranks = mine.reduce((sum, other) => sum + (other.alike || 1), 0);
      titles.push({ host: one.host, text: named ? `${one.host}: ${run.summary.jobs[one.job].name}` : one.host, y, folded: folded.has(one.host), ranks });
      y += TITLE;
    }
    const streamsHere = places.get(lane);
    if (hosts.length && folded.has(one.host)) {
      const ops = [...streamsHere].filter(([stream]) => stream < SENDS).flatMap(([, mine]) => mine);
      add(lane, ops.sort((a, b) => c.op_start[a] - c.op_start[b] || a - b), { high: THIN, text: "" });
      continue;
    }
    if (list.length && (!hosts.length || titles.at(-1).y + TITLE !== y)) y += GAP;
    const title = `${named ? `${run.summary.jobs[one.job].name} ` : "rank "}${one.rank}${one.alike > 1 ? ` ×${one.alike}` : ""}`;
    [...streamsHere.keys()].sort((a, b) => a - b).forEach((stream, k) => {
      const text = stream > SENDS ? "" : stream === SENDS ? "  sends" : `  ${streams[stream] || "receives"}`;
      add(lane, streamsHere.get(stream), { high: ROW, text: k ? text : title, first: !k, sends: stream >= SENDS });
    });
  }
  return { list, titles, of, height: y + 8, label: matchMedia("(max-width: 600px)").matches ? 64 : 104 };
}

/** Operations of each lane by stream, in order of start, and the messages that it sent. */
function operationsOf(run, messages) {
  const c = run.columns;
  const places = new Map();
  const put = (lane, stream, k) => {
    const mine = places.get(lane) ?? places.set(lane, new Map()).get(lane);
    (mine.get(stream) ?? mine.set(stream, []).get(stream)).push(k);
  };
  for (let k = 0; k < c.op_lane.length; k++) put(c.op_lane[k], c.op_stream[k], k);
  if (messages) for (let k = 0; k < c.message_lane.length; k++) put(c.message_lane[k], SENDS + c.message_row[k], k);
  return places;
}

/** Names of hosts, where there are several and one has several ranks; else none. */
export function hostsOf(run) {
  const all = run.timeline.lanes.map((lane) => lane.host);
  const names = [...new Set(all)];
  // Ranks that come from host to host in turns would have a title each.
  const changes = all.filter((host, k) => k === 0 || host !== all[k - 1]).length;
  return names.length > 1 && names.length < all.length && changes <= names.length * new Set(run.timeline.lanes.map((lane) => lane.job)).size ? names : [];
}

export class Row {
  constructor(columns, ops, { y, lane, high, text, first = false, sends = false }) {
    Object.assign(this, { columns, ops, y, lane, high, text, first, sends });
    [this.start, this.time] = sends ? [columns.message_start, columns.message_time] : [columns.op_start, columns.op_time];
    this.most = ops.reduce((most, k) => Math.max(most, this.time[k]), 0);
    this.numbers = null;
  }

  /** The first operation that may reach a time. */
  before(at) {
    let [low, high] = [0, this.ops.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[this.ops[middle]] + this.most < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The operation at a time, or so near; -1: none. */
  at(when, near) {
    let found = -1;
    for (let i = this.before(when - near); i < this.ops.length; i++) {
      const k = this.ops[i];
      if (this.start[k] > when + near) break;
      if (this.start[k] + this.time[k] < when - near) continue;
      if (this.start[k] <= when && when <= this.start[k] + this.time[k]) return k;
      if (found < 0) found = k;
    }
    return found;
  }

  /** Whether a step of a critical path is an operation of this row. */
  has(step) {
    if (this.sends) return false;
    this.numbers ??= new Set(this.ops.map((k) => this.columns.op_number[k]));
    return this.numbers.has(step.op);
  }
}

/** When each lane computes, apart from each other: for each lane [starts, ends]. Communication meanwhile is hidden. */
export function computingOf(run) {
  return unions(run, (shade) => shade === "compute" || shade === "memory");
}

/** The union of the operations of some shades, for each lane. */
export function unions(run, wanted) {
  const c = run.columns;
  const is = run.timeline.shades.map(wanted);
  const found = run.timeline.lanes.map(() => [[], []]);
  for (let k = 0; k < c.op_lane.length; k++) { // of each lane in order of start
    if (c.op_shade && !is[c.op_shade[k]]) continue;
    const [starts, ends] = found[c.op_lane[k]];
    const [from, to] = [c.op_start[k], c.op_start[k] + c.op_time[k]];
    if (starts.length && from <= ends.at(-1)) ends[ends.length - 1] = Math.max(ends.at(-1), to);
    else if (to > from) starts.push(from), ends.push(to);
  }
  return found;
}
