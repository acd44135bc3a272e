"""UGAL: a message takes a shortest path, or Valiant's detour where waiting times hops is less there.

Of the shortest paths and of the detours one each is drawn at random, and the better one of the two is taken.
Where networks have queues, what waits is their time; in others, the connections on the most used link.

Source: A. Singh, "Load-Balanced Routing in Interconnection Networks", PhD thesis, Stanford, 2005 (UGAL-G); J.
Kim et al., "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008, doi:10.1145/1394608.1382129.
"""

from __future__ import annotations

from typing import ClassVar

from cosim.network.balancing.contract import Balancer


class Ugal(Balancer):
    """A shortest path, or a detour where less waits there (UGAL, 2005)"""

    looks: ClassVar[bool] = True
    one_by_one: ClassVar[bool] = True
    detours: ClassVar[bool] = True
    uses_chance: ClassVar[bool] = True
    kernel = "choose_ugal"
