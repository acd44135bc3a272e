"""ASTRA-sim's network as a server: conformance, and bit for bit what the in-process model of it says."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from cosim.engine.replay import replay
from cosim.errors import FeatureError, RefusedError
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.network.simulator import NetworkSimulator
from cosim.protocol.client import RemoteNetwork, launch
from cosim.protocol.launcher import ServerProcess
from cosim.protocol.settings import Target
from cosim.testing import check_server
from cosim.topology.graph import Topology
from cosim.topology.routing import ShortestPaths
from cosim.units import NEVER
from tests.adapters.astrasim_worlds import astrasim, network
from tests.cli.processes import PATIENCE_S

NS = 1000
Release = Literal["network", "engine"]

JOB = """
topology: {kind: KIND}
network: congestion_aware
jobs:
  - workload: {kind: periodic, compute: 3us, communication: all_to_all, size: 40000 B, ranks: 16}
    iterations: 2
collectives: {all_to_all: {algorithm: direct}, endpoint_delay: 10ns}
"""
KINDS = {
    "ring": "astra_sim, topology: [Ring], npus_count: [16], bandwidth: [50.0], latency: [500.0]",
    "leaf-spine": "leaf_spine, endpoints_per_leaf: 4, leaves: 4, spines: 2, rate: 100Gbps, latency: 1us",
    "latency zero": "astra_sim, topology: [Ring], npus_count: [16], bandwidth: [50.0], latency: [0.0]",
}


def test_conformance() -> None:
    report = check_server([astrasim()], deadline_s=PATIENCE_S)
    assert report.passed, str(report)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", ["network", "engine"])
def test_same_digest_as_the_in_process_model(kind: str, release: Release) -> None:
    built = build(loads(JOB.replace("KIND", KINDS[kind])))
    remote = network()
    digests = {
        replay(built.topology, one, built.jobs, built.planner, release=release).digest
        for one in (CongestionAwareNetwork(), remote)
    }
    assert len(digests) == 1


def test_links_that_change_are_refused_by_name() -> None:
    """In ASTRA-sim's analytical network a link's rate is for good; in our model of it, it is not."""
    topology = build(loads(JOB.replace("KIND", KINDS["ring"]))).topology
    halved = LinkChanges([LinkChange(1000 * NS, 0, float(topology.link_rate_bps[0]) / 2)])
    with closing(network()) as remote, pytest.raises(FeatureError, match=r"ASTRA-sim .*: link_events, link_"):
        remote.open(replace(topology, changes=halved))


TIES = """
topology: {kind: astra_sim, topology: [Ring], npus_count: [12], bandwidth: [50.0], latency: [500.0]}
network: congestion_aware
jobs:
  - workload: WORKLOAD
"""


def all_alike(seed: int) -> dict[str, Any]:
    """Eight rounds of messages to anybody, all of one size, and computations on them, all of one length."""
    rng = np.random.default_rng(seed)
    ops: list[list[dict[str, Any]]] = [[] for _ in range(12)]
    for k in range(8):
        to = rng.permutation(12).tolist()
        for rank, peer in enumerate(to):
            if peer != rank:
                sent = {"size": 65536, "tag": k}
                deps = [f"c{k - 1}"] if k else []
                ops[rank].append({"name": f"s{k}", "kind": "send", "peer": peer, "deps": deps, **sent})
                ops[peer].append({"name": f"r{k}", "kind": "recv", "peer": rank, **sent})
        for rank in range(12):
            deps = [f"r{k}"] if to[rank] != rank else []
            ops[rank].append({"name": f"c{k}", "kind": "compute", "duration": "2us", "deps": deps})
    programs = [{"ranks": [rank], "operations": mine} for rank, mine in enumerate(ops)]
    return {"kind": "operations", "world_size": 12, "programs": programs}


@pytest.mark.parametrize("seed", range(4))
def test_ties_between_messages_alike_are_broken_alike(seed: int) -> None:
    built = build(loads(TIES.replace("WORKLOAD", json.dumps(all_alike(seed)))))
    digests = {
        replay(built.topology, one, built.jobs, built.planner).digest
        for one in (CongestionAwareNetwork(), network())
    }
    assert len(digests) == 1


def parallel_links() -> Topology:
    """Two endpoints, a switch between them, and two links each way on each side, of different rates."""
    src = [0, 0, 2, 2, 1, 1, 2, 2]
    dst = [2, 2, 1, 1, 2, 2, 0, 0]
    rate = np.array([100, 40, 100, 40, 100, 40, 100, 40], np.float64) * 1e9
    latency = np.full(8, 300_000, np.int64)
    columns = (np.array(src, np.int32), np.array(dst, np.int32))
    return Topology("parallel", 2, ("a", "b", "switch"), *columns, rate, latency, ShortestPaths())


Row = tuple[int, int, int, int, int]


def ends(
    one: NetworkSimulator, topology: Topology, rows: list[Row], *, cut_ps: int = NEVER, until_ps: int = NEVER
) -> list[int]:
    """Ends of flows (source, destination, bytes, channel, start), by advances of at most ``cut_ps``."""
    one.open(topology, seed=1)
    groups = []
    for k, (src, dst, size, channel, _) in enumerate(rows):
        table = flat_table([0], [1], [size], reaction_ps=NEVER)
        groups.append(FlowGroup(k, table, np.array([src, dst], np.int32), (0, k), channel=channel))
    start = np.array([row[4] for row in rows], np.int64)
    count = len(rows)
    batch = FlowBatch(groups, np.arange(count, dtype=np.int32), np.zeros(count, np.int64), start, start)
    found = [-1] * count
    granted = 0
    while granted < until_ps and -1 in found:
        granted, done = one.advance(batch, min(granted + cut_ps, until_ps))
        batch = FlowBatch()
        for handle, time in zip(done.handle.tolist(), done.time_ps.tolist(), strict=True):
            found[handle] = time
    one.close()
    return found


def test_links_between_the_same_two_nodes_are_different_links() -> None:
    rng = np.random.default_rng(7)
    rows = [
        (
            int(rng.integers(2)),
            0,
            int(rng.integers(1, 50_000)),
            int(rng.integers(8)),
            int(rng.integers(3000)) * NS,
        )
        for _ in range(60)
    ]
    rows = [(src, 1 - src, size, channel, start) for src, _, size, channel, start in rows]
    topology = parallel_links()
    assert ends(network(), topology, rows) == ends(CongestionAwareNetwork(), topology, rows)


def test_starts_between_nanoseconds_wait_for_the_next() -> None:
    topology = parallel_links()
    late = ends(network(), topology, [(0, 1, 1000, 0, 1), (1, 0, 1000, 0, 1001)])
    on_time = ends(network(), topology, [(0, 1, 1000, 0, 1000), (1, 0, 1000, 0, 2000)])
    assert late == on_time
    assert all(time % NS == 0 for time in late)


def no_latency() -> Topology:
    """Six endpoints in a ring of links without latency: small messages take no time at all on them."""
    src = np.arange(6, dtype=np.int32)
    dst = np.roll(src, -1)
    both = (np.concatenate([src, dst]), np.concatenate([dst, src]))
    names = tuple("abcdef")
    return Topology("none", 6, names, *both, np.full(12, 1e11), np.zeros(12, np.int64), ShortestPaths(True))


def small_messages(seed: int) -> list[Row]:
    """400 messages within 40 ns, many of which take less than one on a link."""
    rng = np.random.default_rng(seed)
    pairs = [rng.choice(6, 2, replace=False).tolist() for _ in range(400)]
    return [(*pair, int(rng.integers(1, 60)), 0, int(rng.integers(40)) * NS) for pair in pairs]


@pytest.mark.parametrize("seed", range(3))
def test_messages_that_take_no_time_end_alike_wherever_the_run_is_cut(seed: int) -> None:
    topology, rows = no_latency(), small_messages(seed)
    whole = ends(network(), topology, rows)
    assert whole == ends(network(), topology, rows, cut_ps=700)
    assert whole == ends(CongestionAwareNetwork(), topology, rows)


def test_a_session_broken_off_leaves_nothing_behind_for_the_next() -> None:
    topology = parallel_links()
    rows = [(0, 1, 40_000, c, 0) for c in range(8)]
    process = ServerProcess([astrasim()])
    try:
        for _ in range(3):
            broken = RemoteNetwork(Target(address=process.address))
            ends(broken, topology, [(0, 1, 10**9, c, 0) for c in range(8)], until_ps=10 * NS)
            one = RemoteNetwork(Target(address=process.address))
            assert ends(one, topology, rows) == ends(CongestionAwareNetwork(), topology, rows)
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"queue_bytes": 1000}, "queue whole messages"),
        ({"mark_min_bytes": 1000, "mark_max_bytes": 1000}, "can't do what is asked: ecn"),
        ({"mtu_bytes": 1500}, "no packets and no transport"),
        ({"options": {"speed": "1"}}, "no option speed"),
        ({"routing": "ecmp"}, "(?i)ecmp"),
    ],
)
def test_what_it_can_not_do_is_refused(wanted: dict[str, Any], says: str) -> None:
    with (
        closing(launch([astrasim()], **wanted)) as remote,
        pytest.raises((RefusedError, FeatureError), match=says),
    ):
        remote.open(parallel_links())
