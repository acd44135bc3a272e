"""What a network did not simulate: recalled from before, or extended at settled rates."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.network.simulator import NetworkStatistics


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
