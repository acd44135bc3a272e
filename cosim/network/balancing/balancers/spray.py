"""Packet spraying: every message goes over all its paths, the same part over each.

A message is complete when all parts are. Its rate is one: the slowest part holds back the others, as where a
transport's window is over all paths. Source: A. Dixit et al., "On the Impact of Packet Spraying in Data
Center Networks", INFOCOM 2013, doi:10.1109/INFCOM.2013.6567015.
"""

from __future__ import annotations

from cosim.network.balancing.balancers.sprayed import SprayedPackets


class Spray(SprayedPackets):
    """Every message over all its paths alike, packet by packet (INFOCOM 2013)"""

    kernel = "choose_spray"

    def parameters(self) -> list[float]:
        """See balancing.c."""
        return [float(self.entropies or 0)]
