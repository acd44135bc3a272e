"""Credits of links: nothing is dropped, min(rate, room / round trip), and who waits for whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.errors import CosimError, NetworkError
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.credits import Credits
from cosim.network.congestion.fabric import PortSettings
from cosim.topology.graph import Topology
from cosim.units import PS_PER_US
from tests.network.congestion.credit_packets import completions
from tests.network.congestion.test_pfc import in_a_row
from tests.network.congestion.worlds import Seen, graph, locked_ring, watch

MTU = 1_000


def sent(topology: Topology, flows: list[tuple[int, int, int]], room: int, **kwargs: Any) -> Seen:
    errors = {name: kwargs.pop(name) for name in ("bit_errors", "retry") if name in kwargs}
    return watch(
        topology,
        Fixed(bdp=10_000),
        flows,
        PortSettings(headers=False, mtu_bytes=MTU, credits=Credits(buffer=room, **errors)),
        **kwargs,
    )


def one_switch(rate: float, latency_ps: int, last: float = 0.0) -> Topology:
    return graph(2, 3, [(0, 2, rate, latency_ps), (2, 1, last or rate, latency_ps)])


@given(st.sampled_from((10e9, 40e9, 400e9)), st.integers(1_000, 10 * PS_PER_US), st.integers(MTU, 2_000_000))
@settings(max_examples=15)
def test_a_loop_lets_its_room_through_once_a_round_trip(rate: float, latency_ps: int, room: int) -> None:
    """A sliding window: a packet is forwarded when all of it is there, and its credit comes later."""
    size = 10_000_000
    seen = sent(one_switch(rate, latency_ps), [(0, 1, size)], room)
    packet = MTU * 8e12 / rate
    lets_through = min(rate, np.floor(room * 8e12 / (2 * latency_ps + packet)))
    assert seen.done_ps[0] == pytest.approx(size * 8e12 / lets_through + 2 * latency_ps + packet, rel=1e-8)


def test_each_virtual_channel_has_a_loop_of_its_own() -> None:
    """Two classes with a quarter of the link each go beside each other; a third finds a quarter, too."""
    topology = graph(
        4, 6, [(4, 5, 40e9, PS_PER_US)] + [(k, 4, 40e9, 0) for k in range(3)] + [(5, 3, 1e12, 0)]
    )
    room = round(10e9 * (2 * PS_PER_US + 200_000) / 8e12)
    seen = sent(topology, [(k, 3, 1_000_000) for k in range(3)], room, priorities=[0, 1, 2])
    for done in seen.done_ps.values():
        assert done == pytest.approx(1_000_000 * 8e12 / 10e9, rel=0.01)


@pytest.mark.parametrize("room", [5_000, 20_000, 100_000])
def test_who_waits_behind_a_flood_beside_packets(room: int) -> None:
    flows = [(k, 4, 1_000_000) for k in range(3)] + [(3, 5, 1_000_000)]
    seen = sent(in_a_row(), flows, room)
    theirs = completions(in_a_row(), flows, room, MTU)
    assert [seen.done_ps[k] for k in range(4)] == pytest.approx(theirs, rel=0.002)
    extra = seen.statistics.extra
    assert extra["drops"].sum() == 0
    # Four links fill the queue that all pass, each to its room; the others have one link before them.
    rooms = np.where(np.arange(len(extra["drops"])) == 4, 4, 1) * room
    assert (extra["queue_max_bytes"] <= rooms * 1.001).all()


def tree() -> Topology:
    """Eight hosts at two switches, at 100 Gb/s, and a switch above them at 200."""
    links = [(k, 8 + k // 4, 100e9, PS_PER_US // 2) for k in range(8)]
    return graph(8, 11, [*links, *((leaf, 10, 200e9, PS_PER_US // 2) for leaf in (8, 9))])


PATTERNS = {
    "permutation": [(k, (k + 4) % 8, 500_000) for k in range(8)],
    "all-to-all": [(a, b, 50_000) for a in range(8) for b in range(8) if a != b],
    "incast": [(k, 0, 200_000) for k in range(1, 8)],
}


@pytest.mark.parametrize("room", [10_000, 20_000, 64_000])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_means_beside_packets(pattern: str, room: int) -> None:
    """Where a link's bytes to many queues nearly use up what the link needs, it is 6 % fast (-5.90 %)."""
    flows = PATTERNS[pattern]
    within = 0.06 if (pattern, room) == ("all-to-all", 20_000) else 0.02
    seen = sent(tree(), flows, room)
    assert np.mean(list(seen.done_ps.values())) == pytest.approx(
        np.mean(completions(tree(), flows, room, MTU)), rel=within
    )


def test_a_class_of_its_own_passes_a_flood() -> None:
    """Head-of-line blocking is one virtual channel's: in another, a flow has what the flood leaves."""
    flows = [(k, 4, 2_000_000) for k in range(3)] + [(3, 5, 2_000_000)]
    behind = sent(in_a_row(), flows, 50_000)
    beside = sent(in_a_row(), flows, 50_000, priorities=[0, 0, 0, 1])
    assert behind.done_ps[3] == pytest.approx(2_000_000 * 8e12 / (10e9 / 3), rel=0.05)
    assert beside.done_ps[3] == pytest.approx(2_000_000 * 8e12 / 30e9, rel=0.2)


def test_a_circle_of_credits_is_named() -> None:
    topology, flows = locked_ring()
    with pytest.raises(
        NetworkError, match=r"deadlock of credits at \d+ ps: .*n4 -> n5.* in a circle; take a"
    ):
        sent(topology, flows, 20_000)


@pytest.mark.parametrize("errors", [1e-7, 1e-5, 1e-4])
def test_what_arrives_wrong_takes_its_time_and_a_retry(errors: float) -> None:
    """Packets drawn one by one: each goes again, a retry after its end, until it arrives as it was sent."""
    rate, retry, size = 40e9, 2 * PS_PER_US, 100_000_000
    seen = sent(one_switch(rate, 1_000), [(0, 1, size)], 10**6, bit_errors=errors, retry="2us")
    packets, packet = size // MTU, MTU * 8e12 / rate
    tries = np.random.default_rng(1).geometric((1 - errors) ** (8 * MTU), packets)
    theirs = (tries * packet + (tries - 1) * retry).sum()
    assert seen.done_ps[0] == pytest.approx(theirs, rel=0.01)


def test_a_link_that_changes_has_its_errors_still() -> None:
    topology = one_switch(40e9, 1_000)
    object.__setattr__(topology, "changes", LinkChanges([LinkChange(1, 2, 20e9)]))
    errors = {"bit_errors": 1e-5, "retry": "200ns"}
    seen = sent(topology, [(0, 1, 10_000_000)], 10**6, **errors)
    slow = sent(one_switch(40e9, 1_000, last=20e9), [(0, 1, 10_000_000)], 10**6, **errors)
    assert seen.done_ps[0] == pytest.approx(slow.done_ps[0], rel=1e-3)


@pytest.mark.parametrize(
    ("settings_", "said"),
    [
        ("flow_control: {kind: credits, buffer: 4KiB}", "4 KiB are below a packet, which is 9018 bytes"),
        ("flow_control: {kind: credits, buffer: 0}", "should be greater than 0"),
        ("flow_control: {kind: credits}", "flow_control.buffer"),
        ("flow_control: {kind: tokens, buffer: 1MB}", "'tokens' is not one of credits"),
        ("flow_control: {kind: credits, buffer: 1MB, bit_errors: 1e-9}", "bit_errors without retry"),
        ("flow_control: {kind: credits, buffer: 1MB, bit_errors: 0.1, retry: 1us}", "one packet of 9018"),
        ("pfc: true, flow_control: {kind: credits, buffer: 1MB}", "take one of them"),
    ],
)
def test_what_is_wrong_is_named(settings_: str, said: str) -> None:
    with pytest.raises(CosimError, match=said):
        build(
            loads(f"""
topology: {{kind: switch, endpoints: 2, rate: 100Gbps, latency: 1us}}
network: {{model: congestion, control: fixed, {settings_}}}
jobs: [{{workload: {{kind: collective, collective: barrier, ranks: 2}}}}]
""")
        )
