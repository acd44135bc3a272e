"""Least loaded: a message takes the path on which it can expect most, and keeps it.

That is an equal share with the connections on the path's most used link, less where it queues; of equal ones
any, by lot. Messages that begin at one instant choose one after the other.

Source: the greedy choice among all of M. Mitzenmacher, "The Power of Two Choices in Randomized Load
Balancing", IEEE TPDS 12(10), 2001, doi:10.1109/71.963420; with loads known at once, as a central controller
has them (M. Al-Fares et al., "Hedera", NSDI 2010).
"""

from __future__ import annotations

from typing import Any, ClassVar

from cosim.network.balancing.contract import Balancer
from cosim.network.calendar import Records
from cosim.network.flows import F64


def least_loaded(n: int, rows: Records, paths: Records, state: F64, p: F64) -> None:
    """Takes no parameters."""
    for i in range(n):
        row: Any = rows[i]
        count = int(row.paths)
        start = min(int(row.chance * count), count - 1)
        best = -1.0
        for k in range(count):
            at = (start + k) % count
            path: Any = paths[i, at]
            free = path.rate / (path.flows + 1.0) / (1.0 + path.queue / max(row.base_rtt, 1.0))
            if path.alive != 0.0 and free > best * (1.0 + 1e-9):
                best = free
                row.path = float(at)
        if best < 0.0:
            row.path = float(start)


class LeastLoaded(Balancer):
    """A message takes the path that leaves it most, as loads are when it begins (Hedera, NSDI 2010)"""

    looks: ClassVar[bool] = True
    one_by_one: ClassVar[bool] = True
    uses_chance: ClassVar[bool] = True
    kernel = least_loaded
