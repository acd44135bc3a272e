"""Links as processes see them, and what they make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.errors import NetworkError, TopologyError, WorkloadError
from cosim.network.simulator import NetworkStatistics
from cosim.registry import nearest
from cosim.topology.changes import LinkChange, LinkChanges, RouteChange
from cosim.topology.graph import Topology
from cosim.units import format_rate, parse_rate

if TYPE_CHECKING:
    from cosim.engine.live import LiveReplay


class LiveLink:
    """A directed link, as it is whenever it is looked at.

    Attributes
    ----------
    name
        ``leaf0 -> spine1``.
    rate_bps
        What it carries now; 0: it is dead.

    Examples
    --------
    >>> import cosim
    >>> ring = {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "1us"}
    >>> sim = cosim.open({"topology": ring, "network": "fair_share"})
    >>> sim.link("npu0 -> npu1")
    <link npu0 -> npu1: 80 Gbps>
    >>> sim.close()
    """

    def __init__(self, links: LiveLinks, number: int) -> None:
        self._links, self._number = links, number
        self.name = links.topology.link_name(number)
        self.rate_bps = float(links.topology.link_rate_bps[number])
        self._seen = 0, 0

    def __repr__(self) -> str:
        return f"<link {self.name}: {format_rate(self.rate_bps)}>"

    @property
    def use(self) -> float:
        """The part of the time since it was last asked for (the first time: since the start) that it sent."""
        now, busy = self._links.now_ps, int(self._links.statistics().link_busy_ps[self._number])
        before, self._seen = self._seen, (now, busy)
        return 0.0 if now == before[0] else (busy - before[1]) / (now - before[0])

    @property
    def sent_bytes(self) -> int:
        """Bytes that it has sent so far; some networks count a message when it is over."""
        return int(self._links.statistics().link_bytes[self._number])

    @property
    def queue_bytes(self) -> float:
        """Bytes that wait for it now.

        Raises
        ------
        NetworkError
            The network has no queues.
        """
        self._links.begin()
        queues = self._links.replay.network.queues(np.array([self._number]), self._links.now_ps)
        return float(queues.queue_bytes[0])


class LiveLinks:
    """The links of a run."""

    def __init__(self, topology: Topology, replay: LiveReplay, begin: Callable[[], None]) -> None:
        self.topology, self.replay, self.begin = topology, replay, begin
        self._known: dict[str, LiveLink] = {}
        self._dead: set[int] = set()
        self._avoided: set[int] = set()
        self._heard: list[tuple[int, frozenset[int]]] = [(0, frozenset())]
        """What routing knows to be dead, and from when on; those to come are told already."""
        self._links: dict[int, LiveLink] = {}
        self._statistics: tuple[int, NetworkStatistics] | None = None

    @property
    def now_ps(self) -> int:
        """The time."""
        return self.replay.now_ps

    def statistics(self) -> NetworkStatistics:
        """The counters of all links, computed once an instant."""
        self.begin()
        now = self.now_ps
        if self._statistics is None or self._statistics[0] != now:
            self._statistics = now, self.replay.network.statistics()
        return self._statistics[1]

    def link(self, name: str) -> LiveLink:
        """A link by name.

        Raises
        ------
        TopologyError
            There is none, or several.
        """
        known = self._known.get(name)
        if known is None:
            numbers = self._numbers(name)
            if len(numbers) > 1:
                raise TopologyError(
                    f"{self.topology.name} has {len(numbers)} links {name!r}; look at one of them"
                )
            known = self._known[name] = self.at(numbers[0])
        return known

    def at(self, number: int) -> LiveLink:
        """A link by number."""
        if number not in self._links:
            self._links[number] = LiveLink(self, number)
        return self._links[number]

    def change(self, name: str, rate: Any, up: bool | None, avoid: bool | None = None) -> None:
        """Have links change now, or routes avoid them.

        Raises
        ------
        TopologyError
            There is no such link, or it would be faster than it is.
        WorkloadError
            It isn't said what they become.
        NetworkError
            The network has no links that change.
        """
        if (rate is not None) + (up is not None) + (avoid is not None) != 1:
            raise WorkloadError(
                "a link changes its rate (rate='100Gbps'), or goes down (up=False), or up (up=True), "
                "or routes avoid it (avoid=True)"
            )
        if avoid is not None:
            self._avoid(name, avoid=avoid)
            return
        changed = []
        for number in self._numbers(name):
            own = float(self.topology.link_rate_bps[number])
            try:
                said_as = rate if isinstance(rate, str) else f"{rate} bps"
                becomes = (own if up else 0.0) if rate is None else parse_rate(said_as)
            except ValueError as error:
                raise WorkloadError(f"rate: {error}") from None
            if becomes > own:
                said = format_rate(becomes), format_rate(own)
                raise TopologyError(f"the link {name} would have {said[0]}, more than its own {said[1]}")
            changed.append((number, becomes))
        on, before = self.changing(name), frozenset(self._dead)
        changes: list[LinkChange | RouteChange] = []
        for number, becomes in changed:
            (self._dead.discard if becomes > 0 else self._dead.add)(number)
            changes.append(LinkChange(self.now_ps, number, becomes))
        if before != self._dead and on.detection_ps is not None:
            self._heard.append((self.now_ps + on.detection_ps, frozenset(self._dead)))
            changes.append(self._route_change(*self._heard[-1]))
        self.replay.network.change(changes)
        for number, becomes in changed:
            self.at(number).rate_bps = becomes

    def changing(self, what: str) -> LinkChanges:
        """What the topology says of changes.

        Raises
        ------
        NetworkError
            Nothing: it was opened so.
        """
        on = self.topology.changes
        if on is None:
            raise NetworkError(
                f"{what} can't change: the run was opened without changes_links=True, of cosim.open or of "
                "the class that the scenario names"
            )
        self.begin()
        return on

    def _avoid(self, name: str, *, avoid: bool) -> None:
        """Have routes avoid links from now on, or no more."""
        self.changing(name)
        (self._avoided.update if avoid else self._avoided.difference_update)(self._numbers(name))
        now = self.now_ps
        known = [one for one in self._heard if one[0] <= now][-1:]
        self._heard = known + [one for one in self._heard if one[0] > now]
        # What is to be heard later was told with other links to avoid: told again, the last word counts.
        self.replay.network.change([self._route_change(max(one[0], now), one[1]) for one in self._heard])

    def _route_change(self, time_ps: int, dead: frozenset[int]) -> RouteChange:
        return RouteChange(time_ps, tuple(sorted(dead | self._avoided)))

    def path(self, nodes: Sequence[str]) -> tuple[int, ...]:
        """The links from node to node, each by the first that there is.

        Raises
        ------
        TopologyError
            There is none between two of them.
        """
        return tuple(self._numbers(f"{one} -> {other}")[0] for one, other in pairwise(nodes))

    @cached_property
    def _nodes(self) -> dict[str, int]:
        return {node: number for number, node in enumerate(self.topology.node_names)}

    def _numbers(self, name: str) -> list[int]:
        topology, at = self.topology, self._nodes
        ends = [end.strip() for end in name.split("->")]
        found: list[int] = []
        if len(ends) == 2 and all(end in at for end in ends):
            mine = (topology.link_src == at[ends[0]]) & (topology.link_dst == at[ends[1]])
            found = np.flatnonzero(mine).tolist()
        if not found:
            names = [topology.link_name(link) for link in range(topology.num_links)]
            raise TopologyError(f"{topology.name} has no link {name!r}{nearest(name, names)}")
        return found
