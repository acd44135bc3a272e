"""Links that change under ``congestion_aware`` and ``congestion_unaware``, by closed forms and a definition.

What they share with others (cuts, who releases, hybrids) is in ``test_link_changes`` and ``test_hybrid``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.fabric.changes import LinkChange, LinkChanges, RouteChange
from cosim.network.analytical import AnalyticalNetwork
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.graph import Topology
from cosim.topology.routing import ShortestPaths
from cosim.units import NEVER, PS_PER_MS
from tests.network.test_fair_share import GB_PER_S, Message, groups_of, one_link
from tests.network.test_link_changes import MB, Rows, changing, two_ways
from tests.network.worlds import batch, drive, graph

HALF = PS_PER_MS // 2
both = pytest.mark.parametrize("make", [CongestionAwareNetwork, CongestionUnawareNetwork])
many = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


def sent(network: AnalyticalNetwork, topology: Topology, messages: Sequence[Message]) -> list[int]:
    """When each completes; its bytes are counted once on each link of its way at least."""
    network.open(topology)
    times = [-1] * len(messages)
    flows = batch(groups_of(messages), [(k, 0, m.start, m.start) for k, m in enumerate(messages)])
    while -1 in times:
        step = network.advance(flows, NEVER)
        assert step.granted_ps < NEVER or len(step.completions), "the network ran dry"
        flows = batch()
        for handle, time in zip(
            step.completions.handle.tolist(), step.completions.time_ps.tolist(), strict=True
        ):
            times[handle] = time
    assert not network.has_work()
    return times


@both
def test_one_message_takes_the_integral_of_its_links_rate(make: Any) -> None:
    halved = changing(one_link(), [(3, 0, GB_PER_S / 2), (4, 0, GB_PER_S)])
    assert sent(make(), halved, [Message(10 * MB)]) == [10 * PS_PER_MS + HALF]
    dead = changing(one_link(2 * PS_PER_MS), [(3, 0, 0.0), (8, 0, GB_PER_S)])
    assert sent(make(), dead, [Message(10 * MB)]) == [17 * PS_PER_MS]
    # Of no bytes, too: nothing passes a dead link.
    assert sent(make(), dead, [Message(0), Message(0, start=4 * PS_PER_MS)]) == [
        2 * PS_PER_MS,
        10 * PS_PER_MS,
    ]


def test_unaware_messages_do_not_see_each_other_but_all_see_the_dead_link() -> None:
    dead = changing(one_link(), [(3, 0, 0.0), (8, 0, GB_PER_S)])
    network = CongestionUnawareNetwork()
    assert sent(network, dead, [Message(4 * MB), Message(6 * MB)]) == [9 * PS_PER_MS, 11 * PS_PER_MS]
    assert network.statistics().link_bytes.tolist() == [10 * MB]
    assert network.statistics().link_busy_ps.tolist() == [10 * PS_PER_MS]


def test_unaware_messages_go_round_with_what_is_left() -> None:
    topology = changing(two_ways(), [(3, 1, 0.0), (10, 1, GB_PER_S)], detection_ps=PS_PER_MS)
    network = CongestionUnawareNetwork()
    # 3 MB by 3 ms, nothing for one, 3.5 MB at half the rate until 11 ms, and the rest.
    assert sent(network, topology, [Message(10 * MB)]) == [14 * PS_PER_MS + HALF]
    statistics = network.statistics()
    assert statistics.link_bytes.tolist() == [6_500_000, 6_500_000, 3_500_000, 3_500_000]
    assert statistics.link_busy_ps.tolist() == [6_500_000_000, 6_500_000_000, 7_000_000_000, 7_000_000_000]


def test_aware_messages_behind_one_that_slows_down_wait_for_it() -> None:
    halved = changing(one_link(), [(3, 0, GB_PER_S / 2), (5, 0, GB_PER_S)])
    network = CongestionAwareNetwork()
    assert sent(network, halved, [Message(4 * MB), Message(6 * MB)]) == [5 * PS_PER_MS, 11 * PS_PER_MS]
    assert network.statistics().link_bytes.tolist() == [10 * MB]
    assert network.statistics().link_busy_ps.tolist() == [11 * PS_PER_MS]


ROUND: Rows = [(13, 1, 0.0), (20, 1, GB_PER_S)]


@pytest.mark.parametrize(
    ("size", "start", "end"),
    [
        # At the switch by 10 ms; 3 MB went on by 13; a ms later it is sent again, whole, by the slower way,
        # and stays there: 20 ms a link.
        (10 * MB, 0, 54),
        # At the switch by 16 ms, before the link is back: the same.
        (10 * MB, 6, 56),
        # At its source when that is known: it goes there at once.
        (2 * MB, 15, 23),
        # At its source until the repair is known.
        (2 * MB, 21, 25),
    ],
)
def test_aware_messages_go_another_way_whole_from_where_both_part(size: int, start: int, end: int) -> None:
    topology = changing(two_ways(), ROUND, detection_ps=PS_PER_MS)
    assert sent(CongestionAwareNetwork(), topology, [Message(size, start=start * PS_PER_MS)]) == [
        end * PS_PER_MS
    ]


def test_aware_messages_that_wait_for_a_dead_link_go_round_in_their_order() -> None:
    topology = changing(two_ways(), [(0, 0, 0.0)], detection_ps=3 * PS_PER_MS)
    waiting = [Message(2 * MB, start=PS_PER_MS), Message(MB), Message(MB, start=2 * PS_PER_MS)]
    # They leave together at 3 ms: by their keys, then, as of all that come to a link at an instant.
    assert sent(CongestionAwareNetwork(), topology, waiting) == [t * PS_PER_MS for t in (11, 13, 15)]


@pytest.mark.slow  # 100,000 changes, one after the other
@both
def test_flapping_links_do_not_keep_a_dead_message_going(make: Any) -> None:
    class Flapping:
        def __iter__(self) -> Any:
            yield LinkChange(0, 0, 0.0)
            time = 1
            while True:
                yield LinkChange(time, 1, 1e9 * (1 + time % 2))
                time += 1

    topology = replace(
        graph(3, 3, [(0, 1, 1e9, 0), (1, 2, 1e9, 0)]),
        changes=LinkChanges(Flapping()),
    )
    network = make()
    network.open(topology)
    step = network.advance(batch(groups_of([Message(MB)]), [(0, 0, 0, 0)]), NEVER)
    assert (step.granted_ps, len(step.completions), network.has_work()) == (NEVER, 0, False)


@both
@many
@given(world=worlds())
def test_changes_that_change_nothing_leave_all_as_it_was(make: Any, world: World) -> None:
    """Of a loop of its own: against the one without changes."""
    same = [
        LinkChange(time, link, float(world.topology.link_rate_bps[link]))
        for time in (0, 1_000, 777_777)
        for link in range(world.topology.num_links)
    ]
    still = replace(world, topology=replace(world.topology, changes=LinkChanges(same)))
    plain, moved = make(), make()
    assert drive(moved, still) == drive(plain, world)
    assert moved.statistics().link_bytes.tolist() == plain.statistics().link_bytes.tolist()
    # The one counts whole nanoseconds of each message, the other picoseconds.
    more = moved.statistics().link_busy_ps - plain.statistics().link_busy_ps
    assert (abs(more) < 1_000 * sum(group.table.num_flows for group in world.groups)).all()


# -- the definition, in plain Python ---------------------------------------------------------------------


@dataclass
class Sent:
    """A message, where it is, and since when it is sent from there."""

    number: int
    size: int
    start: int
    way: list[int]
    hop: int = 0
    begin: int | None = None
    touched: int = 0
    left: Fraction = Fraction(0)
    rate: Fraction = Fraction(0)
    end: int | None = None

    def leg(self, in_turn: bool) -> list[int]:
        return self.way[self.hop : self.hop + 1] if in_turn else self.way

    def takes(self) -> Fraction:
        """ps from the beginning of its leg to the end."""
        assert self.begin is not None
        return self.touched - self.begin + self.left / self.rate

    def drains(self) -> int | None:
        if self.begin is None or not self.rate:
            return None
        cut = self.begin + int(self.takes()) // 1000 * 1000
        return cut if cut >= self.touched else cut + 1000


@dataclass
class Definition:
    """The text of ``cosim.network.analytical``, with fractions, lists and no calendar."""

    topology: Topology
    in_turn: bool
    now: int = 0
    known: tuple[int, ...] = ()
    rate: list[Fraction] = field(default_factory=list)
    queue: dict[int, list[Sent]] = field(default_factory=dict)
    coming: list[tuple[int, int, int, Sent]] = field(default_factory=list)

    def way(self, src: int, dst: int) -> list[int]:
        """The path of a pair while some links are known to be dead."""
        one, other, none = np.array([src], np.int32), np.array([dst], np.int32), np.zeros(1, np.int32)
        own: list[int] = self.topology.paths(one, other, none)[1].tolist()
        if not {*own} & {*self.known}:
            return own
        dead = np.zeros(self.topology.num_links, np.bool_)
        dead[list(self.known)] = True
        found: list[int] = self.topology.routing.around(self.topology, dead, one, other, none)[1].tolist()
        return found or own

    def run(self, messages: Sequence[Message]) -> list[int]:
        self.ends = [(m.src, m.dst) for m in messages]
        self.rate = [Fraction(int(rate), 8 * 10**12) for rate in self.topology.link_rate_bps]
        self.queue = {link: [] for link in range(self.topology.num_links)}
        all_of = [Sent(k, m.size, m.start, []) for k, m in enumerate(messages)]
        self.coming = [(m.start, m.start, m.number, m) for m in all_of]
        assert self.topology.changes is not None
        changes = [*self.topology.changes]
        while any(m.end is None for m in all_of):
            drains = [(time, m.number, m) for m in all_of if (time := m.drains()) is not None]
            starts = min((one[0] for one in self.coming), default=NEVER)
            change = changes[0].time_ps if changes else NEVER
            if drains and min(drains)[0] <= min(starts, change):
                self.now, _, m = min(drains)
                self.drain(m)
            elif change <= starts:
                self.now = change
                self.change(changes.pop(0), all_of)
            else:
                self.now = starts
                here = sorted(one[1:3] + one[3:] for one in self.coming if one[0] == starts)
                self.coming = [one for one in self.coming if one[0] != starts]
                for _, _, m in sorted(here, key=lambda one: (one[0], self.ends[one[1]][0], one[1])):
                    self.come(m)
        return [m.end for m in all_of if m.end is not None]

    def come(self, m: Sent) -> None:
        if not m.way:
            m.way = self.way(*self.ends[m.number])
        if not m.way:  # to itself
            m.end = self.now
            return
        self.look_around(m)
        if self.in_turn:
            self.queue[m.way[m.hop]].append(m)
            if self.queue[m.way[m.hop]][0] is not m:
                return
        self.send(m)

    def send(self, m: Sent) -> None:
        m.begin = m.touched = self.now
        m.left, m.rate = Fraction(m.size), min(self.rate[link] for link in m.leg(self.in_turn))

    def drain(self, m: Sent) -> None:
        leg = m.leg(self.in_turn)
        assert m.begin is not None
        latency = sum(int(self.topology.link_latency_ps[link]) for link in leg)
        arrives = max(m.begin + int(latency + m.takes()) // 1000 * 1000, self.now)
        m.begin = None
        if self.in_turn:
            (link,) = leg
            self.queue[link].pop(0)
            if self.queue[link]:
                self.send(self.queue[link][0])
            m.hop += 1
            if m.hop < len(m.way):
                self.coming.append((arrives, m.touched, m.number, m))
                return
        m.end = arrives

    def change(self, one: LinkChange | RouteChange, all_of: list[Sent]) -> None:
        if isinstance(one, LinkChange):
            self.rate[one.link] = Fraction(int(one.rate_bps), 8 * 10**12)
        else:
            self.known = one.dead
            self.change_routes(all_of)
        for m in all_of:
            if m.begin is not None:
                rate = min(self.rate[link] for link in m.leg(self.in_turn))
                if rate != m.rate:
                    m.left -= m.rate * (self.now - m.touched)
                    m.touched, m.rate = self.now, rate

    def change_routes(self, all_of: list[Sent]) -> None:
        if not self.in_turn:
            for m in all_of:
                if m.begin is not None:
                    m.way = self.way(*self.ends[m.number])
            return
        for link, waiting in self.queue.items():
            stay = []
            for m in waiting:
                if m.begin is None or not m.rate:
                    self.look_around(m)
                if m.way[m.hop] == link:
                    stay.append(m)
                else:
                    m.begin = None
                    self.coming.append((self.now, self.now, m.number, m))
            self.queue[link] = stay
            if stay and stay[0].begin is None:
                self.send(stay[0])

    def look_around(self, m: Sent) -> None:
        """Whether a message that is whole goes another way now, and from where on."""
        new = self.way(*self.ends[m.number])
        shared = next((k for k in range(m.hop) if k >= len(new) or m.way[k] != new[k]), m.hop)
        if shared == m.hop or {*m.way[m.hop :]} & {*self.known}:
            m.way, m.hop = new, shared


@st.composite
def fabrics(draw: st.DrawFn) -> Topology:
    """A ring of endpoints and switches with chords, where every time is a dyadic fraction of a nanosecond."""
    nodes = draw(st.integers(3, 6))
    ends = [(k, (k + 1) % nodes) for k in range(nodes)]
    ends += [(b, a) for a, b in ends]
    chords = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda p: p[0] != p[1])
    ends += draw(st.lists(chords, max_size=5))
    latency, rate = st.sampled_from((0, 500, 1_000, 500_000)), st.sampled_from((8e9, 16e9, 32e9))
    made = graph(3, nodes, [(a, b, draw(rate), draw(latency)) for a, b in ends])
    topology = replace(made, routing=ShortestPaths(endpoints_forward=True))
    factor, link = st.sampled_from((0.0, 0.25, 0.5, 1.0)), st.integers(0, len(ends) - 1)
    when = sorted(draw(st.lists(st.integers(0, 3_000_000), max_size=10)))
    last = {(t, draw(link)): draw(factor) for t in when}
    last |= {(4_000_000, k): 1.0 for k in range(len(ends))}
    rows = [LinkChange(t, k, float(topology.link_rate_bps[k]) * f) for (t, k), f in sorted(last.items())]
    return replace(topology, changes=LinkChanges(rows, draw(st.sampled_from((0, 1, 100_000, 700_000)))))


@st.composite
def traffic(draw: st.DrawFn) -> list[Message]:
    """Messages between three endpoints, or from one to itself."""
    message = st.builds(
        Message,
        size=st.sampled_from((0, 1, 100, 1_000, 1_501, 4_000)),
        start=st.sampled_from((0, 0, 1_000, 250_000, 1_000_000, 2_000_500)),
        src=st.integers(0, 2),
        dst=st.integers(0, 2),
        channel=st.just(0),
    )
    return draw(st.lists(message, min_size=1, max_size=12))


@both
@many
@given(topology=fabrics(), messages=traffic())
def test_the_loop_does_what_the_definition_says(
    make: Any, topology: Topology, messages: list[Message]
) -> None:
    assert sent(make(), topology, messages) == Definition(topology, make.in_turn).run(messages)


@both
@many
@given(topology=fabrics(), messages=traffic(), step=st.sampled_from((1_000, 70_000, 900_000)))
def test_peek_says_what_completes_next(
    make: Any, topology: Topology, messages: list[Message], step: int
) -> None:
    network = make()
    network.open(topology)
    flows = batch(groups_of(messages), [(k, 0, m.start, m.start) for k, m in enumerate(messages)])
    now = network.advance(flows, 0).granted_ps
    while (coming := network.peek()) is not None:
        if now + step < coming:
            assert not len(network.advance(batch(), now + step).completions)
        assert network.peek() == coming
        answer = network.advance(batch(), coming + 1)
        assert answer.completions.time_ps.tolist()[:1] == [coming]
        now = answer.granted_ps
    assert not network.has_work()
