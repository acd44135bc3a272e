"""Adaptive routing, packet by packet: more of a message goes where queues are short and links have room.

A switch sends each packet to the port with the shortest queue. Over a round trip that evens out what the
paths of a connection can still take: its parts move half-way, each round trip, to what others leave of each
path's worst link, less where it queues.

Source: S. Ghorbani et al., "DRILL: Micro Load Balancing for Low-latency Data Center Networks", SIGCOMM 2017,
doi:10.1145/3098822.3098839. Not modelled: differences of queues within a round trip.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from cosim.network.balancing.balancers.lots import num_alive
from cosim.network.balancing.contract import Balancer
from cosim.network.calendar import Records
from cosim.network.flows import F64
from cosim.spec import TimePs

_LEAST = 1.0 / 64.0  # of its rate that a full link counts as free: among full ones, queues decide


def adaptive(n: int, rows: Records, paths: Records, state: F64, p: F64) -> None:
    """``p``: how long until the next time (ps), or 0; and how long at least."""
    for i in range(n):
        row: Any = rows[i]
        count = int(row.paths)
        alive = num_alive(row, paths, i)
        total = 0.0
        known = 0.0
        for k in range(count):
            path: Any = paths[i, k]
            free = path.rate * max(1.0 - path.load, _LEAST) / (1.0 + path.queue / max(row.base_rtt, 1.0))
            path.load = free * path.alive
            total += path.load
            known += path.part * path.alive
        for k in range(count):
            path = paths[i, k]
            if alive == 0:
                path.part = 1.0 / count
            elif known == 0.0:
                path.part = path.load / total
            else:
                path.part = 0.5 * path.part * path.alive / known + 0.5 * path.load / total
        row.again = p[0] if p[0] > 0.0 else max(row.rtt, p[1])


class Adaptive(Balancer):
    """Packet by packet to the shortest queue; parts follow what paths can take (DRILL, SIGCOMM 2017)"""

    gives = "parts"
    looks: ClassVar[bool] = True
    reorders: ClassVar[bool] = True
    kernel = adaptive

    every: TimePs | None = Field(
        None, ge=1_000_000, description="time between two looks; omitted: a round trip, at least 10 us"
    )

    def parameters(self) -> list[float]:
        """See the kernel."""
        return [float(self.every or 0), 1e7]
