"""Queues and rates over time, as a report shows them: so many lines and times that the page stays small."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import I64, Series
from cosim.results.report.source import ReportSource
from cosim.results.series import series_of

Array = NDArray[Any]
MOST_TIMES = 1024
MOST_LINES = 64


def series_data(source: ReportSource, head: dict[str, Any]) -> dict[str, Array]:
    """Columns ``series_*``, each line after the other: of a queue the longest between two times shown, of
    marks, drops and pauses the sum, of rates and windows the mean.
    """
    series = series_of(source.columns)
    if series is None or len(series.at_ps) < 2:
        return {}
    each = -(-len(series.at_ps) // MOST_TIMES)
    starts = np.arange(0, len(series.at_ps), each)
    links = _largest(series.queues.queue_bytes)
    names = _largest(series.rate_bps)
    head["series"] = {
        "links": series.links[links].tolist(),
        "names": [series.names[k] for k in names.tolist()],
        "said": _said(series, each, len(links), len(names)),
        "windows": bool(np.isfinite(series.window_bytes[:, names]).any()),
    }
    columns: dict[str, Array] = {"series_at": series.at_ps[starts]}
    if len(links):
        columns |= _queue_columns(series, starts, links)
    if len(names):
        counts = np.diff(np.append(starts, len(series.at_ps)))[:, None]
        for key, values in (("rate", series.rate_bps), ("window", np.nan_to_num(series.window_bytes))):
            mean = np.add.reduceat(values[:, names], starts, axis=0) / counts
            columns[f"series_{key}"] = _flat(mean)
    return columns


def _queue_columns(series: Series, starts: I64, links: I64) -> dict[str, Array]:
    queues = series.queues
    last = np.append(starts[1:], len(series.at_ps) - 1)
    long = np.maximum(series.at_ps[last] - series.at_ps[starts], 1)[:, None]
    columns = {"series_queue": _flat(np.maximum.reduceat(queues.queue_bytes[:, links], starts, axis=0))}
    sent = queues.sent_bytes[:, links]
    columns["series_sent"] = _flat((sent[last] - sent[starts]) * 8e12 / long)
    for key, values in (("marks", queues.marks), ("drops", queues.drops), ("pause", queues.pause_ps)):
        mine = values[:, links]
        columns[f"series_{key}"] = _flat(mine[last] - mine[starts])
    return columns


def _largest(values: NDArray[np.float64]) -> I64:
    """The lines that go highest, in their order."""
    peak = values.max(axis=0, initial=0.0)
    return np.sort(np.argsort(-peak, kind="stable")[:MOST_LINES])


def _flat(values: NDArray[np.float64]) -> I64:
    return np.rint(values).astype(np.int64).T.reshape(-1)


def _said(series: Series, each: int, links: int, names: int) -> str:
    parts = []
    if links < len(series.links):
        parts.append(f"the {links} longest queues of {len(series.links):,}")
    if names < len(series.names):
        parts.append(f"the {names} highest rates of {len(series.names):,}")
    if each > 1:
        parts.append(f"{each} samples each: of queues the longest, of rates the mean")
    return "; ".join(parts)
