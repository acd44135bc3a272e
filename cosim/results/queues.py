"""Queues, marks, drops and pauses: what a network that has them says of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.network.simulator import NetworkStatistics
from cosim.topology.graph import Topology


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
