"""What a network says of a run: times of messages, queues, marks, drops, pauses, lines, bytes leapt over.

Percentiles of message times come from a histogram, within one bin's width (1/64) of the exact ones. Lines of
cache are the device network's. What was not simulated was recalled from before, or extended at settled rates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.engine.records import FctHistogram
from cosim.network.simulator import NetworkStatistics
from cosim.topology.graph import Topology


@dataclass(frozen=True)
class FctSummary:
    """Percentiles of the flow completion time; minimum, mean and maximum are exact."""

    count: int
    min_ps: int
    mean_ps: int
    p50_ps: int
    p90_ps: int
    p99_ps: int
    p999_ps: int
    max_ps: int


def percentile_ps(fct: FctHistogram, per_mille: int) -> int:
    """The nearest-rank percentile: the smallest time that ``per_mille``/1000 of the flows don't exceed.

    The bin is exact; inside the bin, flows are taken as evenly spread.
    """
    below = np.cumsum(fct.counts)
    total = int(below[-1]) if len(below) else 0
    if total == 0:
        return 0
    nth = max(1, -(-per_mille * total // 1000))
    if nth == total:
        return fct.max_ps
    if nth == 1:
        return fct.min_ps
    i = int(np.searchsorted(below, nth))
    before, inside = (int(below[i - 1]) if i else 0), int(fct.counts[i])
    low, high = int(fct.edges_ps[i]), int(fct.edges_ps[i + 1])
    value = low + (high - low) * (2 * (nth - before) - 1) // (2 * inside)
    return min(max(value, fct.min_ps), fct.max_ps)


def summarize_fct(fct: FctHistogram) -> FctSummary | None:
    """None where no flow completed."""
    count = int(fct.counts.sum())
    if count == 0:
        return None
    return FctSummary(
        count=count,
        min_ps=fct.min_ps,
        mean_ps=round(fct.sum_ps / count),
        p50_ps=percentile_ps(fct, 500),
        p90_ps=percentile_ps(fct, 900),
        p99_ps=percentile_ps(fct, 990),
        p999_ps=percentile_ps(fct, 999),
        max_ps=fct.max_ps,
    )


@dataclass(frozen=True)
class QueueSummary:
    """``link`` is where the 99th percentile of the queue, as bytes met it, was largest; ``p50_bytes``,
    ``p99_bytes`` and ``max_bytes`` are its own. Marked, dropped and trimmed packets and paused time are sums
    over all links; ``paused_links`` is how many were paused at all, ``pause_link`` which one longest, for
    ``pause_most_ps``.
    """

    link: str
    p50_bytes: float
    p99_bytes: float
    max_bytes: float
    marks: int
    drops: int
    trims: int
    pause_ps: int
    paused_links: int
    pause_link: str
    pause_most_ps: int


def summarize_queues(topology: Topology, statistics: NetworkStatistics) -> QueueSummary | None:
    """None of a network that reports no queues."""
    extra = statistics.extra
    if "queue_p99_bytes" not in extra:
        return None
    nothing = np.zeros(topology.num_links)
    p50, p99, most = (extra.get(f"queue_{key}_bytes", nothing) for key in ("p50", "p99", "max"))
    worst = int(np.lexsort((np.arange(len(p99)), -most, -p99))[0])
    paused = extra.get("pause_ps", nothing)
    return QueueSummary(
        topology.link_name(worst),
        float(p50[worst]),
        float(p99[worst]),
        float(most[worst]),
        round(float(extra.get("marks", nothing).sum())),
        round(float(extra.get("drops", nothing).sum())),
        round(float(extra.get("trims", nothing).sum())),
        round(float(paused.sum())),
        int((paused > 0).sum()),
        topology.link_name(int(paused.argmax())),
        round(float(paused.max())),
    )


PLACES = "unit", "router", "channel", "port", "link"
SPENT = {"flag": "flags", "way": "latencies", "room": "lines in flight", "rate": "rates"}
"""What the time of messages of lines goes to, as a page says it."""


@dataclass(frozen=True)
class LineWaits:
    """Picoseconds that a line waited there on average, over all that came there; ``lines``: over links.

    ``worst_link`` is where lines waited longest, ``worst_link_ps`` for how long on average;
    ``in_flight_bytes`` are the most that a GPU had in flight at once. ``spent_ps``, by ``SPENT``: what the
    time of all messages went to. ``computed``: how much longer computations took than alone, as a factor;
    None where none is on units.
    """

    unit_ps: float
    router_ps: float
    channel_ps: float
    port_ps: float
    link_ps: float
    lines: int
    worst_link: str
    worst_link_ps: float
    in_flight_bytes: int
    spent_ps: dict[str, float]
    computed: float | None = None


def summarize_line_waits(topology: Topology, statistics: NetworkStatistics) -> LineWaits | None:
    """None of a network that has no lines."""
    extra = statistics.extra
    if "wait_link_ps" not in extra:
        return None
    waited, came = extra["wait_link_ps"], extra["link_lines"]
    worst, alone = int(waited.argmax()), float(extra["computed_alone_ps"].sum())
    return LineWaits(
        unit_ps=_mean(statistics, "unit"),
        router_ps=_mean(statistics, "router"),
        channel_ps=_mean(statistics, "channel"),
        port_ps=_mean(statistics, "port"),
        link_ps=_mean(statistics, "link"),
        lines=round(float(came.sum())),
        worst_link=topology.link_name(worst),
        worst_link_ps=float(waited[worst] / came[worst]) if came[worst] else 0.0,
        in_flight_bytes=round(float(extra["in_flight_bytes"].max())),
        spent_ps={name: float(extra[f"spent_{name}_ps"].sum()) for name in SPENT},
        computed=float(extra["computed_ps"].sum() / alone) if alone else None,
    )


def _mean(statistics: NetworkStatistics, place: str) -> float:
    lines = float(statistics.extra[f"{place}_lines"].sum())
    return float(statistics.extra[f"wait_{place}_ps"].sum()) / lines if lines else 0.0


@dataclass(frozen=True)
class FastForward:
    """Bytes on links that were recalled and leapt over, over all links, and how far these may be from what
    simulation would have said, as a share of them.
    """

    recalled_bytes: int
    leapt_bytes: int
    error: float


def summarize_fast_forward(statistics: NetworkStatistics) -> FastForward | None:
    """None of a network that simulates everything."""
    extra = statistics.extra
    if "recalled_bytes" not in extra:
        return None
    recalled, leapt = float(extra["recalled_bytes"].sum()), float(extra["leapt_bytes"].sum())
    error = float(extra["fast_forward_error_bytes"].sum()) / max(recalled + leapt, 1.0)
    return FastForward(round(recalled), round(leapt), error)
