/**
 * What the page was written with: plain values, and columns of numbers.
 * @module data
 */

/**
 * Unpack what Python's `packing.packed` wrote.
 * @param {string} text base64 of deflate
 * @returns {Promise<object>} the plain values; `columns` of each run are typed arrays by name
 */
export async function unpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (one) => one.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const body = bytes.subarray(4 + length);
  for (const [number, run] of (head.runs ?? []).entries()) run.columns = columnsOf(head.columns, `${number}.`, body);
  return head;
}

/** Columns whose names begin with a prefix, by the rest of their names; each is unpacked when it is asked for. */
function columnsOf(index, prefix, body) {
  const columns = {};
  for (const [name, [kind, rows, width, at]] of Object.entries(index)) {
    if (!name.startsWith(prefix)) continue;
    let made = null;
    const make = () => (kind === "int" ? integers(body, at, rows, width) : floats(body, at, rows));
    Object.defineProperty(columns, name.slice(prefix.length), { get: () => (made ??= make()) });
  }
  return columns;
}

/** Differences, their sign in the lowest bit, byte by byte: the numbers they lead to. */
function integers(body, at, rows, width) {
  const out = new Float64Array(rows);
  let sum = 0;
  for (let row = 0; row < rows; row++) {
    let folded = 0;
    for (let k = width - 1; k >= 0; k--) folded = folded * 256 + body[at + k * rows + row];
    const half = Math.floor(folded / 2);
    sum += folded % 2 ? -half - 1 : half;
    out[row] = sum;
  }
  return out;
}

function floats(body, at, rows) {
  const view = new DataView(body.buffer, body.byteOffset + at, 4 * rows);
  return Float64Array.from({ length: rows }, (_, row) => view.getFloat32(4 * row, true));
}
