"""``fair_share``: flows share links like fluids, max-min fair, with weights and strict priorities.

Flows of one (job, source, destination, channel) go in order, one at a time: the next begins to transfer
when the one before has drained. While it transfers, a flow has a rate on its whole path at once, the
max-min fair one; it completes when it has drained, plus the latencies of its path. Rates are computed
once for each instant in which a flow began or drained: when time leaves it. What changes its rate is
rounded once, what doesn't is not touched.

Class by class of priority (0 first; a class gets what those before it left), the level (rate per unit of
weight) of all flows rises until a link is full; its flows are frozen there, and the others go on. Source:
D. Bertsekas, R. Gallager, Data Networks, 2nd ed., section 6.5.2 (progressive filling).

Weights are whole billionths, so that sums of them are exact, and a link loses what was frozen at a level by
one subtraction, levels in order: rates are the same in whatever order flows come and go.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict, deque
from collections.abc import Collection
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace

import numpy as np

from cosim.errors import NetworkError
from cosim.network.flows import FlowGroup
from cosim.network.reference.drains import drain_time
from cosim.network.reference.plain import FlowEvent, PlainNetwork, Transfer
from cosim.network.simulator import NetworkStatistics, RateSample

_BPS_PER_BYTE_PS = 8e12
_WEIGHT_UNIT = 10**9
_MOST_PRIORITY = 2**31 - 2
_TOGETHER = 1.0 + 1e-12  # links that are full within this of each other are full at once
_EMPTY = 1e-12  # less than this of a link's capacity is dust
_WHOLE = 1 << 42  # a link's use is counted in parts of it, which add up exactly


@dataclass(eq=False)
class FluidLink:
    """``capacity`` in bytes per ps. While links are filled: what is ``left`` but for what weighs ``gone``,
    frozen at ``level``, and what ``weight`` still rises.
    """

    capacity: float
    flows: dict[Transfer, None] = field(default_factory=dict)
    left: float = 0.0
    level: float = 0.0
    gone: int = 0
    weight: int = 0
    is_full: bool = False
    used: float = 0.0
    since_ps: int = 0

    def settle(self) -> None:
        """Take what was frozen at the last level from what is left."""
        left = self.left - self.level * self.gone
        self.left, self.gone = (left if left > self.capacity * _EMPTY else 0.0), 0

    def lose(self, level: float, weight: int) -> None:
        """A flow was frozen."""
        if level != self.level:
            self.settle()
            self.level = level
        self.gone += weight
        self.weight -= weight

    def full_at(self) -> float:
        """The level at which it is full if all that rise on it go on."""
        left = self.left - self.level * self.gone
        level = left / self.weight if left > self.capacity * _EMPTY else 0.0
        return self.level if level <= self.level * _TOGETHER else level


class PlainFairShare(PlainNetwork):
    """The model of the module's text."""

    name = "fair_share"
    has_rates = True

    def _open_model(self) -> None:
        rates = self.topology.link_rate_bps / _BPS_PER_BYTE_PS
        self._links = [FluidLink(capacity) for capacity in rates.tolist()]
        self._latency: list[int] = self.topology.link_latency_ps.tolist()
        self._channels: dict[tuple[int, ...], deque[Transfer]] = defaultdict(deque)
        self._transferring: dict[Transfer, None] = {}
        self._changed: set[int] = set()
        """Links on which something differs since rates were computed."""

    def _open_group(self, group: FlowGroup) -> None:
        if not 1e-6 <= group.weight <= 1e3:
            raise NetworkError(f"fair_share: weight {group.weight} is not in [1e-06, 1000.0]")
        if not 0 <= group.priority <= _MOST_PRIORITY:
            raise NetworkError(
                f"fair_share: priority {group.priority} is not from 0, the class served first, "
                f"to {_MOST_PRIORITY}"
            )
        super()._open_group(group)

    # -- flows begin and drain -----------------------------------------------------------------------

    def _take(self, event: FlowEvent) -> None:
        flow = event.flow
        if not flow.links:  # a mark, or two participants on one endpoint
            self._complete(flow, self.now_ps, self.now_ps)
            return
        flow.remaining = float(flow.size)
        channel = self._channel(flow)
        channel.append(flow)
        if channel[0] is flow:
            self._begin(flow)

    def _channel(self, flow: Transfer) -> deque[Transfer]:
        return self._channels[flow.group.job, *flow.ends]

    def _begin(self, flow: Transfer) -> None:
        """The first flow of a channel begins to transfer."""
        flow.links, flow.touched_ps = self.path(flow.ends), self.now_ps
        if not flow.size and all(self._links[link].capacity for link in flow.links):
            self.drains.put(flow, self.now_ps)  # it needs no place on its links, only its turn
        else:
            self._join(flow)

    def _join(self, flow: Transfer) -> None:
        self._transferring[flow] = None
        self._changed.update(flow.links)
        for link in flow.links:
            self._links[link].flows[flow] = None

    def _leave(self, flow: Transfer) -> None:
        del self._transferring[flow]
        self._changed.update(flow.links)
        for link in flow.links:
            del self._links[link].flows[flow]

    def _drained(self, flow: Transfer) -> None:
        if flow in self._transferring:
            self._leave(flow)
        links = self.path(flow.ends)
        for link in links:
            self.use.sent_bytes[link] += flow.size - flow.counted
        self._complete(flow, self.now_ps + sum(self._latency[link] for link in links), self.now_ps)
        channel = self._channel(flow)
        channel.popleft()
        if channel:
            self._begin(channel[0])

    # -- rates ---------------------------------------------------------------------------------------

    def _is_unsettled(self) -> bool:
        return bool(self._changed)

    def _settle(self) -> None:
        """Give every flow its rate from now on, where something differs."""
        links, flows = self._touched()
        levels = _fill(flows, {link: self._links[link] for link in links})
        for flow in flows:
            rate = self._rate(flow, levels[flow])
            if rate != flow.rate:
                self._send_on(flow)
                flow.rate = rate
                self.drains.put(flow, drain_time(self.now_ps, flow.remaining, rate))
        for link in links:
            self._use(link, levels)
        self._changed.clear()

    def _touched(self) -> tuple[list[int], list[Transfer]]:
        """Links that changed and all that have to do with them, over flows that cross both; these flows."""
        links, flows, todo = dict[int, None](), dict[Transfer, None](), sorted(self._changed)
        while todo:
            link = todo.pop()
            if link not in links:
                links[link] = None
                for flow in self._links[link].flows:
                    if flow not in flows:
                        flows[flow] = None
                        todo += flow.links
        return [*links], [*flows]

    def _rate(self, flow: Transfer, level: float) -> float:
        """What a flow gets; one that meets no other has just the rate of its slowest link."""
        mine = [self._links[link] for link in flow.links]
        if any(len(link.flows) > 1 for link in mine):
            return level * weight_of(flow)
        return min(link.capacity for link in mine)

    def _send_on(self, flow: Transfer) -> None:
        """What is left of a flow by now."""
        flow.remaining = max(flow.remaining - flow.rate * (self.now_ps - flow.touched_ps), 0.0)
        flow.touched_ps = self.now_ps

    def _use(self, number: int, levels: dict[Transfer, float]) -> None:
        """Count what a link carried, where it carries something else from now on."""
        link = self._links[number]
        parts = (_part(link.capacity, levels[flow], weight_of(flow)) for flow in link.flows)
        used = link.capacity if link.is_full else min(sum(parts) / _WHOLE, 1.0) * link.capacity
        if used != link.used:
            self._write_use(number)
            link.used, link.since_ps = used, self.now_ps

    def _write_use(self, number: int) -> None:
        link = self._links[number]
        if link.used > 0.0:
            self.use.add(number, link.since_ps, self.now_ps, link.used / link.capacity)

    def rates(self) -> RateSample:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        sending = [(key, channel[0]) for key, channel in self._channels.items() if channel]
        ends = np.array([key[:3] for key, _ in sending], np.int32).reshape(-1, 3)
        rate = np.array([flow.rate for _, flow in sending]) * _BPS_PER_BYTE_PS
        none = np.full(len(sending), np.nan)
        return RateSample(ends[:, 0], ends[:, 1], ends[:, 2], rate, none, np.zeros(len(sending)))

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`: with what links carry now, up to the
        grant.
        """
        so_far, self.use = self.use, copy.deepcopy(self.use)
        for number, link in enumerate(self._links):
            if link.used > 0.0:
                self.use.add(number, link.since_ps, self._granted, link.used / link.capacity)
        found, self.use = super().statistics(), so_far
        return found

    # -- links that change ---------------------------------------------------------------------------

    def _is_idle(self) -> bool:
        return not self._transferring

    def _change_rate(self, link: int, rate_bps: float) -> None:
        self._write_use(link)
        one = self._links[link]
        one.used, one.since_ps, one.capacity = 0.0, self.now_ps, rate_bps / _BPS_PER_BYTE_PS
        self._changed.add(link)

    def _reroute(self) -> None:
        """Flows under way that have another path go on there; what was sent has arrived, and counts where it
        went, and the rest where it goes when it has drained.
        """
        for flow in [*self._transferring]:
            path = self.path(flow.ends)
            if path is not flow.links:
                self._send_on(flow)
                self._leave(flow)
                sent = flow.size - math.ceil(flow.remaining)
                self.use.sent_bytes[[*flow.links]] += sent - flow.counted
                flow.links, flow.counted = path, sent
                self._join(flow)


def weight_of(flow: Transfer) -> int:
    """In whole billionths."""
    return round(flow.group.weight * _WEIGHT_UNIT)


def _part(capacity: float, level: float, weight: int) -> int:
    """What a flow takes of a link, of :data:`_WHOLE`."""
    if level <= 0.0 or capacity == 0.0:
        return 0
    return int(min(level * weight / capacity, 1.0) * _WHOLE + 0.5)


def _fill(flows: Collection[Transfer], links: dict[int, FluidLink]) -> dict[Transfer, float]:
    """The level of each flow: progressive filling, class after class."""
    levels: dict[Transfer, float] = {}
    for link in links.values():
        link.left, link.level, link.gone, link.is_full = link.capacity, 0.0, 0, False
    for priority in sorted({flow.group.priority for flow in flows}):
        _raise([flow for flow in flows if flow.group.priority == priority], links, levels)
    return levels


def _raise(rising: Collection[Transfer], links: dict[int, FluidLink], levels: dict[Transfer, float]) -> None:
    """Raise the level of one class until each of its flows is on a link that is full."""
    mine: dict[int, list[Transfer]] = defaultdict(list)
    for flow in rising:
        for number in flow.links:
            mine[number].append(flow)
    for number, on_it in mine.items():
        link = links[number]
        link.settle()
        link.level, link.weight = 0.0, sum(map(weight_of, on_it))
    ahead = [(links[number].full_at(), number) for number in mine]
    heapify(ahead)
    while ahead:
        level, number = ahead[0]
        link = links[number]
        if link.weight and link.full_at() > level:  # flows on it were frozen since: it is full later
            heapreplace(ahead, (link.full_at(), number))
            continue
        heappop(ahead)
        if not link.weight:  # others have frozen all that rose here
            continue
        for flow in mine[number]:
            if flow not in levels:
                levels[flow] = level
                for other in flow.links:
                    links[other].lose(level, weight_of(flow))
        link.left, link.gone, link.is_full = 0.0, 0, True
