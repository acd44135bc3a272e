"""Charts of runs: completion times, slowdowns, queues, rates, throughput, goodput; seeds as a band."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError
from cosim.faults.training import Lifetime
from cosim.results.plots.chart import Axis, Line, LineChart
from cosim.results.report.size_data import slowdowns
from cosim.results.report.source import I64, ReportSource
from cosim.results.series import series_of

F64 = NDArray[np.float64]
Curve = tuple[F64, F64]
"""Places and values."""
MOST_LINES = 8
_MOST_PLACES = 800
_MESSAGES = "record them: cosim run S --set record.messages=true --out DIR"

Groups = Mapping[str, Sequence[ReportSource]]
"""Runs by the label of their line: several seeds of one."""


def completion(groups: Groups) -> LineChart:
    """The distribution of messages' completion times: exact where messages are kept, else by classes 3 %
    wide.
    """

    def curves(source: ReportSource) -> dict[str, Curve]:
        if source.messages is not None and len(source.messages.start_ps):
            times = np.sort(source.messages.end_ps - source.messages.start_ps).astype(np.float64)
            return {"": (times, np.arange(1, len(times) + 1) / len(times))}
        counts = source.columns["fct_counts"]
        if not counts.any():
            raise InputError(f"{_named(source)} sent no messages: there are no completion times")
        used = np.flatnonzero(counts)
        edges = source.columns["fct_edges_ps"][used + 1].astype(np.float64)
        return {"": (edges, np.cumsum(counts[used]) / counts.sum())}

    x, y = Axis("flow completion time", "ps", log=True), Axis("share of messages", "share")
    return LineChart(x, y, [_from_zero(line) for line in _lines(groups, curves, steps=True)], steps=True)


def by_size(groups: Groups) -> LineChart:
    """Completion times by size: median, and the 99th percentile dashed."""
    return _sizes(groups, Axis("flow completion time", "ps", log=True), lambda source: _times(source)[1])


def slowdown(groups: Groups) -> LineChart:
    """How many times longer messages take than alone, by size: median, and the 99th percentile dashed."""

    def of(source: ReportSource) -> F64:
        _, times = _times(source)
        found = slowdowns(source, times.astype(np.int64))
        if found is None:
            raise InputError(
                f"of {_named(source)} slowdowns are not known",
                hint="paths of at most 20,000 pairs are kept, of runs without a load balancer and events",
            )
        return found / 1000

    return _sizes(groups, Axis("slowdown", "ratio", log=True), of)


def queue(groups: Groups) -> LineChart:
    """The longest queue of all links whose queues were kept, over time."""

    def curves(source: ReportSource) -> dict[str, Curve]:
        series = series_of(source.columns)
        if series is None or not len(series.links):
            raise InputError(
                f"{_named(source)} kept no queues over time",
                hint="record them: --set 'record.queues=\"* -> *\"' --set record.every=10us",
            )
        return {"": (series.at_ps.astype(np.float64), series.queues.queue_bytes.max(axis=1))}

    return LineChart(Axis("time", "ps"), Axis("longest queue", "bytes"), _lines(groups, curves))


def rate(groups: Groups) -> LineChart:
    """Rates that were kept, over time, a line for each name."""

    def curves(source: ReportSource) -> dict[str, Curve]:
        series = series_of(source.columns)
        if series is None or not len(series.names):
            raise InputError(
                f"{_named(source)} kept no rates over time",
                hint="record them: --set 'record.rates=[JOB]' --set record.every=10us",
            )
        at = series.at_ps.astype(np.float64)
        return {name: (at, series.rate_bps[:, k]) for k, name in enumerate(series.names)}

    return LineChart(Axis("time", "ps"), Axis("rate", "bps"), _lines(groups, curves, steps=True), steps=True)


def throughput(groups: Groups) -> LineChart:
    """Payload that reached endpoints, all together, over time."""

    def curves(source: ReportSource) -> dict[str, Curve]:
        found, end_ps = source.columns, source.summary.end_ps
        bin_ps = int(found["traffic_bin_ps"])
        used = max(1, min(len(found["traffic_bytes"]), -(-end_ps // bin_ps)))
        edges = np.arange(used + 1, dtype=np.int64) * bin_ps
        sent = source.reached(found["traffic_bytes"][:used].sum(axis=1)[None])[0]
        long = np.maximum(np.diff(np.minimum(edges, max(end_ps, 1))), 1)
        return {"": (edges[:-1].astype(np.float64), 8e12 * sent / long)}

    chart = LineChart(
        Axis("time", "ps"), Axis("throughput", "bps"), _lines(groups, curves, steps=True), steps=True
    )
    if not any(line.y.any() for line in chart.lines):
        raise InputError("nothing was sent: there is no throughput")
    return chart


def goodput(groups: Groups) -> LineChart:
    """The share of each day that brought a training on."""

    def curves(source: ReportSource) -> dict[str, Curve]:
        found = {job.name: job.training for job in source.summary.jobs if job.training is not None}
        if not found:
            raise InputError(
                f"{_named(source)} has no training: goodput is what failures leave of one",
                hint="say how long it lasts: jobs[0].training.lasts=54d; of the network's, --what throughput",
            )
        return {name if len(found) > 1 else "": _kept(life) for name, life in found.items()}

    y = Axis("goodput", "share")
    return LineChart(Axis("time", "span"), y, _lines(groups, curves, steps=True), steps=True)


CHARTS: dict[str, Callable[[Groups], LineChart]] = {
    "cdf": completion,
    "fct-by-size": by_size,
    "slowdown": slowdown,
    "queue": queue,
    "rate": rate,
    "throughput": throughput,
    "goodput": goodput,
}
"""By what is asked for."""


def _from_zero(line: Line) -> Line:
    """The same, going up from 0 at its first place."""
    low, high = (None if one is None else np.append(0.0, one) for one in (line.low, line.high))
    return Line(line.label, np.append(line.x[:1], line.x), np.append(0.0, line.y), low, high)


def _named(source: ReportSource) -> str:
    return f"the run {source.summary.name!r}" if source.summary.name else "the run"


def _times(source: ReportSource) -> tuple[I64, F64]:
    """(Sizes, times) of messages."""
    messages = source.messages
    if messages is None or not len(messages.size_bytes):
        raise InputError(f"{_named(source)} kept no messages", hint=_MESSAGES)
    return messages.size_bytes, (messages.end_ps - messages.start_ps).astype(np.float64)


def _sizes(groups: Groups, y: Axis, of: Callable[[ReportSource], F64]) -> LineChart:
    def curves(source: ReportSource) -> dict[str, Curve]:
        sizes, _ = _times(source)
        values = of(source)
        classes = np.floor(np.log2(np.maximum(sizes, 1))).astype(np.int64)
        used = np.unique(classes)
        at: F64 = np.asarray(2.0**used, np.float64)
        parts = [np.sort(values[classes == one]) for one in used]
        return {
            name: (at, np.array([part[int(share * (len(part) - 1))] for part in parts]))
            for name, share in (("p50", 0.5), ("p99", 0.99))
        }

    return LineChart(Axis("size", "bytes", log=True), y, _lines(groups, curves), pairs=True)


def _kept(life: Lifetime) -> Curve:
    """Each day of a training, its last one as long as it is; checkpoints are taken to be evenly spread."""
    day = 86_400 * 10**12
    edges = np.minimum(np.arange(-(-life.lasts_ps // day) + 1, dtype=np.float64) * day, life.lasts_ps)
    gone = np.zeros(len(edges) - 1)
    for one in life.setbacks:
        ends = np.clip(edges, one.time_ps - one.redone_ps, one.time_ps + one.down_ps)
        gone += np.diff(ends)
    useful = life.useful_ps / max(life.useful_ps + life.checkpoint_ps, 1)
    return edges[:-1], useful * (1 - gone / np.diff(edges))


def _lines(
    groups: Groups, curves: Callable[[ReportSource], dict[str, Curve]], *, steps: bool = False
) -> list[Line]:
    """A line of each group and name; of several seeds the mean, between the least and the most.

    Raises
    ------
    InputError
        They are more than can be told apart.
    """
    lines = []
    for label, sources in groups.items():
        found = [curves(source) for source in sources]
        for name in dict.fromkeys(name for one in found for name in one):
            mine = [one[name] for one in found if name in one]
            lines.append(_line(" ".join(part for part in (label, name) if part), mine, steps=steps))
    if len({line.label for line in lines}) > 2 * MOST_LINES:
        raise InputError(
            f"{len(groups)} runs on one axis, of which {MOST_LINES} can be told apart",
            hint="give fewer, or a sweep's folder with --what sweep, which is a panel for each choice",
        )
    return lines


def _line(label: str, seeds: Sequence[Curve], *, steps: bool) -> Line:
    if len(seeds) == 1:
        x, y = _thinned(*seeds[0], steps=steps)
        return Line(label, x, y)
    places = np.unique(np.concatenate([x for x, _ in seeds]))
    if len(places) > _MOST_PLACES:
        places = places[np.unique(np.linspace(0, len(places) - 1, _MOST_PLACES).astype(np.int64))]
    values = np.array([_at(places, x, y, steps=steps) for x, y in seeds])
    return Line(label, places, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


def _at(places: F64, x: F64, y: F64, *, steps: bool) -> F64:
    """A curve's values at places: of steps the last before, 0 where none is."""
    if not steps:
        return np.asarray(np.interp(places, x, y), np.float64)
    k = np.searchsorted(x, places, side="right") - 1
    return np.where(k >= 0, y[np.maximum(k, 0)], 0.0)


def _thinned(x: F64, y: F64, *, steps: bool) -> Curve:
    """As many places as a figure can show; of values between two of them the largest, of steps the first."""
    if len(x) <= _MOST_PLACES:
        return x, y
    starts = np.unique(np.linspace(0, len(x) - 1, _MOST_PLACES).astype(np.int64))
    return x[starts], y[starts] if steps else np.maximum.reduceat(y, starts)
