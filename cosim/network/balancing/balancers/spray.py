"""Packet spraying: every message goes over all its paths, the same part over each.

A message is complete when all parts are. Its rate is one: the slowest part holds back the others, as where a
transport's window is over all paths. Source: A. Dixit et al., "On the Impact of Packet Spraying in Data
Center Networks", INFOCOM 2013, doi:10.1109/INFCOM.2013.6567015.
"""

from __future__ import annotations

from typing import Any

from cosim.network.balancing.balancers.lots import give_out
from cosim.network.balancing.balancers.sprayed import SprayedPackets
from cosim.network.calendar import Records
from cosim.network.flows import F64


def spray(n: int, rows: Records, paths: Records, state: F64, p: F64) -> None:
    """``p``: entropies, or 0."""
    for i in range(n):
        row: Any = rows[i]
        for k in range(int(row.paths)):
            paths[i, k].part = 0.0
        give_out(row, paths, i, 1.0, int(p[0]))


class Spray(SprayedPackets):
    """Every message over all its paths alike, packet by packet (INFOCOM 2013)"""

    kernel = spray

    def parameters(self) -> list[float]:
        """See the kernel."""
        return [float(self.entropies or 0)]
