"""Messages as a timeline shows them: those that shown ranks sent, each in a row below its rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import MessageRecords
from cosim.results.intervals import lanes as rows_apart
from cosim.results.report.lanes import Lanes
from cosim.results.report.source import I64, ReportSource

Array = NDArray[Any]
MOST_MESSAGES = 40_000
MOST_ROWS = 6
"""Below a rank; what else is under way at once is drawn in the last."""


def message_data(source: ReportSource, shown: Lanes, head: dict[str, Any]) -> dict[str, Array]:
    """Columns ``message_*`` in order of lane and start, where the run keeps messages: of the last iterations
    if there are more than :data:`MOST_MESSAGES`, of as many of the last ones if that is still too many.
    """
    messages = source.messages
    if messages is None or not len(messages.start_ps):
        return {}
    lane = _lanes(source, shown, messages)
    mine = np.flatnonzero(lane >= 0)
    total = len(mine)
    if total > MOST_MESSAGES:
        order = np.lexsort((messages.end_ps[mine], messages.iteration[mine]))
        mine = mine[np.sort(order[-MOST_MESSAGES:])]
    mine = mine[np.lexsort((messages.end_ps[mine], messages.start_ps[mine], lane[mine]))]
    lane, start, end = lane[mine], messages.start_ps[mine], messages.end_ps[mine]
    row = np.zeros(len(mine), np.int64)
    for one in np.unique(lane).tolist():
        at = np.flatnonzero(lane == one)
        row[at] = np.minimum(rows_apart(start[at], end[at]), MOST_ROWS - 1)
    left = f"the last {len(mine):,} messages of {total:,}" if len(mine) < total else ""
    head["messages"] = {"said": left}
    return {
        "message_lane": lane,
        "message_row": row,
        "message_start": start,
        "message_time": end - start,
        "message_dst": messages.dst[mine],
        "message_size": messages.size_bytes[mine],
        "message_op": messages.op[mine],
        "message_iteration": messages.iteration[mine],
    }


def _lanes(source: ReportSource, shown: Lanes, messages: MessageRecords) -> I64:
    """The lane of each message's sender, -1 where it has none: of ranks that fared alike the one that is
    shown.
    """
    found, jobs = source.columns, source.job_of_ranks()
    endpoints = source.summary.num_endpoints
    lane = np.full(endpoints * len(source.summary.jobs), -1, np.int64)
    lane[jobs[shown.ranks] * endpoints + found["job_endpoints"][shown.ranks]] = np.arange(len(shown.ranks))
    at = messages.job.astype(np.int64) * endpoints + messages.src
    return np.where(messages.src < endpoints, lane[np.minimum(at, len(lane) - 1)], -1)  # switches have none
