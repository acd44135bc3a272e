"""The message level, replayed as nothing but computations, sends and receives, gives the scenario's times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from cosim.context import Context
from cosim.formats.chakra.read import ChakraWorkload
from cosim.formats.goal.write import GoalFormat
from cosim.network.fair_share import FairShareNetwork
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.pattern.planner import Planner
from cosim.topology.grid import Dimension, grid_topology
from cosim.translation.contract import no_progress
from cosim.translation.flat.view import FlatView
from cosim.translation.loss_report import LossReport
from cosim.units import PS_PER_US
from cosim.workload.program import OpKind, Workload
from tests.translation.worlds import (
    NETWORKS,
    Model,
    World,
    collective,
    compute,
    config,
    engine_ends,
    fixed,
    flat_ends,
    job,
    one_dimension,
    recv,
    send,
    source_of,
    workload,
    world_source,
    worlds,
)

some = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def chained(work: Workload) -> Workload:
    """Every operation waits for the one before it, but receives, which have no stream."""

    def operations(ops: Any) -> Any:
        last: int | None = None
        for at, op in enumerate(ops):
            deps = set(op.deps) | ({last} if last is not None and op.kind is not OpKind.RECV else set())
            last = at if op.kind is not OpKind.RECV else last
            yield replace(op, deps=tuple(sorted(deps)))

    programs = tuple(replace(p, operations=tuple(operations(p.operations))) for p in work.programs)
    # Requests of a rendezvous are not in the chain: at one instant they may tie with other messages.
    return replace(work, programs=programs, rendezvous=False)


@some
@given(worlds())
def test_random_jobs_end_when_the_engine_says_wherever_nothing_had_to_be_fixed(world: World) -> None:
    # One chunk of a rank at a time: two of them may start messages on one channel at the same instant, which
    # the engine takes chunk by chunk, and `flat_workload` node by node.
    one_chunk = world.planner.config.model_copy(update={"active_chunks": 1, "queues": 1})
    jobs = tuple(replace(info, workload=chained(info.workload)) for info in world.jobs)
    source = source_of(world.topology, jobs, Planner(one_chunk), FairShareNetwork)
    if not fixed(source).is_lossless:  # phases of several chunks share a queue: their order depends on times
        return
    assert flat_ends(source, FairShareNetwork) == engine_ends(source, FairShareNetwork)


@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        ("all_reduce", "ring"),
        ("all_reduce", {"algorithm": "ring", "channels": 2, "bidirectional": True}),
        ("all_reduce", "direct"),
        ("all_reduce", {"algorithm": "direct", "window": 2}),
        ("all_reduce", "halving_doubling"),
        ("all_reduce", "double_binary_tree"),
        ("all_gather", "ring"),
        ("all_gather", "direct"),
        ("reduce_scatter", "halving_doubling"),
        ("all_to_all", "direct"),
        ("all_to_all", "ring"),
        ("broadcast", "binomial_tree"),
        ("broadcast", "ring"),
        ("barrier", "dissemination"),
    ],
    ids=str,
)
def test_every_algorithm_lands_when_the_engine_says(kind: str, algorithm: Any, model: Model) -> None:
    size = 0 if kind == "barrier" else 80_000
    mine = [(compute(rank * 700_000), collective(size, 0, kind=kind), compute(5, 1)) for rank in range(8)]
    planner = Planner(config(**{kind: algorithm, "endpoint_delay": "10ns", "reduction_rate": "1600GB/s"}))
    info = job(workload(*mine), iterations=2, start_ps=PS_PER_US)
    source = source_of(one_dimension("Ring", 8), (info,), planner, model)
    assert fixed(source).is_lossless
    assert flat_ends(source, model) == engine_ends(source, model)


def test_chunks_over_dimensions_in_one_queue_each_are_exact_with_one_active() -> None:
    topology = grid_topology([Dimension("Ring", 4, 400e9, 1000), Dimension("Switch", 2, 200e9, 500)])
    planner = Planner(config(all_reduce=["ring", "direct"], splits=5, endpoint_delay="10ns"))
    source = source_of(
        topology, (job(workload(*[(collective(1 << 20),)] * 8)),), planner, CongestionUnawareNetwork
    )
    assert fixed(source).is_lossless
    assert flat_ends(source, CongestionUnawareNetwork) == engine_ends(source, CongestionUnawareNetwork)


def test_what_the_times_decide_is_counted() -> None:
    two_ready = workload(*[(compute(10), compute(3), collective(64, 0, 1))] * 4)
    chunks = Planner(config(splits=6, active_chunks=2))
    source = source_of(one_dimension("Ring", 4), (job(two_ready),), chunks, FairShareNetwork)
    found = {entry.what: entry.count for entry in fixed(source).entries()}
    # either of two computations could be first; chunks 2 to 5 of each rank wait for a place
    assert found == {
        "operations whose turn on their stream depends on times": 8,
        "chunks let in beside others": 16,
    }


def test_an_order_that_the_times_decide_can_be_that_of_a_run() -> None:
    """Ranks issue two chains of collectives as they become ready, each rank in its own order."""
    programs = []
    for rank in range(4):
        late, soon = (3_000_000, 1_000_000) if rank % 2 else (1_000_000, 3_000_000)
        programs.append(
            (
                compute(late, stream="a"),
                compute(soon, stream="b"),
                send((rank + 1) % 4, 70_000, 0, tag=0),
                send((rank + 1) % 4, 50_000, 1, tag=1),
                recv((rank - 1) % 4, 70_000, tag=0),
                recv((rank - 1) % 4, 50_000, tag=1),
            )
        )
    source = source_of(one_dimension("Ring", 4), (job(workload(*programs)),), Planner(), FairShareNetwork)
    right = engine_ends(source, FairShareNetwork)
    assert flat_ends(source, FairShareNetwork, "run") == right
    assert flat_ends(source, FairShareNetwork, "program") != right


def test_rendezvous_is_written_out() -> None:
    programs = [
        (send(1, 5000), send(1, 700, 0, tag=1)),
        (compute(900_000), recv(0, 5000, 0), recv(0, 700, tag=1)),
    ]
    work = workload(*programs, rendezvous=True)
    source = source_of(one_dimension("Ring", 2), (job(work, iterations=2),), Planner(), FairShareNetwork)
    assert flat_ends(source, FairShareNetwork) == engine_ends(source, FairShareNetwork)
    sizes = {part.nodes.size_bytes.max() for rank in (0, 1) for part in FlatView(source).parts(0, rank)}
    assert sizes == {8192}


def test_channels_that_a_format_has_not_are_counted_as_messages(tmp_path: Path) -> None:
    planner = Planner(config(all_gather={"algorithm": "ring", "channels": 4}))
    work = workload(*[(collective(4096, kind="all_gather"),)] * 4)
    report = LossReport()
    source = source_of(one_dimension("Ring", 4), (job(work),), planner, FairShareNetwork)
    GoalFormat().examine(source, report)
    assert report.is_lossless
    GoalFormat().write(source, tmp_path, report, no_progress)
    assert [(entry.what, entry.count) for entry in report.entries("lost")] == [
        ("messages on channels beside the first", 3 * 4 * 3)
    ]


def test_messages_and_bytes_are_those_of_the_plans() -> None:
    work = workload(*[(collective(1 << 16), collective(1 << 12, 0, kind="all_to_all"))] * 8)
    source = source_of(one_dimension("Switch", 8), (job(work),), Planner(), FairShareNetwork)
    view = FlatView(source)
    parts = [part for rank in range(8) for part in view.parts(0, rank)]
    assert sum(part.nodes.num_messages for part in parts) == source.run.num_messages


@pytest.mark.parametrize(
    "folder", ["incast8", "ringar_8_red5", "twoflows", "late_recv", "fanout", "comp_send"]
)
def test_message_traces_are_their_own_flat_view(small_traces: Path, folder: str) -> None:
    work = ChakraWorkload(path=folder).build(Context(small_traces / "chakra" / "p2p"))
    topology = one_dimension("Ring", work.world_size)
    source = source_of(topology, (job(work),), Planner(), CongestionUnawareNetwork)
    assert flat_ends(source, CongestionUnawareNetwork) == engine_ends(source, CongestionUnawareNetwork)


@settings(some, max_examples=6)
@given(worlds())
def test_the_flat_view_never_waits_for_ever(world: World) -> None:
    """Also where something was fixed: the graph has an order, and every message its receive."""
    source = world_source(world, FairShareNetwork)
    ends = flat_ends(source, FairShareNetwork)
    assert ends.keys() == engine_ends(source, FairShareNetwork).keys()
