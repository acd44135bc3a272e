"""Queues and rates over time: as tables, and as the columns that are written of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cosim.engine.records import I64, Series
from cosim.errors import InputError
from cosim.network.simulator import QueueSample
from cosim.results.table import Array, Labels, Table

SERIES_TEXTS = {
    "queues": {
        "at_ps": "when that instant begins",
        "link": "src -> dst",
        "queue_bytes": "waiting there",
        "sent_bps": "since the row before, on average",
        "marks": "packets since the row before",
        "drops": "packets since the row before",
        "pause_ps": "since the row before, of all classes of priority",
    },
    "rates": {
        "at_ps": "when that instant begins",
        "name": "a job, or who sends to whom",
        "rate_bps": "bits per second, at which it sends",
        "window_bytes": "of all its connections that send, NaN where the control has none",
        "marked": "part of their last round trip's bytes, a mean over those connections",
        "connections": "that send",
    },
}
"""What each column is, of tables that a scenario asks for by ``record``."""


def queues_table(nodes: Sequence[str], src: Array, dst: Array, series: Series | None) -> Table:
    """A row for each link and time, in order of time.

    Raises
    ------
    InputError
        The run has none.
    """
    if series is None or not len(series.links):
        raise _none("queues", "leaf0 -> spine*")
    names = tuple(f"{nodes[src[link]]} -> {nodes[dst[link]]}" for link in series.links.tolist())
    times, links = series.queues.queue_bytes.shape
    rows = {name: _steps(one).reshape(-1) for name, one in series.queues._asdict().items()}
    step = np.maximum(_steps(series.at_ps[:, None]), 1)
    sent = _steps(series.queues.sent_bytes) * 8e12 / step
    columns: dict[str, Array | Labels] = {
        "at_ps": np.repeat(series.at_ps, links),
        "link": Labels(np.tile(np.arange(links), times), names),
        "queue_bytes": series.queues.queue_bytes.reshape(-1),
        "sent_bps": sent.reshape(-1),
        **{name: rows[name] for name in ("marks", "drops", "pause_ps")},
    }
    return Table("queues", columns, SERIES_TEXTS["queues"])


def rates_table(series: Series | None) -> Table:
    """A row for each job or pair of endpoints and time, in order of time.

    Raises
    ------
    InputError
        The run has none.
    """
    if series is None or not series.names:
        raise _none("rates", "gpu0 -> *")
    times, names = series.rate_bps.shape
    columns: dict[str, Array | Labels] = {
        "at_ps": np.repeat(series.at_ps, names),
        "name": Labels(np.tile(np.arange(names), times), series.names),
        **{
            name: getattr(series, name).reshape(-1)
            for name in SERIES_TEXTS["rates"]
            if name not in ("at_ps", "name")
        },
    }
    return Table("rates", columns, SERIES_TEXTS["rates"])


def _steps(values: Array) -> Array:
    """What came since the row before; nothing before the first."""
    return np.diff(values, axis=0, prepend=values[:1])


def _none(what: str, example: str) -> InputError:
    asked = f"record: {{{what}: [{example!r}]}}"
    return InputError(f"the run has no {what} over time", hint=f"ask for them in the scenario: {asked}")


def series_columns(series: Series | None) -> dict[str, Array]:
    """By the names of :data:`SERIES_COLUMNS`; nothing where there are none."""
    if series is None:
        return {}
    return {
        "series_asked_ps": np.array(series.asked_ps, np.int64),
        "series_every_ps": np.array(series.every_ps, np.int64),
        "series_at_ps": series.at_ps,
        "queue_link": series.links,
        **{_QUEUE_COLUMNS[name]: one for name, one in series.queues._asdict().items()},
        "rate_name": np.array(series.names, np.str_),
        "rate_bps": series.rate_bps,
        "rate_window_bytes": series.window_bytes,
        "rate_marked": series.marked,
        "rate_connections": series.connections,
    }


def series_of(columns: Mapping[str, Array]) -> Series | None:
    """What :func:`series_columns` wrote; None where there is none."""
    if "series_at_ps" not in columns:
        return None
    links: I64 = columns["queue_link"]
    return Series(
        int(columns["series_asked_ps"]),
        int(columns["series_every_ps"]),
        columns["series_at_ps"],
        links,
        QueueSample(*(columns[_QUEUE_COLUMNS[name]] for name in QueueSample._fields)),
        tuple(columns["rate_name"].tolist()),
        columns["rate_bps"],
        columns["rate_window_bytes"],
        columns["rate_marked"],
        columns["rate_connections"],
    )


_QUEUE_COLUMNS = {
    "queue_bytes": "queue_bytes",
    "sent_bytes": "queue_sent_bytes",
    "marks": "queue_marks",
    "drops": "queue_drops",
    "pause_ps": "queue_pause_ps",
}
SERIES_COLUMNS = {
    "series_asked_ps": "int64 scalar: record.every",
    "series_every_ps": "int64 scalar: how far samples are apart; more, where those asked for were too many",
    "series_at_ps": "int64[T]: when each sample was taken",
    "queue_link": "int64[Q]: the links whose queues are kept, by number",
    "queue_bytes": "float64[T, Q]: waiting there",
    "queue_sent_bytes": "float64[T, Q]: since the beginning, as the next three",
    "queue_marks": "float64[T, Q]: packets",
    "queue_drops": "float64[T, Q]: packets",
    "queue_pause_ps": "float64[T, Q]: paused, of all classes of priority",
    "rate_name": "str[N]: jobs, then who sends to whom",
    "rate_bps": "float64[T, N]: at which it sends",
    "rate_window_bytes": "float64[T, N]: NaN where the control has no window",
    "rate_marked": "float64[T, N]: of the last round trip's bytes",
    "rate_connections": "int64[T, N]: that send",
}
"""Where ``record`` asks for queues or rates."""
