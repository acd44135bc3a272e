"""Times and slowdowns of messages by size, where the run keeps them: exact quantiles of classes of sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.results.pair_paths import PairPaths
from cosim.results.report.source import I64, ReportSource
from cosim.results.sums import exact_sum

Array = NDArray[Any]
_QUANTILES = 33
_THOUSANDTHS = 1000


def size_data(source: ReportSource, head: dict[str, Any]) -> dict[str, Array]:
    """Columns ``size_quantiles`` (ps) and ``size_slowdowns`` (thousandths, of as many rows, where paths are
    known), one class after the other; a class is twice the one before.
    """
    messages = source.messages
    head["sizes"] = []
    if messages is None or not len(messages.size_bytes):
        return {}
    time = messages.end_ps - messages.start_ps
    slowdown = slowdowns(source, time)
    sizes, place = np.unique(messages.size_bytes, return_inverse=True)
    of = np.array([max(int(one), 1).bit_length() - 1 for one in sizes])[place]
    quantiles, slower = [], []
    for k in np.unique(of).tolist():
        mine = np.flatnonzero(of == k)
        times = np.sort(time[mine])
        quantiles.append(_quantiles(times))
        if slowdown is not None:
            slower.append(_quantiles(np.sort(slowdown[mine])))
        total, busy = int(messages.size_bytes[mine].sum()), exact_sum(times)
        head["sizes"].append(
            {
                "from": 1 << k,
                "count": len(times),
                "p50": int(times[(len(times) - 1) // 2]),
                "p99": int(times[(99 * (len(times) - 1)) // 100]),
                "max": int(times[-1]),
                "rate_bps": 8e12 * total / busy if busy else None,
            }
        )
    columns: dict[str, Array] = {"size_quantiles": np.concatenate(quantiles)}
    if slower:
        columns["size_slowdowns"] = np.concatenate(slower)
    return columns


def _quantiles(values: I64) -> I64:
    at = np.rint(np.linspace(0, 1, _QUANTILES) * (len(values) - 1)).astype(np.int64)
    return values[at]


def slowdowns(source: ReportSource, time: I64) -> I64 | None:
    """Thousandths of what each message takes alone; None where some have no path that is known."""
    found, messages = source.columns, source.messages
    if messages is None:
        return None
    paths = PairPaths(*(found[f"pair_{name}"] for name in ("src", "dst", "rate_bps", "latency_ps")))
    ends = messages.src.astype(np.int64), messages.dst.astype(np.int64)
    alone = paths.alone_ps(*ends, messages.size_bytes)
    if not np.isfinite(alone).all():
        return None
    return np.rint(_THOUSANDTHS * time / np.maximum(alone, 1)).astype(np.int64)
