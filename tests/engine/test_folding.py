"""Folding against the same run without it: equal to the picosecond, or refused with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cosim.context import HERE
from cosim.engine.folding.find import find_folding
from cosim.engine.folding.folding import Folding
from cosim.engine.folding.template import fold_template
from cosim.engine.records import JobInfo, Records
from cosim.engine.replay import replay
from cosim.network.aware import CongestionAware
from cosim.network.fair_share import FairShare
from cosim.network.store import COMPLETED
from cosim.network.unaware import CongestionUnaware
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.pattern.template import Collective
from cosim.topology.graph import Topology
from cosim.topology.leaf_spine import LeafSpine
from cosim.topology.regular import FullyConnected, Switch
from cosim.workload.program import DeviceMesh, Operation, OpKind, Peer, Program, Workload

MB = 1 << 20
HOSTS = {
    "gpus": 4,
    "nvlink_rate": "2.4Tbps",
    "nvlink_latency": "300ns",
    "nics": 4,
    "nic_rate": "200Gbps",
    "rails": True,
}


def rails(hosts: int, per_leaf: int, routing: str = "dmodk") -> Topology:
    """Hosts of four GPUs on rails, ``per_leaf`` hosts on a leaf, full bisection."""
    return LeafSpine(
        leaves=4 * hosts // per_leaf,
        spines=per_leaf,
        endpoints_per_leaf=per_leaf,
        latency="500ns",
        routing=routing,
        hosts=HOSTS,
    ).build(HERE)


def job_of(mesh: DeviceMesh, programs: list[list[Operation]], axis: str, iterations: int = 1) -> JobInfo:
    """Programs one for each coordinate of an axis."""
    at = [mesh.coordinates(rank)[axis] for rank in range(mesh.world_size)]
    workload = Workload(
        "job",
        mesh,
        tuple(Program(f"stage{n}", tuple(operations)) for n, operations in enumerate(programs)),
        np.array(at, np.int32),
    )
    return JobInfo("job", workload, np.arange(mesh.world_size, dtype=np.int32), iterations, 0)


def pipeline(
    mesh: DeviceMesh, *, micro_batches: int = 2, size: int = 8 * MB, iterations: int = 1, overlap: bool = True
) -> JobInfo:
    """Stages along pp; an all-reduce over tp a micro-batch, one over dp at the end."""
    programs = []
    for stage in range(mesh.axes["pp"]):
        operations: list[Operation] = []

        def add(name: str, kind: OpKind, stream: str, *deps: int, **more: Any) -> int:
            operations.append(Operation(name, kind, stream, deps, **more))  # noqa: B023 - used at once
            return len(operations) - 1  # noqa: B023

        last: tuple[int, ...] = ()
        for m in range(micro_batches):
            if stage:
                last = (add("recv", OpKind.RECV, "", peer=Peer(axis="pp", offset=-1), size_bytes=MB, tag=m),)
            done = add("forward", OpKind.COMPUTE, "compute", *last, duration_ps=10**9)
            reduced = add(
                "tp", OpKind.COLLECTIVE, "tp", done, collective="all_reduce", axes=("tp",), size_bytes=size
            )
            last = (reduced,)
            if stage < mesh.axes["pp"] - 1:
                add(
                    "send", OpKind.SEND, "send", reduced, peer=Peer(axis="pp", offset=1), size_bytes=MB, tag=m
                )
        deps = (last[0],) if not overlap else (done,)
        add("dp", OpKind.COLLECTIVE, "dp", *deps, collective="all_reduce", axes=("dp",), size_bytes=size)
        programs.append(operations)
    return job_of(mesh, programs, "pp", iterations)


def same(
    topology: Topology, network: Any, job: JobInfo, planner: Planner, folding: Folding, **how: Any
) -> Records:
    """Run both ways and compare everything that a folded run says."""
    whole = replay(topology, network().build(HERE), [job], planner, **how)
    folded = replay(topology, network().build(HERE), [folding.job], planner, **how)
    ranks = folding.translations.representatives
    everyone = folding.translations.images(ranks)
    assert (whole.finish_ps[0][everyone] == folded.finish_ps[0]).all()
    assert (whole.iteration_end_ps[0][:, everyone] == folded.iteration_end_ps[0][:, None, :]).all()
    assert whole.end_ps == folded.end_ps
    assert whole.num_messages == folded.num_messages
    assert (whole.links.link_bytes == folded.links.link_bytes).all()
    assert (whole.links.busy_ps == folded.links.busy_ps).all()
    assert (whole.fct.counts == folded.fct.counts).all()
    assert whole.fct.sum_ps == folded.fct.sum_ps
    assert _traffic(whole) == _traffic(folded)
    mine = np.isin(whole.ops.rank, ranks)
    number = np.searchsorted(ranks, whole.ops.rank[mine])
    rows: list[Any] = [whole.ops.start_ps[mine], whole.ops.end_ps[mine], whole.ops.op[mine], number]
    others: list[Any] = [folded.ops.start_ps, folded.ops.end_ps, folded.ops.op, folded.ops.rank]
    assert (np.stack(rows)[:, np.lexsort(rows)] == np.stack(others)[:, np.lexsort(others)]).all()
    times = sorted((c.collective, c.group_size, c.start_ps, c.ready_ps, c.end_ps) for c in whole.collectives)
    assert times == sorted(
        (c.collective, c.group_size, c.start_ps, c.ready_ps, c.end_ps)
        for c in folded.collectives
        for _ in range(c.copies)
    )
    return folded


def _traffic(records: Records) -> dict[tuple[int, int], int]:
    sums = records.traffic.size_bytes.sum(axis=0)
    pairs = zip(records.traffic.src.tolist(), records.traffic.dst.tolist(), sums.tolist(), strict=True)
    return {(a, b): total for a, b, total in pairs if total}


@pytest.mark.parametrize("release", ["network", "engine"])
@pytest.mark.parametrize("network", [FairShare, CongestionUnaware])
def test_a_pipeline_of_256_ranks_folds_to_its_stages_to_the_picosecond(network: Any, release: str) -> None:
    topology = rails(hosts=64, per_leaf=16)
    job = pipeline(DeviceMesh({"pp": 4, "dp": 16, "tp": 4}), iterations=2)
    planner = Planner()
    folding, reasons = find_folding(topology, network().build(HERE).describe(), [job], planner)
    assert folding is not None
    assert folding.job.workload.world_size == 4
    assert str(folding) == "dp 16, tp 4: 4 of 256 ranks are simulated, each standing for 64"
    assert reasons == ("pp (4): ranks along it run different programs",)
    same(topology, network, job, planner, folding, release=release)


def test_replicas_over_several_leaves_fold_to_one_leaf() -> None:
    # A ring over dp goes through the spines between leaves only: ranks fare alike leaf by leaf.
    topology = rails(hosts=16, per_leaf=4)
    job = pipeline(DeviceMesh({"pp": 2, "dp": 8, "tp": 4}))
    planner = Planner()
    folding, _ = find_folding(topology, FairShare().build(HERE).describe(), [job], planner)
    assert folding is not None
    assert dict(folding.translations.steps) == {"dp": 4, "tp": 1}
    same(topology, FairShare, job, planner, folding)


KINDS = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "broadcast"]
ALGORITHMS: dict[str, list[Any]] = {
    "all_reduce": [
        "ring",
        "direct",
        "halving_doubling",
        "double_binary_tree",
        {"algorithm": "ring", "channels": 2},
    ],
    "all_gather": ["ring", "direct", "halving_doubling"],
    "reduce_scatter": ["ring", "direct", "halving_doubling"],
    "all_to_all": ["ring", "direct", {"algorithm": "direct", "window": 2}],
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Topology, JobInfo, Planner]:
    axes = draw(st.permutations(["a", "b", "c"]))
    mesh = DeviceMesh(
        dict(zip(axes, draw(st.sampled_from([(2, 4, 2), (4, 2, 4), (2, 2, 8), (8, 1, 4)])), strict=True))
    )
    n = mesh.world_size
    topology = draw(
        st.sampled_from(
            [
                rails(hosts=n // 4, per_leaf=n // 4),
                rails(hosts=n // 4, per_leaf=max(1, n // 8)),
                Switch(endpoints=n, rate="100GB/s", latency="500ns").build(HERE),
                FullyConnected(endpoints=n, rate="100GB/s", latency="500ns").build(HERE),
            ]
        )
    )
    operations: list[Operation] = []
    for k in range(draw(st.integers(1, 5))):
        earlier = st.sets(st.integers(0, k - 1), max_size=2) if k else st.just(set[int]())
        deps = tuple(sorted(draw(earlier)))
        if draw(st.booleans()):
            duration = draw(st.integers(0, 10**8))
            operations.append(Operation(f"c{k}", OpKind.COMPUTE, "compute", deps, duration_ps=duration))
            continue
        kind = draw(st.sampled_from(KINDS))
        along = tuple(draw(st.sets(st.sampled_from(axes), min_size=1)))
        size = 0 if kind == "barrier" else draw(st.sampled_from([1 << 10, MB, 3 * MB, 1_000_003]))
        stream = draw(st.sampled_from(["one", "two"]))
        operations.append(
            Operation(f"x{k}", OpKind.COLLECTIVE, stream, deps, collective=kind, axes=along, size_bytes=size)
        )
    config: dict[str, Any] = {kind: draw(st.sampled_from(ways)) for kind, ways in ALGORITHMS.items()}
    config["splits"] = draw(st.sampled_from([1, 2]))
    config["reduction_rate"] = draw(st.sampled_from([None, "800GB/s"]))
    programs = [operations] * mesh.axes[axes[0]]
    return topology, job_of(mesh, programs, axes[0]), Planner(CollectiveConfig.model_validate(config))


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from([FairShare, CongestionUnaware]))
def test_whatever_folds_is_equal_to_the_picosecond(
    case: tuple[Topology, JobInfo, Planner], network: Any
) -> None:
    topology, job, planner = case
    folding, _ = find_folding(topology, network().build(HERE).describe(), [job], planner)
    assume(folding is not None)
    assert folding is not None
    same(topology, network, job, planner, folding)


def reasons_of(topology: Topology, job: JobInfo, network: Any = FairShare) -> tuple[Folding | None, str]:
    folding, reasons = find_folding(topology, network().build(HERE).describe(), [job], Planner())
    return folding, "; ".join(reasons)


MESH = DeviceMesh({"pp": 2, "dp": 4, "tp": 4})


def test_a_straggler_is_not_folded_with_the_others() -> None:
    job = pipeline(MESH)
    slow = [replace(o, duration_ps=2 * o.duration_ps) for o in job.workload.programs[1].operations]
    program_of = job.workload.program_of.copy()
    program_of[-1] = 2
    programs = (*job.workload.programs, Program("straggler", tuple(slow)))
    workload = replace(job.workload, programs=programs, program_of=program_of)
    folding, why = reasons_of(rails(8, 8), replace(job, workload=workload))
    assert folding is None
    assert "dp (4): ranks along it run different programs" in why


def test_a_slow_link_keeps_its_replicas_apart() -> None:
    topology = rails(8, 8)
    rate = topology.link_rate_bps.copy()
    rate[0] /= 2
    folding, why = reasons_of(replace(topology, link_rate_bps=rate), pipeline(MESH))
    assert folding is None
    assert "gpu0 -> host0.nvswitch" in why
    assert "another rate" in why


def test_paths_that_collide_are_not_folded() -> None:
    # Shortest paths all go up to the first spine: a link carries what two replicas send.
    folding, why = reasons_of(rails(8, 4, "shortest"), pipeline(MESH))
    assert folding is not None
    assert dict(folding.translations.steps) == {"tp": 1}
    assert "dp (4): leaf0 -> spine0 is shared by messages of ranks in the same place" in why


def test_a_model_that_serves_the_first_first_is_not_folded() -> None:
    folding, why = reasons_of(rails(8, 8), pipeline(MESH), CongestionAware)
    assert folding is None
    assert why.startswith("congestion_aware may serve first who comes first")


def test_several_jobs_are_not_folded() -> None:
    job = pipeline(DeviceMesh({"pp": 1, "dp": 4, "tp": 4}))
    other = replace(job, name="other", endpoints=job.endpoints + 16)
    folding, reasons = find_folding(rails(8, 8), FairShare().build(HERE).describe(), [job, other], Planner())
    assert folding is None
    assert "2 jobs share the fabric" in reasons[0]


def test_ranks_named_one_by_one_are_not_folded() -> None:
    operations = [
        Operation("x", OpKind.COLLECTIVE, "comm", collective="all_reduce", ranks=(0, 1, 2, 3), size_bytes=MB)
    ]
    job = job_of(DeviceMesh({"dp": 4}), [operations] * 4, "dp")
    workload = replace(job.workload, program_of=np.zeros(4, np.int32))
    folding, why = reasons_of(
        Switch(endpoints=4, rate="10GB/s", latency="1us").build(HERE), replace(job, workload=workload)
    )
    assert folding is None
    assert "operation 'x' names ranks one by one" in why


def test_a_message_that_waits_for_the_end_of_another_does_not_wait_for_its_start_too() -> None:
    template = Planner().plan(Collective.ALL_GATHER, 8, 8 * MB).chunks[0][0].template
    assert np.diff(template.dep_ptr).max() == 2  # in a ring: for the message before, and for what came
    folded = fold_template(template, ((8, 1),))
    assert not isinstance(folded, str)
    assert np.diff(folded.dep_ptr).tolist() == [0, 1, 1, 1]
    assert set(folded.dep_kind.tolist()) == {COMPLETED}
