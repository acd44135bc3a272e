/**
 * Numbers with their units, as cosim's pages write them.
 * @module format
 */

const TIMES = [[1e12, "s"], [1e9, "ms"], [1e6, "us"], [1e3, "ns"], [1, "ps"]];
const SIZES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const FLOPS = [[1e15, "PFLOP/s"], [1e12, "TFLOP/s"], [1e9, "GFLOP/s"], [1e6, "MFLOP/s"], [1, "FLOP/s"]];
const RATES = [[1e12, "Tbps"], [1e9, "Gbps"], [1e6, "Mbps"], [1e3, "kbps"], [1, "bps"]];

function scaled(value, units) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  if (value === 0) return `0 ${units.at(-1)[1]}`;
  const [unit, name] = units.find(([one]) => Math.abs(value) >= one) ?? units.at(-1);
  return `${Number((value / unit).toPrecision(4))} ${name}`;
}

/** Picoseconds. */
export const time = (ps) => scaled(ps, TIMES);
/** Picoseconds that may be hours or days, as Python's `format_span`. */
export const span = (ps) => (Math.abs(ps) < 60e12 ? time(ps) : scaled(ps, [[86_400e12, "d"], [3_600e12, "h"], [60e12, "min"]]));
/** Bytes that were measured: decimal units, so that those of a column can be compared. */
export const amount = (bytes) => scaled(bytes, SIZES);
/** Bytes that somebody chose: binary units where they are whole and below 1,024, decimal ones elsewhere. */
export function size(bytes) {
  const found = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]].find(([unit]) => bytes >= unit && bytes < 1024 * unit && bytes % unit === 0);
  return found ? `${bytes / found[0]} ${found[1]}` : scaled(bytes, SIZES);
}
/** Bits per second. */
export const rate = (bps) => scaled(bps, RATES);
/** Floating-point operations a second. */
export const flops = (each) => scaled(each, FLOPS);
/** A share from 0 to 1. */
export const percent = (share) => (share === null ? "-" : `${(100 * share).toFixed(1)} %`);
/** A whole number. */
export const count = (number) => Math.round(number).toLocaleString("en");
/** A signed time. */
export const signedTime = (ps) => `${ps < 0 ? "-" : "+"}${time(Math.abs(ps))}`;

/**
 * Times of an axis with one unit, fine enough to tell its marks apart.
 * @param {number[]} marks in picoseconds
 * @returns {string[]}
 */
export function axis(marks) {
  const step = Math.abs((marks[1] ?? marks[0]) - marks[0]) || 1;
  const largest = Math.max(...marks.map(Math.abs), 1);
  const [unit, name] = TIMES.find(([one]) => largest >= one) ?? TIMES.at(-1);
  const digits = Math.max(0, Math.min(12, Math.ceil(Math.log10(unit / step) - 1e-9)));
  return marks.map((mark) => `${(mark / unit).toFixed(digits)} ${name}`);
}

/** Round marks within a span, about so many. */
export function marks(from, to, about) {
  const raw = (to - from) / Math.max(about, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw) ?? raw;
  const out = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) out.push(at);
  return out;
}

/** What a number written by one of these is in, as the end of a column's name. */
export const unitOf = (format) => new Map([[time, "_ps"], [size, "_bytes"], [amount, "_bytes"], [rate, "_bps"], [flops, "_flops"]]).get(format) ?? "";
