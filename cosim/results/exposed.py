"""Exposed communication by what was sent: all-reduces, all-gathers, sends, receives ...

A receive is under way from when its rank is ready for it: what a stage of a pipeline waits for others, its
bubble, is exposed there, with what the message itself takes. Where several kinds are under way at once and
nothing is computed, each has an equal part of that time.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cosim.results.intervals import time_in_states
from cosim.results.optable import COMPUTE
from cosim.results.table import Array

MOST_OPERATIONS = 2_000_000
_MOST_KINDS = 6
_RANKS_AT_ONCE = 1024


def exposed_by_kind(columns: Mapping[str, Array]) -> list[dict[str, float]]:
    """Picoseconds of each job by kind, mean over its simulated ranks, over all iterations.

    ``columns`` are those of ``columns.npz``; nothing where there are more than :data:`MOST_OPERATIONS`.
    """
    ptr = columns["job_ptr"]
    none: list[dict[str, float]] = [{} for _ in range(len(ptr) - 1)]
    if len(columns["op_job"]) > MOST_OPERATIONS:
        return none
    names = columns["sent_text"].tolist()
    rank = ptr[columns["op_job"]] + columns["op_rank"]
    row = columns["rank_row"][rank] + columns["op_op"]
    kind = columns["row_sent"][row]
    computes = columns["row_layer"][row] == COMPUTE
    used = np.unique(kind[kind >= 0])
    layer_of = np.full(len(names) + 1, -1, np.int64)
    layer_of[used] = 1 + np.minimum(np.arange(len(used)), _MOST_KINDS - 1)
    called = [names[k] for k in used.tolist()[: _MOST_KINDS - 1]]
    called += [
        "others" if len(used) > _MOST_KINDS else names[int(one)] for one in used[_MOST_KINDS - 1 :][:1]
    ]
    layer = np.where(computes, 0, layer_of[kind])
    counted = layer >= 0
    start, end = columns["op_start_ps"][counted], columns["op_end_ps"][counted]
    parts = _parts(rank[counted], layer[counted], start, end, int(ptr[-1]), len(called))
    return [
        {
            name: float(parts[ptr[job] : ptr[job + 1], k].mean())
            for k, name in enumerate(called)
            if parts[ptr[job] : ptr[job + 1], k].any()
        }
        for job in range(len(none))
    ]


def _parts(
    rank: Array, layer: Array, start: Array, end: Array, ranks: int, kinds: int
) -> NDArray[np.float64]:
    """float64[ranks, kinds]; layer 0 computes, layer 1 + k sends kind k."""
    states = np.arange(1 << (kinds + 1))
    sends = (states[:, None] >> np.arange(1, kinds + 1) & 1).astype(np.float64)
    sends[states % 2 == 1] = 0  # something is computed
    sends /= np.maximum(sends.sum(axis=1, keepdims=True), 1)
    out = np.zeros((ranks, kinds))
    order = np.argsort(rank, kind="stable")
    ends = np.searchsorted(rank[order], np.arange(0, ranks + _RANKS_AT_ONCE, _RANKS_AT_ONCE))
    for k, (a, b) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        first, mine = k * _RANKS_AT_ONCE, order[a:b]
        count = min(_RANKS_AT_ONCE, ranks - first)
        each = (rank[mine] - first, layer[mine].astype(np.int8), start[mine], end[mine])
        out[first : first + count] = time_in_states(*each, count, kinds + 1) @ sends
    return out
