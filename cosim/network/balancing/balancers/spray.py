"""Packet spraying: every message goes over all its paths, the same part over each.

A message is complete when all parts are. Its rate is one: the slowest part holds back the others, as where a
transport's window is over all paths. Source: A. Dixit et al., "On the Impact of Packet Spraying in Data
Center Networks", INFOCOM 2013, doi:10.1109/INFCOM.2013.6567015.
"""

from __future__ import annotations

from typing import Any, ClassVar

from cosim.network.balancing.balancers.lots import num_alive
from cosim.network.balancing.contract import Balancer
from cosim.network.calendar import Records
from cosim.network.flows import F64


def spray(n: int, rows: Records, paths: Records, state: F64, p: F64) -> None:
    """Takes no parameters."""
    for i in range(n):
        row: Any = rows[i]
        count = num_alive(row, paths, i)
        for k in range(int(row.paths)):
            path: Any = paths[i, k]
            if count > 0:
                path.part = path.alive / count
            else:
                path.part = 1.0 / row.paths


class Spray(Balancer):
    """Every message over all its paths alike, packet by packet (INFOCOM 2013)"""

    gives = "parts"
    reorders: ClassVar[bool] = True
    kernel = spray
