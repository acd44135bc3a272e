"""Valiant's load balancing: every message goes by way of a switch drawn by lot, whatever is shorter.

Any traffic then looks like uniform traffic, at the price of paths of twice the length. Source: L. G. Valiant,
"A Scheme for Fast Parallel Communication", SIAM J. Comput. 11(2), 1982, doi:10.1137/0211027.
"""

from __future__ import annotations

from typing import Any, ClassVar

from cosim.network.balancing.balancers.lots import drawn
from cosim.network.balancing.contract import Balancer
from cosim.network.calendar import Records
from cosim.network.flows import F64


def valiant(n: int, rows: Records, paths: Records, state: F64, p: F64) -> None:
    """Takes no parameters."""
    for i in range(n):
        row: Any = rows[i]
        if row.fresh != 0.0 or paths[i, int(row.path)].alive == 0.0:
            row.path = drawn(row, paths, i, row.chance)


class Valiant(Balancer):
    """Every message by way of a switch drawn by lot (Valiant, 1982)"""

    detours: ClassVar[bool] = True
    uses_chance: ClassVar[bool] = True
    kernel = valiant
