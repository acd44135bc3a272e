"""Flowlets: a connection that paused for longer than ``gap`` draws a path anew, so that no packet overtakes
another.

A pause is the time between two messages of a connection. In the ``congestion`` network, where messages are
packets, it is also that for which a window is used up, or holds everything back after it was cut, and that
from one packet to the next; a connection draws once a round trip at most. So flowlets end where a path is
full, which cuts windows, and go on where it is not.

Source: E. Vanini et al., "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching", NSDI 2017
(https://www.usenix.org/conference/nsdi17/technical-sessions/presentation/vanini).
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from cosim.network.balancing.balancers.lots import drawn
from cosim.network.balancing.contract import Balancer
from cosim.network.calendar import Records
from cosim.network.flows import F64
from cosim.spec import TimePs


def flowlet(n: int, rows: Records, paths: Records, state: F64, p: F64) -> None:
    """``p``: the gap, ps."""
    for i in range(n):
        row: Any = rows[i]
        if row.path < 0.0 or row.idle > p[0] or paths[i, int(row.path)].alive == 0.0:
            row.path = drawn(row, paths, i, row.chance)


class Flowlet(Balancer):
    """After a pause of a connection, any path by lot (LetFlow, NSDI 2017)"""

    uses_chance: ClassVar[bool] = True
    kernel = flowlet

    gap: TimePs = Field(50_000_000, ge=0, description="pause after which the path is drawn anew")

    def least_pause(self) -> int:
        """The gap."""
        return self.gap

    def parameters(self) -> list[float]:
        """See the kernel."""
        return [float(self.gap)]
