"""Ranks on the last free endpoints."""

from __future__ import annotations

from cosim.plugins import I32, Placement, Wanted


class Last(Placement):
    """Ranks on the highest-numbered free endpoints"""

    def choose(self, wanted: Wanted) -> I32:
        wanted.check_enough()
        return wanted.free[len(wanted.free) - wanted.num_ranks :]
