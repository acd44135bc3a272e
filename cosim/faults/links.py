"""Events of links and nodes as changes of a topology's links."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from cosim.errors import TopologyError
from cosim.fabric.changes import DividedChanges, LinkChange
from cosim.fabric.links import Part, check_rate, links_at, links_between, nodes_named
from cosim.faults.event import Event
from cosim.faults.occasions import occasions
from cosim.topology.graph import I32, Topology
from cosim.units import NEVER


def parts_of(event: Event, topology: Topology) -> list[Part]:
    """What an event of links or nodes happens to, each by itself.

    Raises
    ------
    TopologyError
        There is none, or it would be faster than it is; names a near one.
    """
    if event.node:
        parts = [links_at(topology, node) for node in nodes_named(topology, event.node)]
    elif isinstance(event.link, int):
        if not 0 <= event.link < topology.num_links:
            raise TopologyError(
                f"{topology.name} has no link {event.link}; there are 0 to {topology.num_links - 1}"
            )
        parts = [(event.link,)]
    else:
        parts = links_between(topology, event.link)
    if event.rate is not None:
        for link in (link for part in parts for link in part):
            check_rate(topology, link, event.rate)
    return parts


_Edge = tuple[int, bool, int, Part, float]
"""When, whether it begins, what (each its own number), on which links, and their rate meanwhile."""


@dataclass(frozen=True, eq=False)
class EventsOfLinks(DividedChanges):
    """Every event of links and nodes, as changes; may be iterated again.

    Where several happen to a link at once, it has the lowest of their rates.
    """

    topology: Topology
    events: Sequence[tuple[int, Event, Sequence[Part]]]
    seed: int
    number: I32 | None = None
    """What links that are told of are called (see :meth:`only`); None: all, by their own."""

    def __iter__(self) -> Iterator[LinkChange]:
        """Changes in order of (time, link)."""
        streams = []
        for number, event, parts in self.events:
            # What happens to others alone may never end, and would be waited for.
            mine = [(at, part) for at, part in enumerate(parts) if self._touches(part)]
            streams += [self._edges(event, number, at, part) for at, part in mine]
        under_way: dict[int, dict[int, float]] = {}
        for time, edges in groupby(heapq.merge(*streams), key=lambda edge: edge[0]):
            touched: dict[int, float] = {}
            for _, begins, what, part, rate in edges:
                for link in part:
                    here = under_way.setdefault(link, {})
                    touched.setdefault(link, self._rate(link, here))
                    if begins:
                        here[what] = rate
                    else:
                        del here[what]
            for link in sorted(touched):
                rate, name = self._rate(link, under_way[link]), self._name(link)
                if rate != touched[link] and name >= 0:
                    yield LinkChange(time, name, rate)

    def only(self, number: I32) -> EventsOfLinks | None:
        """See :class:`~cosim.fabric.changes.DividedChanges`."""
        mine = replace(self, number=number)
        return mine if any(mine._touches(part) for _, _, parts in self.events for part in parts) else None

    def _name(self, link: int) -> int:
        return link if self.number is None else int(self.number[link])

    def _touches(self, part: Part) -> bool:
        return any(self._name(link) >= 0 for link in part)

    def _edges(self, event: Event, number: int, at: int, part: Part) -> Iterator[_Edge]:
        what = number << 32 | at
        for begin, end in occasions(event, self.seed, number, at):
            yield begin, True, what, part, event.rate or 0.0
            if end < NEVER:
                yield end, False, what, part, 0.0

    def _rate(self, link: int, here: dict[int, float]) -> float:
        return min([float(self.topology.link_rate_bps[link]), *here.values()])
