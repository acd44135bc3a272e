"""What balancers have in common that split a message packet by packet."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.balancing.contract import Balancer


class SprayedPackets(Balancer):
    """Base of those that send a message over several paths at once, by entropies or over all alike."""

    gives = "parts"
    reorders: ClassVar[bool] = True

    entropies: int | None = Field(
        None, gt=0, le=1024, description="headers that switches hash to paths; omitted: all paths alike"
    )

    def uses_seed(self) -> bool:
        """Where entropies are hashed."""
        return self.entropies is not None
