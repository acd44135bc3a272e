"""REPS: entropies whose packets came through unmarked are used again; marked ones are drawn again.

A message begins over all paths alike. Each round trip, of what went by a path the marked part goes to any
path at random, which is all alike on average; the rest stays where it is.

Source: T. Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure
Mitigation", 2024, arXiv:2407.21625. Not modelled: the cache of entropies, and its freezing after a loss.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.balancing.balancers.sprayed import SprayedPackets
from cosim.spec import TimePs


class Reps(SprayedPackets):
    """Paths that marked packets are given up for others, packet by packet (REPS, 2024)"""

    looks: ClassVar[bool] = True
    needs_queues: ClassVar[bool] = True
    kernel = "choose_reps"

    every: TimePs | None = Field(
        None, ge=1_000_000, description="time between two looks; omitted: a round trip, at least 10 us"
    )

    def parameters(self) -> list[float]:
        """See balancing.c."""
        return [float(self.every or 0), 1e7, float(self.entropies or 0)]
