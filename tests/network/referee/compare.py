"""Worlds by the referee and by cosim, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from tests.network.referee.exact import fair_share, first_come
from tests.network.referee.worlds import a_world, times

ROUNDED_PS = 1
"""cosim counts volumes in doubles: a drain just at a whole picosecond may come at the next one."""


@dataclass
class Comparison:
    """Worlds and flows that were compared; ``wrong`` says of each world that differs where and by how much.

    ``ties``: worlds that are left out of first come, first served, because two came at one instant.
    """

    worlds: int = 0
    flows: int = 0
    ties: int = 0
    latest_ps: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.worlds:,} worlds of each model, {self.flows:,} flows: {len(self.wrong)} differ by more "
            f"than {ROUNDED_PS} ps (most: {self.latest_ps} ps); {self.ties:,} ties left out"
        )

    def judge(self, name: str, exact: list[int], found: list[int]) -> None:
        """Hold the times of one world against the exact ones."""
        self.flows += len(exact)
        off = [abs(one - other) for one, other in zip(exact, found, strict=True)]
        self.latest_ps = max(self.latest_ps, *off)
        if max(off) > ROUNDED_PS:
            k = off.index(max(off))
            self.wrong.append(f"{name}: flow {k} completes at {found[k]} ps, exactly {exact[k]} ps")


def compare(numbers: Iterable[int]) -> Comparison:
    """The worlds of these numbers, in each model."""
    found = Comparison()
    for number in numbers:
        found.worlds += 1
        world, traffic = a_world(number)
        found.judge(f"fair_share, world {number}", fair_share(world), times(FairShareNetwork(), traffic))
        world, traffic = a_world(number, whole=True)
        exact, tie = first_come(world)
        if tie:
            found.ties += 1
            continue
        found.judge(f"congestion_aware, world {number}", exact, times(CongestionAwareNetwork(), traffic))
    return found
