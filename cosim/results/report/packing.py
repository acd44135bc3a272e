"""Columns as one compressed text that a browser unpacks without a library.

Integers are written as differences from the row before, their sign in the lowest bit, and then byte by
byte: all lowest bytes, all second ones ..., as many as the largest needs. Deflate makes little of that. A
number beyond 2^53 loses its last digits in the browser, which has no larger integers: of a time, after 2.5
hours of picoseconds.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def packed(head: Mapping[str, Any], columns: Mapping[str, Array]) -> str:
    """Base64 of deflate of: a length (uint32), ``head`` as JSON of that length, and the columns' bytes.

    ``head`` gets ``columns``: of each its kind (``int`` or ``float``), rows, bytes of a row, and where it
    begins behind the JSON.
    """
    parts, index, at = [], {}, 0
    for name, column in columns.items():
        kind, width, data = _bytes(column)
        index[name] = [kind, len(column), width, at]
        parts.append(data)
        at += len(data)
    text = json.dumps({**head, "columns": index}, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    said = text.encode("utf-8", "backslashreplace")
    body = b"".join([len(said).to_bytes(4, "little"), said, *parts])
    return base64.b64encode(zlib.compress(body, 9)).decode("ascii")


def _bytes(column: Array) -> tuple[str, int, bytes]:
    if column.dtype.kind == "f":
        return "float", 4, column.astype("<f4").tobytes()
    numbers = column.astype(np.int64)
    steps: NDArray[np.int64] = np.concatenate([numbers[:1], numbers[1:] - numbers[:-1]])
    folded = ((steps << 1) ^ (steps >> 63)).astype("<u8")
    width = max(1, (int(folded.max(initial=0)).bit_length() + 7) // 8)
    planes = folded.view(np.uint8).reshape(-1, 8)[:, :width]
    return "int", width, np.ascontiguousarray(planes.T).tobytes()
