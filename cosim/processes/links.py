"""Links as processes see them, and what they make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.errors import NetworkError, TopologyError, WorkloadError
from cosim.fabric.changes import DeadLinks, LinkChange, RouteChange
from cosim.fabric.links import check_rate, links_between
from cosim.network.simulator import NetworkStatistics
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
        self._dead = DeadLinks(topology.changes.detection_ps if topology.changes is not None else None)
        self._avoided: set[int] = set()
        self._heard = [RouteChange(0, ())]
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
        changes = []
        for number in self._numbers(name):
            try:
                said_as = rate if isinstance(rate, str) else f"{rate} bps"
                own = float(self.topology.link_rate_bps[number]) if up else 0.0
                becomes = own if rate is None else parse_rate(said_as)
            except ValueError as error:
                raise WorkloadError(f"rate: {error}") from None
            check_rate(self.topology, number, becomes)
            changes.append(LinkChange(self.now_ps, number, becomes))
        self.check_changing(name)
        heard = self._dead.after(self.now_ps, changes)
        self._heard += heard
        self.replay.network.change([*changes, *map(self._avoiding, heard)])
        for one in changes:
            self.at(one.link).rate_bps = one.rate_bps

    def check_changing(self, what: str) -> None:
        """Refuse to change anything where the run was opened so.

        Raises
        ------
        NetworkError
            It was.
        """
        if self.topology.changes is None:
            raise NetworkError(
                f"{what} can't change: the run was opened without changes_links=True, of cosim.open or of "
                "the class that the scenario names"
            )
        self.begin()

    def _avoid(self, name: str, *, avoid: bool) -> None:
        """Have routes avoid links from now on, or no more."""
        self.check_changing(name)
        (self._avoided.update if avoid else self._avoided.difference_update)(self._numbers(name))
        now = self.now_ps
        known = [one for one in self._heard if one.time_ps <= now][-1:]
        self._heard = known + [one for one in self._heard if one.time_ps > now]
        # What is to be heard later was told with other links to avoid: told again, the last word counts.
        self.replay.network.change([self._avoiding(one) for one in self._heard])

    def _avoiding(self, heard: RouteChange) -> RouteChange:
        """The routes that follow from what was heard: also without links to avoid."""
        dead = tuple(sorted({*heard.dead, *self._avoided}))
        return RouteChange(max(heard.time_ps, self.now_ps), dead)

    def path(self, nodes: Sequence[str]) -> tuple[int, ...]:
        """The links from node to node, each by the first that there is.

        Raises
        ------
        TopologyError
            There is none between two of them.
        """
        return tuple(self._numbers(f"{one} -> {other}")[0] for one, other in pairwise(nodes))

    def _numbers(self, name: str) -> list[int]:
        return sorted(link for part in links_between(self.topology, name) for link in part)
