"""Adaptive routing, packet by packet: more of a message goes where queues are short and links have room.

A switch sends each packet to the port with the shortest queue. Over a round trip that evens out what the
paths of a connection can still take: its parts move half-way, each round trip, to what others leave of each
path's worst link, less where it queues.

Source: S. Ghorbani et al., "DRILL: Micro Load Balancing for Low-latency Data Center Networks", SIGCOMM 2017,
doi:10.1145/3098822.3098839. Not modelled: differences of queues within a round trip.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.balancing.contract import Balancer
from cosim.spec import TimePs


class Adaptive(Balancer):
    """Packet by packet to the shortest queue; parts follow what paths can take (DRILL, SIGCOMM 2017)"""

    gives = "parts"
    looks: ClassVar[bool] = True
    reorders: ClassVar[bool] = True
    kernel = "choose_adaptive"

    every: TimePs | None = Field(
        None, ge=1_000_000, description="time between two looks; omitted: a round trip, at least 10 us"
    )

    def parameters(self) -> list[float]:
        """See balancing.c."""
        return [float(self.every or 0), 1e7]
