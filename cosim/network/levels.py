"""What is left of a link while levels rise on it, and when it will be full: exact in any order of flows."""

from __future__ import annotations

from cosim.network.calendar import Records
from cosim.network.fluid import Fluid
from cosim.network.jit import inlined
from cosim.network.moments import push_moment

_TOGETHER = 1.0 + 1e-12
"""A link that would be full within this of the level at which flows on it were frozen is full there."""
_EMPTY = 1e-12
"""Less than this of a link's capacity is dust."""


@inlined
def settle_link(link: Records) -> None:
    """Take what was frozen at the last moment from what is left."""
    left = link.left - link.level * link.gone
    link.left = left if left > link.capacity * _EMPTY else 0.0
    link.gone = 0


@inlined
def lose(link: Records, level: float, weight: float) -> None:
    """A flow on a link was frozen."""
    if level != link.level:
        settle_link(link)
        link.level = level
    link.gone += weight


@inlined
def full_at(link: Records) -> float:
    """The level at which a link is full if all that rise on it go on."""
    left = link.left - link.level * link.gone
    level = left / link.weight if left > link.capacity * _EMPTY else 0.0
    return float(link.level if level <= link.level * _TOGETHER else level)


@inlined
def expect(fluid: Fluid, number: int) -> None:
    """A link is full, at the earliest, when what rises there now has filled it."""
    link = fluid.links[number]
    fluid.counts[0].num_ahead = push_moment(
        fluid.ahead, fluid.counts[0].num_ahead, link.priority, full_at(link), -1 - number
    )
