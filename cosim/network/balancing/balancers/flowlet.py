"""Flowlets: a connection that paused for longer than ``gap`` draws a new path, so that no packet overtakes
another.

A pause is the time between two messages of a connection. In the ``congestion`` network, where messages are
packets, it is also that for which a window is used up, or holds everything back after it was cut, and that
from one packet to the next; a connection draws once a round trip at most. So flowlets end where a path is
full, which cuts windows, and go on where it is not.

Source: E. Vanini et al., "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching", NSDI 2017
(https://www.usenix.org/conference/nsdi17/technical-sessions/presentation/vanini).
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.balancing.contract import Balancer
from cosim.spec import TimePs


class Flowlet(Balancer):
    """After a pause of a connection, any path at random (LetFlow, NSDI 2017)"""

    uses_chance: ClassVar[bool] = True
    kernel = "choose_flowlet"

    gap: TimePs = Field(50_000_000, ge=0, description="pause after which the path is drawn again")

    def least_pause(self) -> int:
        """The gap."""
        return self.gap

    def parameters(self) -> list[float]:
        """See balancing.c."""
        return [float(self.gap)]
