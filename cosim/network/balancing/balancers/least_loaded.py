"""Least loaded: a message takes the path on which it can expect most, and keeps it.

That is an equal share with the connections on the path's most used link, less where it queues; of equal ones
any, at random. Messages that begin at one instant choose one after the other.

Source: the greedy choice among all of M. Mitzenmacher, "The Power of Two Choices in Randomized Load
Balancing", IEEE TPDS 12(10), 2001, doi:10.1109/71.963420; with loads known at once, as a central controller
has them (M. Al-Fares et al., "Hedera", NSDI 2010).
"""

from __future__ import annotations

from typing import ClassVar

from cosim.network.balancing.contract import Balancer


class LeastLoaded(Balancer):
    """A message takes the path that leaves it most, as loads are when it begins (Hedera, NSDI 2010)"""

    looks: ClassVar[bool] = True
    one_by_one: ClassVar[bool] = True
    uses_chance: ClassVar[bool] = True
    kernel = "choose_least_loaded"
