"""Algorithms made for links: TACOS against its authors' own tests and the bound, rings by strides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.context import HERE
from cosim.errors import AlgorithmError
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.group_links import group_links
from cosim.pattern.multi_ring import MultiRing
from cosim.pattern.planner import Planner
from cosim.pattern.synthesis import synthesise
from cosim.pattern.template import Collective, Template
from cosim.topology.direct_connect import DirectConnect
from cosim.topology.graph import Topology
from cosim.topology.leaf_spine import LeafSpine
from cosim.topology.torus import Mesh, Torus
from tests.pattern.uncontended import exits_ns

AR, AG, RS = Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER
MIB = 1 << 20


def grid(kind: type[Torus] | type[Mesh], dims: list[int], rate: str = "50GiB/s") -> Topology:
    return kind(dims=dims, rate=rate, latency="500ns" if rate == "50GiB/s" else "1us").build(HERE)


# astra-sim/tacos (MIT), tests/test_tacos_*.cpp: size of the whole, chunks a rank, what they expect in us.
@pytest.mark.parametrize(
    ("kind", "dims", "rate", "mib", "chunks", "upstream_us"),
    [
        (Mesh, [5, 5], "50GiB/s", 1024, 1, 9606.0),
        (Mesh, [10, 10], "100GiB/s", 1024, 2, 5049.0),
        (Torus, [3, 3, 3], "50GiB/s", 1024, 1, 3706.20),
        (Mesh, [3, 3, 3], "50GiB/s", 1024, 1, 6671.17),
        (Torus, [3, 4, 5], "50GiB/s", 2048, 2, 6676.67),
        (Torus, [4, 2, 3], "50GiB/s", 3072, 3, 11673.67),
        (Mesh, [7, 12], "100GiB/s", 4096, 3, 19966.27),
    ],
)
def test_all_gathers_take_what_the_authors_tests_say(
    kind: type[Torus] | type[Mesh], dims: list[int], rate: str, mib: int, chunks: int, upstream_us: float
) -> None:
    topology = grid(kind, dims, rate)
    n = topology.num_endpoints
    links = group_links(topology, tuple(range(n)))
    made = synthesise(links.all, n, chunks, mib * MIB // (n * chunks), 20)
    assert made.end_ps / 1e6 == pytest.approx(upstream_us, rel=1e-4)


def planner_of(topology: Topology, **algorithms: Any) -> Planner:
    return Planner(CollectiveConfig.model_validate(algorithms), topology=topology)


def template_of(topology: Topology, kind: Collective, size: int, algorithm: Any) -> Template:
    """Its template over all endpoints, which the planner has proved."""
    everyone = tuple(range(topology.num_endpoints))
    plan = planner_of(topology, **{kind.value: algorithm}).plan(kind, len(everyone), size, endpoints=everyone)
    return plan.chunks[0][0].template


def took_ns(src: Any, dst: Any, size: Any) -> Any:
    """500 ns and 50 GiB/s, for any two ranks."""
    del src, dst
    return (500 + size / 53.6870912).astype(np.int64)


@pytest.mark.parametrize(("collective", "times"), [(AG, 1), (RS, 1), (AR, 2)])
def test_a_reduce_scatter_is_an_all_gather_backwards_and_an_all_reduce_is_both(
    collective: Collective, times: int
) -> None:
    topology = grid(Torus, [3, 3, 3])
    size = 1024 * MIB // 27 * (1 if collective is AG else 27)
    made = template_of(topology, collective, size, "tacos")
    link_ns = 500 + 1024 * MIB / 27 / (50 * 2**30) * 1e9
    found = exits_ns(made, np.zeros(27, np.int64), took_ns)
    assert found.max() == pytest.approx(times * 5 * link_ns, rel=1e-4)  # ceil(26 / 6) sends
    assert made.num_messages == times * 27 * 26


def test_each_message_goes_over_one_link() -> None:
    topology = grid(Mesh, [4, 3])
    made = template_of(topology, AR, 12 << 20, {"algorithm": "tacos", "chunks": 2})
    there = set(zip(topology.link_src.tolist(), topology.link_dst.tolist(), strict=True))
    between = made.src != made.dst
    assert set(zip(made.src[between].tolist(), made.dst[between].tolist(), strict=True)) <= there


def test_the_same_links_give_the_same_schedule_and_few_tries_are_no_better() -> None:
    topology = grid(Torus, [4, 2, 3])
    links = group_links(topology, tuple(range(24))).all
    one = synthesise(links, 24, 3, 40 * MIB, 1)
    synthesise.cache_clear()
    again, many = synthesise(links, 24, 3, 40 * MIB, 1), synthesise(links, 24, 3, 40 * MIB, 8)
    assert (one.chunk == again.chunk).all()
    assert one.end_ps == again.end_ps >= many.end_ps


def test_slow_links_take_less() -> None:
    links = ((0, 1, 4e11, 0), (1, 0, 4e11, 0), (0, 1, 1e11, 0), (1, 0, 1e11, 0))
    made = synthesise(links, 2, 10, 50_000, 4)
    assert made.end_ps == 8 * 1_000_000  # 8 chunks at 1 us, and 2 at 4 us


def test_endpoints_on_switches_get_a_ring_through_them() -> None:
    topology = LeafSpine(
        leaves=2, spines=2, endpoints_per_leaf=4, rate="100Gbps", latency="1us", uplink_rate="50Gbps"
    ).build(HERE)
    links = group_links(topology, (6, 0, 3))
    assert links.direct == ()
    assert links.switched == ((0, 1, 5e10, 4_000_000), (1, 2, 1e11, 2_000_000), (2, 0, 5e10, 4_000_000))
    assert template_of(topology, AR, 8 * MIB, "tacos").num_messages == 2 * 8 * 7


def test_groups_that_links_dont_connect_are_refused() -> None:
    topology = grid(Mesh, [4, 4])
    planner = planner_of(topology, all_gather="tacos")
    with pytest.raises(AlgorithmError, match="don't lead from rank 0 to rank 1"):
        planner.plan(AG, 2, 100, endpoints=(0, 5))
    with pytest.raises(AlgorithmError, match="tacos can't carry all_to_all"):
        planner_of(topology, all_to_all="tacos").plan(Collective.ALL_TO_ALL, 2, 100, endpoints=(0, 1))
    with pytest.raises(AlgorithmError, match="there is no topology"):
        Planner(CollectiveConfig.model_validate({"all_gather": "tacos"})).plan(AG, 4, 100)
    with pytest.raises(AlgorithmError, match="name it alone"):
        planner_of(topology, all_gather=["tacos", "ring"]).plan(
            AG, 16, 100, dims=(4, 4), endpoints=tuple(range(16))
        )


def test_rings_by_stride_have_links_of_their_own() -> None:
    topology = DirectConnect(servers=16, degree=4, rate="25Gbps", latency="1us").build(HERE)
    made = template_of(topology, AR, 100_000_000, "multi_ring")
    assert made.name == "multi_ring"
    ways = {
        int(channel): set(((made.dst - made.src) % 16)[made.channel == channel].tolist()) - {0}
        for channel in range(4)
    }
    assert ways == {0: {1}, 1: {15}, 2: {5}, 3: {11}}


def test_strides_that_a_group_cant_go_by_are_refused() -> None:
    topology = grid(Mesh, [4, 4])
    with pytest.raises(AlgorithmError, match="has a link for every step"):
        planner_of(topology, all_reduce="multi_ring").plan(AR, 4, 100, endpoints=(0, 1, 2, 3))
    six = MultiRing(strides=(1, 3))
    with pytest.raises(AlgorithmError, match="steps of 3 don't visit all of a group of 6"):
        Planner(CollectiveConfig(all_reduce=six)).plan(AR, 6, 100)


def run(**scenario: Any) -> float:
    """Milliseconds of the scenario's collective."""
    done = cosim.run({"network": "fair_share", **scenario})
    return done.records.end_ps / 1e9


@pytest.mark.parametrize(("algorithm", "ms"), [("ring", 60.0), ("multi_ring", 15.0)])
def test_an_all_reduce_on_strides_takes_its_rings_time(algorithm: str, ms: float) -> None:
    took = run(
        topology={"kind": "direct_connect", "servers": 16, "degree": 4, "rate": "25Gbps", "latency": "1us"},
        jobs=[{"workload": {"kind": "collective", "collective": "all_reduce", "ranks": 16, "size": "100MB"}}],
        collectives={"all_reduce": algorithm},
    )
    assert took == pytest.approx(ms + 0.030, abs=1e-3)  # 30 steps of 1 us


@pytest.mark.parametrize(("channels", "ms"), [(2, 9.40), (1, 18.79)])
def test_two_channels_have_a_plane_each(channels: int, ms: float) -> None:
    took = run(
        topology={
            "kind": "leaf_spine",
            "leaves": 2,
            "spines": 2,
            "endpoints_per_leaf": 4,
            "rate": "400Gbps",
            "latency": "0ns",
            "planes": 2,
            "routing": "by_channel",
        },
        jobs=[{"workload": {"kind": "collective", "collective": "all_reduce", "ranks": 8, "size": "512MiB"}}],
        collectives={"all_reduce": {"algorithm": "ring", "channels": channels}},
    )
    assert took == pytest.approx(ms, abs=0.005)


def test_a_schedule_is_written_as_msccl_and_read_back(tmp_path: Path) -> None:
    from cosim.formats.msccl.algorithm import MscclFile

    scenario = tmp_path / "torus.yaml"
    scenario.write_text(
        "topology: {kind: torus, dims: [3, 3], rate: 100Gbps, latency: 1us}\n"
        "network: fair_share\n"
        "jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 9, size: 9MB}}]\n"
        "collectives: {all_reduce: {algorithm: tacos, chunks: 2}}\n"
    )
    cosim.translate(scenario, "msccl", tmp_path / "out")
    said = MscclFile(path=str(tmp_path / "out" / "algorithm.xml")).read(HERE).prove(AR, 9, 9_000_000)
    assert said.startswith("proved: cosim_tacos, all_reduce over 9 GPUs")
