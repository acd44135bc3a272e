"""Links that fail, slow down and come back in a network elsewhere: as in this process, by closed forms."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim.errors import FeatureError
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.protocol import link_events
from cosim.protocol.client import RemoteNetwork, connect
from cosim.protocol.server import Server
from cosim.protocol.settings import Target
from cosim.testing.conformance.faulty_network import StillNetwork
from cosim.topology.graph import Topology
from cosim.topology.routing import EcmpPaths
from cosim.units import NEVER, PS_PER_MS
from tests.network.balancing.worlds import leaf_spine, send, up_links
from tests.network.test_fair_share import GB_PER_S, Message, groups_of, one_link
from tests.network.test_link_changes import MB, Rows, changing, two_ways
from tests.network.worlds import batch

Serve = Callable[..., Server]
Make = Callable[[], NetworkSimulator]
HALVED: Rows = [(3, 0, GB_PER_S / 2), (4, 0, GB_PER_S)]
DEAD: Rows = [(3, 0, 0.0), (8, 0, GB_PER_S)]
ROUND: Rows = [(3, 1, 0.0), (10, 1, GB_PER_S)]


def world(case: str, make: Make = FairShareNetwork) -> tuple[Topology, int]:
    """A topology whose links change, and when 10 MB at 1 GB/s have arrived, in ps: see test_link_changes."""
    if case == "round" and make is CongestionAwareNetwork:
        # At the switch by 10 ms, whose link is known to be dead until 11: from its source, 20 ms a link.
        return changing(two_ways(), ROUND, detection_ps=PS_PER_MS), 50 * PS_PER_MS
    if case == "halved":
        return changing(one_link(), HALVED), 10 * PS_PER_MS + PS_PER_MS // 2
    if case == "dead":
        return changing(one_link(), DEAD), 15 * PS_PER_MS
    # 3 MB; nothing for a millisecond; 3.5 MB at half the rate by the other way; the rest by its own.
    return changing(two_ways(), ROUND, detection_ps=PS_PER_MS), 14 * PS_PER_MS + PS_PER_MS // 2


def arrival(network: NetworkSimulator, topology: Topology, cuts: random.Random | None = None) -> int:
    """When 10 MB from 0 to 1 arrive."""
    network.open(topology)
    flows = batch(groups_of([Message(10 * MB)]), [(0, 0, 0, 0)])
    now = 0
    for _ in count():
        horizon = NEVER if cuts is None else now + cuts.randrange(1, PS_PER_MS)
        step = network.advance(flows, horizon)
        flows, now = FlowBatch(), step.granted_ps
        if len(step.completions.time_ps):
            network.close()
            return int(step.completions.time_ps[0])
    raise AssertionError


CASES = ("halved", "dead", "round")
EXACT = (FairShareNetwork, CongestionAwareNetwork, CongestionUnawareNetwork)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("make", EXACT)
def test_a_served_network_has_links_that_slow_down_fail_and_come_back_exactly(
    serve: Serve, case: str, make: Make
) -> None:
    """Closed forms; in this process, served, and in any cuts of either."""
    topology, exact = world(case, make)
    server = serve(make)
    assert arrival(make(), topology) == exact
    assert arrival(make(), topology, random.Random(1)) == exact
    assert arrival(connect(server.address), topology) == exact
    assert arrival(connect(server.address), topology, random.Random(1)) == exact


@pytest.mark.parametrize(
    "case", [CASES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in CASES[1:])]
)
def test_a_server_that_dies_between_two_events_is_brought_back_to_them(case: str) -> None:
    topology, exact = world(case)
    command = (str(Path(sys.executable).parent / "cosim"), "serve", "--network", "fair_share")
    network = RemoteNetwork(Target(command=command))
    network.open(topology)
    flows = batch(groups_of([Message(10 * MB)]), [(0, 0, 0, 0)])
    for until in (3_500, 9_000, 12_000):
        step = network.advance(flows, until * 1_000_000)
        flows = FlowBatch()
        if until < 12_000:
            process = network.session.process
            assert process is not None
            process.kill()
    done = step.completions.time_ps.tolist()
    done += network.advance(flows, NEVER).completions.time_ps.tolist()
    network.close()
    assert done == [exact]


@pytest.mark.parametrize(("case", "broken_off"), [("halved", 1), ("dead", 2), ("round", 3)])
@pytest.mark.parametrize("make", EXACT)
def test_a_run_that_broke_off_is_resumed_exactly(
    serve: Serve, tmp_path: Path, case: str, broken_off: int, make: Make
) -> None:
    """Before, between and after its events: the log answers as far as it goes, the server from there on."""
    topology, exact = world(case, make)
    address, log = serve(make).address, tmp_path / "injections.log"

    def upto(count: int, *, resume: bool) -> list[int]:
        network = connect(address)
        network.log_to(log, resume=resume)
        network.open(topology)
        flows, done = batch(groups_of([Message(10 * MB)]), [(0, 0, 0, 0)]), []
        for until in (2_000, 3_500, 9_000, 60_000)[:count]:
            done += network.advance(flows, until * 1_000_000).completions.time_ps.tolist()
            flows = FlowBatch()
        network.close()
        return done

    assert upto(broken_off, resume=False) == []
    assert upto(4, resume=True) == [exact]


def queued() -> NetworkSimulator:
    return CongestionNetwork(Dctcp(), PortSettings(mtu_bytes=1000))


@pytest.mark.parametrize("make", [*EXACT, queued])
def test_a_fabric_whose_spines_fail_is_the_same_served_as_in_process(serve: Serve, make: Any) -> None:
    """Detours by the topology's own hash, several sets of dead links, rates."""
    made = leaf_spine()
    up = up_links(made)
    rows = [(20, up[0], 0.0), (40, up[5], 0.0), (60, up[0], 80e9), (70, up[9], 20e9), (90, up[5], 80e9)]
    changes = [LinkChange(time * 1_000_000, link, rate) for time, link, rate in rows]
    topology = replace(made, routing=EcmpPaths(seed=7), changes=LinkChanges(changes, 5_000_000))
    flows = [(k, (k + 4 + 4 * (k % 3)) % 16, 600_000 + 1_000 * k) for k in range(16)]
    own, counted = send(make(), topology, flows)
    there = connect(serve(make).address)
    times, served = send(there, topology, flows)
    there.close()
    assert times.tolist() == own.tolist()
    assert served.link_bytes.tolist() == counted.link_bytes.tolist()
    still, _ = send(make(), replace(topology, changes=None), flows)
    assert own.tolist() != still.tolist()


def test_who_cannot_is_refused_by_name(serve: Serve) -> None:
    topology, _ = world("halved")
    network = connect(serve(StillNetwork).address)
    with pytest.raises(FeatureError, match=r"can't do what is asked: link_events, link_rates"):
        network.open(topology)
    network.close()


def test_events_without_end_are_told_as_far_as_they_fit(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a link that is at half its rate every other millisecond ten changes: 7 MB arrive, 8 do not."""
    monkeypatch.setattr(link_events, "MOST_EVENTS", 10)

    class Endless:
        def __iter__(self) -> Any:
            rates = (GB_PER_S / 2, GB_PER_S)
            return (LinkChange(k * PS_PER_MS, 0, rates[k % 2]) for k in count())

    topology = replace(one_link(), changes=LinkChanges(Endless()))
    server = serve(FairShareNetwork)

    def last(size: int) -> int:
        network = connect(server.address)
        network.open(topology)
        try:
            step = network.advance(batch(groups_of([Message(size)]), [(0, 0, 0, 0)]), NEVER)
            return int(step.completions.time_ps[0])
        finally:
            network.close()

    assert last(7 * MB) == 9 * PS_PER_MS + PS_PER_MS // 2
    with pytest.raises(FeatureError, match=r"told of the first 10, which end at 10 ms; the run goes on"):
        last(8 * MB)


def test_a_path_round_dead_links_that_is_no_way_is_refused() -> None:
    from cosim.protocol.refusal import Refusal
    from cosim.protocol.topology_messages import GivenPaths
    from cosim.protocol.v1 import network_simulator_pb2 as pb

    topology = two_ways()
    paths = GivenPaths(topology.link_src, topology.link_dst)
    paths.know([(1,)])
    ends = {"src": [0, 0], "dst": [1, 1], "channel": [0, 0]}
    with pytest.raises(Refusal, match="is no way from 0 to 1"):
        paths.add(pb.Paths(**ends, end=[2, 3], link=[0, 1, 2], dead_set=[0, 1]), 4)
    with pytest.raises(Refusal, match="of 1 sets of dead links"):
        paths.add(pb.Paths(**ends, end=[2, 4], link=[0, 1, 2, 3], dead_set=[0, 2]), 4)
    paths.add(pb.Paths(**ends, end=[2, 4], link=[0, 1, 2, 3], dead_set=[0, 1]), 4)
    zero = np.zeros(1, np.int32)
    dead = np.array([False, True, False, False])
    assert paths.around(topology, dead, zero, zero + 1, zero)[1].tolist() == [2, 3]
    assert paths.around(topology, ~dead, zero, zero + 1, zero)[1].tolist() == []
