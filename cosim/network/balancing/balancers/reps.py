"""REPS: entropies whose packets came through unmarked are used again; marked ones are drawn anew.

A message begins over all paths alike. Each round trip, of what went by a path the marked part goes to any
path by lot, which is all alike in the mean; the rest stays where it is.

Source: T. Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure
Mitigation", 2024, arXiv:2407.21625. Not modelled: the cache of entropies, and its freezing after a loss.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from cosim.network.balancing.balancers.lots import give_out
from cosim.network.balancing.balancers.sprayed import SprayedPackets
from cosim.network.calendar import Records
from cosim.network.flows import F64
from cosim.spec import TimePs


def reps(n: int, rows: Records, paths: Records, state: F64, p: F64) -> None:
    """``p``: how long until the next time (ps), or 0; how long at least; entropies, or 0."""
    for i in range(n):
        row: Any = rows[i]
        kept = 0.0
        for k in range(int(row.paths)):
            path: Any = paths[i, k]
            path.part *= (1.0 - min(path.marked, 1.0)) * path.alive
            kept += path.part
        give_out(row, paths, i, 1.0 - kept, int(p[2]))
        row.again = p[0] if p[0] > 0.0 else max(row.rtt, p[1])


class Reps(SprayedPackets):
    """Paths that marked packets are given up for others, packet by packet (REPS, 2024)"""

    looks: ClassVar[bool] = True
    needs_queues: ClassVar[bool] = True
    kernel = reps

    every: TimePs | None = Field(
        None, ge=1_000_000, description="time between two looks; omitted: a round trip, at least 10 us"
    )

    def parameters(self) -> list[float]:
        """See the kernel."""
        return [float(self.every or 0), 1e7, float(self.entropies or 0)]
