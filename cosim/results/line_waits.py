"""Where lines of cache waited: what the device network says of a run."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.network.simulator import NetworkStatistics
from cosim.topology.graph import Topology

PLACES = "unit", "router", "channel", "port", "link"


@dataclass(frozen=True)
class LineWaits:
    """Picoseconds that a line waited there in the mean, over all that came there; ``lines``: over links.

    ``worst_link`` is where lines waited longest, ``worst_link_ps`` for how long in the mean;
    ``in_flight_bytes`` are the most that a GPU had in flight at once.
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


def summarize_line_waits(topology: Topology, statistics: NetworkStatistics) -> LineWaits | None:
    """None of a network that has no lines."""
    extra = statistics.extra
    if "wait_link_ps" not in extra:
        return None
    waited, came = extra["wait_link_ps"], extra["link_lines"]
    worst = int(waited.argmax())
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
    )


def _mean(statistics: NetworkStatistics, place: str) -> float:
    lines = float(statistics.extra[f"{place}_lines"].sum())
    return float(statistics.extra[f"wait_{place}_ps"].sum()) / lines if lines else 0.0
