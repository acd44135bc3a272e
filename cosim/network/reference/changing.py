"""``congestion_unaware`` and ``congestion_aware`` where links fail, slow down and come back.

A message is sent in *legs*: under ``congestion_aware`` each link of its path is one, which sends one
message at a time; under ``congestion_unaware`` the whole path is, and any number at once are on it. On a
leg a message has the rate of the slowest link there. Where that changes, what has been sent counts, and the
rest goes at the new rate; over a dead link nothing goes. When routing has heard of it, messages that wait,
and those on a dead wire, go another way if there is one: from the last node that both ways share, at worst
their source, and whole from there, for half a message is of no use to a node. What is past all dead links
stays on its way.

Times are whole nanoseconds after the start of a leg, cut off, or rounded up where something changes within
the last one. Where nothing changes they are those of :mod:`~cosim.network.reference.analytical`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from cosim.network.reference.plain import FlowEvent, PlainNetwork, Transfer
from cosim.units import MOST_NS, NEVER, PS_PER_NS


@dataclass(eq=False)
class _Leg:
    """Where a message is: on the link number ``hop`` of its path, or before it. ``counted`` bytes of it are
    in the links' statistics, up to ``since_ps``.
    """

    hop: int = 0
    sends: bool = False
    begin_ps: int = 0
    since_ps: int = 0
    counted: float = 0.0


class _Changing(PlainNetwork):
    """Both models; ``in_turn``: whether a link sends one message after the other."""

    quantum_ps = PS_PER_NS
    in_turn: ClassVar[bool]

    def _open_model(self) -> None:
        self._rate: list[float] = (self.topology.link_rate_bps / 8.0 / 1e9).tolist()
        self._latency: list[int] = self.topology.link_latency_ps.tolist()
        self._queues: list[deque[Transfer]] = [deque() for _ in self._rate]
        self._legs: dict[Transfer, _Leg] = {}

    def _is_idle(self) -> bool:
        return not self._legs

    def _on(self, flow: Transfer) -> tuple[int, ...]:
        """The links of a message's leg."""
        hop = self._legs[flow].hop
        return flow.links[hop : hop + 1] if self.in_turn else flow.links[hop:]

    # -- from leg to leg -----------------------------------------------------------------------------

    def _take(self, event: FlowEvent) -> None:
        """A message starts, or comes to its next link."""
        flow = event.flow
        if not flow.links:  # a mark, or two participants on one endpoint
            self._complete(flow, self.now_ps, event.cause_ps)
            return
        if flow in self._legs:
            self._follow(flow)
        else:
            flow.links = self.path(flow.ends)
            self._legs[flow] = _Leg()
        if self.in_turn:
            queue = self._queues[self._on(flow)[0]]
            queue.append(flow)
            if queue[0] is not flow:
                return
        self._begin(flow)

    def _begin(self, flow: Transfer) -> None:
        """A message that is whole at the beginning of its leg is sent."""
        leg = self._legs[flow]
        leg.sends, leg.begin_ps, leg.since_ps, leg.counted = True, self.now_ps, self.now_ps, 0.0
        flow.touched_ps, flow.remaining, flow.rate = self.now_ps, float(flow.size), 0.0
        self._set_rate(flow)

    def _set_rate(self, flow: Transfer) -> None:
        """Have a message go on at the rate that its leg has now."""
        rate, leg = min(self._rate[link] for link in self._on(flow)), self._legs[flow]
        if rate == flow.rate:  # what doesn't touch it must not round it again
            return
        flow.remaining, flow.touched_ps, flow.rate = self._left(flow), self.now_ps, rate
        drain = NEVER
        if rate > 0.0:
            drain = self._whole_ns_after(leg.begin_ps, self._takes_ns(flow))
            if drain < self.now_ps:
                drain += PS_PER_NS
        self.drains.put(flow, drain)

    def _left(self, flow: Transfer) -> float:
        """Bytes that a message still has to send on its leg."""
        return max(flow.remaining - flow.rate * ((self.now_ps - flow.touched_ps) / PS_PER_NS), 0.0)

    def _takes_ns(self, flow: Transfer) -> float:
        """How long its leg takes from the first byte to the last, as things are."""
        return (flow.touched_ps - self._legs[flow].begin_ps) / PS_PER_NS + flow.remaining / flow.rate

    def _whole_ns_after(self, begin_ps: int, takes_ns: float) -> int:
        if takes_ns >= MOST_NS - begin_ps / PS_PER_NS:
            return self._in_time(NEVER)
        return begin_ps + int(takes_ns) * PS_PER_NS

    def _drained(self, flow: Transfer) -> None:
        """A message has been sent: the link takes the next one, and it is at the next node a while later."""
        leg, on = self._legs[flow], self._on(flow)
        self._count(flow, 0.0)
        leg.sends = False
        takes = sum(self._latency[link] for link in on) / PS_PER_NS + self._takes_ns(flow)
        arrival = max(self._whole_ns_after(leg.begin_ps, takes), self.now_ps)
        if self.in_turn:
            queue = self._queues[on[0]]
            queue.popleft()
            if queue:
                self._begin(queue[0])
        if leg.hop + len(on) < len(flow.links):
            leg.hop += 1
            self._push(flow, arrival, flow.touched_ps, leg.hop)
        else:
            del self._legs[flow]
            self._complete(flow, arrival, flow.touched_ps)

    def _count(self, flow: Transfer, left: float) -> None:
        """Count what was sent, but for ``left`` bytes, on the leg's links, before any of them changes."""
        leg, sent = self._legs[flow], flow.size - left
        for link in self._on(flow):
            self.use.sent_bytes[link] += int(sent) - int(leg.counted)
            if sent > leg.counted:
                busy = int((sent - leg.counted) / self._rate[link] * PS_PER_NS)
                self.use.add(link, leg.since_ps, min(leg.since_ps + busy, self.now_ps))
        leg.counted, leg.since_ps = sent, self.now_ps

    # -- links that change ---------------------------------------------------------------------------

    def _change_rate(self, link: int, rate_bps: float) -> None:
        touched = [flow for flow, leg in self._legs.items() if leg.sends and link in self._on(flow)]
        for flow in touched:
            self._count(flow, self._left(flow))
        self._rate[link] = rate_bps / 8.0 / 1e9
        for flow in touched:
            self._set_rate(flow)

    def _reroute(self) -> None:
        """Those that go another way now do."""
        if self.in_turn:
            for link, queue in enumerate(self._queues):
                self._leave(link, queue)
            return
        for flow, leg in self._legs.items():
            path = self.path(flow.ends)
            if leg.sends and path is not flow.links:
                self._count(flow, self._left(flow))
                flow.links = path
                self._set_rate(flow)

    def _leave(self, link: int, queue: deque[Transfer]) -> None:
        """Have those at a link that go another way now leave it; the others stay, in their order."""
        first, waiting = next(iter(queue), None), [*queue]
        queue.clear()
        for flow in waiting:
            leg, before = self._legs[flow], (flow.links, self._legs[flow].hop)
            # What is on the wire of a link that works goes on there, and looks around at the next node.
            if not leg.sends or flow.rate == 0.0:
                self._follow(flow)
            if self._on(flow)[0] == link:
                queue.append(flow)
                continue
            if leg.sends:  # what was sent counts on the old way
                after = flow.links, leg.hop
                flow.links, leg.hop = before
                self._count(flow, self._left(flow))
                flow.links, leg.hop = after
                leg.sends = False
            self._push(flow, self.now_ps, self.now_ps, leg.hop)
        if queue and queue[0] is not first:
            self._begin(queue[0])

    def _follow(self, flow: Transfer) -> None:
        """Have a message that is whole at its hop go the way that there is now, from the last node that
        both ways share; where it is past that, only if a link ahead of it is known to be dead.
        """
        path, leg = self.path(flow.ends), self._legs[flow]
        shared = 0
        while shared < min(leg.hop, len(path)) and path[shared] == flow.links[shared]:
            shared += 1
        if shared == leg.hop or {*flow.links[leg.hop :]} & {*self.dead}:
            flow.links, leg.hop = path, shared


class ChangingUnaware(_Changing):
    """Every message takes its time, and meets nobody."""

    name = "congestion_unaware"
    in_turn = False


class ChangingAware(_Changing):
    """Messages queue at each link."""

    name = "congestion_aware"
    in_turn = True
