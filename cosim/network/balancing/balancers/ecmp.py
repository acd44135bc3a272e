"""ECMP: the path that the topology's routing gives, for the whole run.

With ``routing: ecmp`` a hash of source, destination and channel picks at each switch; with others the
routing's own rule does. Source: C. Hopps, "Analysis of an Equal-Cost Multi-Path Algorithm", RFC 2992, 2000.
"""

from __future__ import annotations

from typing import ClassVar

from cosim.network.balancing.contract import Balancer


class Ecmp(Balancer):
    """Every connection keeps the path of the topology's routing (RFC 2992)"""

    chooses: ClassVar[bool] = False
