"""UGAL: a message takes a shortest path, or Valiant's detour where waiting times hops is less there.

Of the shortest paths and of the detours one each is drawn by lot, and the better one of the two is taken.
Where networks have queues, what waits is their time; in others, the connections on the most used link.

Source: A. Singh, "Load-Balanced Routing in Interconnection Networks", PhD thesis, Stanford, 2005 (UGAL-G); J.
Kim et al., "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008, doi:10.1145/1394608.1382129.
"""

from __future__ import annotations

from typing import Any, ClassVar

from numba.extending import register_jitable

from cosim.network.balancing.contract import Balancer
from cosim.network.calendar import Records
from cosim.network.flows import F64


@register_jitable
def _drawn_of(row: Any, paths: Any, i: int, minimal: float, lot: float) -> int:
    """One of the shortest paths, or of the detours, that is up; -1: there is none."""
    count = 0
    for k in range(int(row.paths)):
        if paths[i, k].alive != 0.0 and paths[i, k].minimal == minimal:
            count += 1
    left = int(lot * count)
    for k in range(int(row.paths)):
        if paths[i, k].alive != 0.0 and paths[i, k].minimal == minimal:
            if left == 0:
                return k
            left -= 1
    return -1


def ugal(n: int, rows: Records, paths: Records, state: F64, p: F64) -> None:
    """Takes no parameters."""
    for i in range(n):
        row: Any = rows[i]
        short = _drawn_of(row, paths, i, 1.0, row.chance)
        long = _drawn_of(row, paths, i, 0.0, row.chance * 65536.0 % 1.0)
        if short < 0 or long < 0:
            row.path = float(max(short, long, 0))
            continue
        one: Any = paths[i, short]
        other: Any = paths[i, long]
        wait = one.queue
        wait_other = other.queue
        if wait == 0.0 and wait_other == 0.0:
            wait = one.flows
            wait_other = other.flows
        row.path = float(short)
        if wait * one.hops > wait_other * other.hops:
            row.path = float(long)


class Ugal(Balancer):
    """A shortest path, or a detour where less waits there (UGAL, 2005)"""

    looks: ClassVar[bool] = True
    one_by_one: ClassVar[bool] = True
    detours: ClassVar[bool] = True
    uses_chance: ClassVar[bool] = True
    kernel = ugal
