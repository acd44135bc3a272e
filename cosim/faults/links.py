"""Events of links and nodes as changes of a topology's links."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby

import numpy as np

from cosim.errors import TopologyError
from cosim.faults.event import Event
from cosim.faults.occasions import occasions
from cosim.registry import nearest
from cosim.topology.changes import DividedChanges, LinkChange
from cosim.topology.graph import I32, Topology
from cosim.units import NEVER, format_rate

Part = tuple[int, ...]
"""Links that fail together, by number."""


def parts_of(event: Event, topology: Topology) -> list[Part]:
    """What an event of links or nodes happens to, each by itself.

    Raises
    ------
    TopologyError
        There is none, or it would be faster than it is; names a near one.
    """
    if event.node:
        parts = [_links_at(topology, node) for node in _nodes(topology, event.node)]
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
            own = float(topology.link_rate_bps[link])
            if event.rate > own:
                name, rates = topology.link_name(link), (format_rate(event.rate), format_rate(own))
                raise TopologyError(f"the link {name} would have {rates[0]}, more than its own {rates[1]}")
    return parts


def _nodes(topology: Topology, pattern: str) -> list[int]:
    names = topology.node_names
    found = [n for n, name in enumerate(names) if pattern == name or fnmatchcase(name, pattern)]
    if not found:
        raise TopologyError(f"{topology.name} has no node {pattern!r}{nearest(pattern, names)}")
    return found


def _links_at(topology: Topology, node: int) -> Part:
    return tuple(np.flatnonzero((topology.link_src == node) | (topology.link_dst == node)).tolist())


def links_between(topology: Topology, name: str) -> list[Part]:
    """Links by name, ``leaf* -> spine0`` or both ways, ``leaf0 <-> spine0``; parallel ones together.

    Raises
    ------
    TopologyError
        There is none; names a near one.
    """
    both = "<->" in name
    ends = [end.strip() for end in name.split("<->" if both else "->")]
    if len(ends) != 2 or not all(ends):
        example = topology.link_name(0) if topology.num_links else "leaf0 -> spine1"
        raise TopologyError(f"{name!r} is not a link; write it as in {example!r}")
    sources, targets = ({*_nodes(topology, end)} for end in ends)
    parts: dict[tuple[int, int], list[int]] = {}
    for link, pair in enumerate(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True)):
        one, other = pair
        if one in sources and other in targets:
            parts.setdefault(pair, []).append(link)
        elif both and one in targets and other in sources:
            parts.setdefault((other, one), []).append(link)
    if not parts:
        names = [topology.link_name(link) for link in range(topology.num_links)]
        raise TopologyError(f"{topology.name} has no link {name!r}{nearest(name, names)}")
    return [tuple(links) for links in parts.values()]


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
    """Of links that are told of, what they are called (see :meth:`only`); None: all, by their own."""

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
        """See :class:`~cosim.topology.changes.DividedChanges`."""
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
