"""Classes of priority: who comes first has the whole link, the others what that leaves, no more or less."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.network import CongestionNetwork, PortSettings
from cosim.network.congestion.ports import settle_all
from cosim.topology.graph import Topology
from cosim.units import PS_PER_MS, PS_PER_US
from tests.network.congestion.worlds import graph, watch

CLASSES = 3
END = 100 * PS_PER_MS


@dataclass(frozen=True)
class World:
    """Sources -> a switch -> another -> the sink; messages of (source, bytes, start in us, class)."""

    rates: list[float]
    middle: float
    last: float
    sent: list[tuple[int, int, int, int]]
    lossless: bool

    @property
    def sink(self) -> int:
        return len(self.rates)

    @property
    def topology(self) -> Topology:
        count = self.sink
        links = [(count + 1, count + 2, self.middle, 1_000), (count + 2, count, self.last, 1_000)]
        links += [(k, count + 1, rate, 1_000) for k, rate in enumerate(self.rates)]
        return graph(count + 1, count + 3, links)

    def network(self, control: Control) -> CongestionNetwork:
        ports = PortSettings(mtu_bytes=1_000, buffer_bytes=10**8, pause_bytes=10**5, lossless=self.lossless)
        return CongestionNetwork(control, ports)

    def run(self, control: Control, *, classes: bool = True) -> tuple[CongestionNetwork, dict[int, int]]:
        """A network when all has come to its end, and completions."""
        network = self.network(control)
        flows = [(source % self.sink, self.sink, size) for source, size, _, _ in self.sent]
        starts = [start * PS_PER_US for _, _, start, _ in self.sent]
        priorities = [priority if classes else 0 for *_, priority in self.sent]
        seen = watch(
            self.topology,
            control,
            flows,
            network=network,
            starts_ps=starts,
            priorities=priorities,
            until_ps=END,
        )
        return network, seen.done_ps


RATES = st.sampled_from((10e9, 25e9, 40e9))
WORLDS = st.builds(
    World,
    st.lists(RATES, min_size=1, max_size=4),
    st.sampled_from((10e9, 40e9, 100e9)),
    st.sampled_from((1e9, 5e9, 10e9)),
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(1_000, 400_000),
            st.integers(0, 200),
            st.integers(0, CLASSES - 1),
        ),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)
BEHIND = World([40e9, 40e9], 10e9, 10e9, [(0, 100_000, 0, 1), (1, 100_000, 5, 0)], lossless=False)
"""What is in the queue when a class before it comes waits until that has gone."""


@given(WORLDS)
@example(BEHIND)
@settings(max_examples=40)
def test_no_class_ends_before_its_links_can_have_sent_it(world: World) -> None:
    """Of classes up to any, whatever starts at a time or later needs the last link for its bytes."""
    for control in (Fixed(bdp=1_000), Timely()):
        _, done = world.run(control)
        for most in range(CLASSES):
            mine = [k for k, one in enumerate(world.sent) if one[3] <= most]
            for begin in {world.sent[k][2] for k in mine}:
                left = sum(world.sent[k][1] for k in mine if world.sent[k][2] >= begin)
                end = begin * PS_PER_US + left * 8e12 / world.last
                assert max(done[k] for k in mine) >= end - 1


@given(WORLDS)
@example(BEHIND)
@settings(max_examples=40)
def test_what_a_switch_is_sent_leaves_it_by_class(world: World) -> None:
    """The last link is given what the first has sent, class by class; where it drops, but for a packet a
    message, as queues of less pass on what comes.
    """
    network, _ = world.run(Fixed(bdp=1_000))
    settle_all(network.core(), network.columns(), END)
    ports = network._fluid["ports"]
    links = world.topology.num_links
    for priority in {one[3] for one in world.sent}:
        sizes = [size for _, size, _, one in world.sent if one == priority]
        sent, most = sum(sizes), max(2e-3 * sum(sizes), 0 if world.lossless else 1_000 * len(sizes))
        first, last = (float(ports["served"][priority * links + link]) for link in (0, 2))
        assert first == pytest.approx(sent, abs=most)
        assert last == pytest.approx(sent, abs=most)


@given(WORLDS)
@settings(max_examples=40)
def test_classes_only_change_who_is_served_first(world: World) -> None:
    """Senders whose windows never close keep their links busy: all is there when it would be in one class."""
    ends = [max(world.run(Fixed(bdp=1_000), classes=some)[1].values()) for some in (False, True)]
    assert ends[1] == pytest.approx(ends[0], rel=0.05)


def test_a_class_waits_for_what_stands_before_it_not_for_what_comes() -> None:
    """125 kB of class 0 come in 25 us, to a link that sends them in 100; 100 kB of class 1, which come then,
    leave in the 80 us after that, though nothing of class 0 comes any more.
    """
    sent = [(0, 125_000, 0, 0), (1, 100_000, 25, 1)]
    world = World([40e9, 40e9], 100e9, 10e9, sent, lossless=False)
    _, done = world.run(Fixed(bdp=1_000))
    assert done[0] == pytest.approx(100 * PS_PER_US, rel=0.01)
    assert done[1] == pytest.approx(180 * PS_PER_US, rel=0.01)
