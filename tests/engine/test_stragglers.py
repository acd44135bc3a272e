"""Ranks that come late: what must wait waits, by the closed form; nothing lives longer than it must."""

from __future__ import annotations

from typing import Any

import pytest

from cosim.engine.records import Records
from cosim.engine.replay import Release, Replay
from cosim.errors import AlgorithmError
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.flows import I64
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.pattern.template import Collective
from cosim.topology.grid import Dimension, Kind, grid_topology
from cosim.units import PS_PER_NS, PS_PER_US
from tests.engine.worlds import (
    NETWORKS,
    Watched,
    collective,
    compute,
    config,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    run,
    times,
    workload,
)

SIZE = 1 << 20
ENDPOINT_PS = 10 * PS_PER_NS
either_release = pytest.mark.parametrize("release", ["network", "engine"])


def reduce_ps(size_bytes: int) -> int:
    return 3 * (size_bytes // 1600) * PS_PER_NS


def message_ps(size_bytes: int) -> int:
    """On ``congestion_unaware``, one hop of 500 ns and 50 bytes per ns."""
    return int(500 + size_bytes / 50) * PS_PER_NS


def costs(**settings: Any) -> CollectiveConfig:
    return config(endpoint_delay="10ns", reduction_rate="1600GB/s", **settings)


def late(
    delays: list[int],
    kind: str,
    collectives: CollectiveConfig,
    release: str,
    topology: Kind = "FullyConnected",
) -> tuple[Records, list[int]]:
    """Rank r computes for ``delays[r]``, then joins: the records, and when each is done."""
    programs = [[compute(d), collective(SIZE, 0, kind=kind)] for d in delays]
    records = run(
        one_dimension(topology, len(delays)),
        job(workload(*programs)),
        network=CongestionUnawareNetwork(),
        collectives=collectives,
        release=release,
    )
    found = times(records)
    assert all(found[0, 0, r, 1][0] == d for r, d in enumerate(delays))
    return records, [found[0, 0, r, 1][1] for r in range(len(delays))]


@either_release
def test_ring_all_reduce_of_two_ranks_with_a_straggler(release: str) -> None:
    half = SIZE // 2
    came = 100 * PS_PER_US
    e, t, reduction = ENDPOINT_PS, message_ps(half), reduce_ps(half)
    records, ends = late([0, came], "all_reduce", costs(), release)
    # The late one has its peer's first message: at L + e it sends its own, and e + R later the second.
    assert ends[0] == came + e + (e + reduction) + t + e
    # The other gets the first at L + e + t, and answers e + R later.
    assert ends[1] == came + e + t + (e + reduction) + t + e
    (one,) = records.collectives
    assert (one.start_ps, one.ready_ps, one.end_ps) == (0, came, max(ends))


@either_release
@pytest.mark.parametrize("straggler", [0, 3])
@pytest.mark.parametrize("came", [0, 1, 700 * PS_PER_NS, PS_PER_US, 1_000 * PS_PER_US])
def test_ring_all_reduce_with_a_straggler_follows_the_recurrence(
    came: int, straggler: int, release: str
) -> None:
    ranks = 6
    message = -(-SIZE // ranks)
    e, t, reduction = ENDPOINT_PS, message_ps(message), reduce_ps(message)
    start = [came if rank == straggler else 0 for rank in range(ranks)]
    _, ends = late(start, "all_reduce", costs(), release, "Ring")
    issue = [s + e for s in start]
    for step in range(2 * (ranks - 1)):
        got = [max(issue[rank - 1] + t, issue[rank]) for rank in range(ranks)]
        issue = [g + e + (reduction if step < ranks - 1 else 0) for g in got]
    assert ends == issue


@either_release
def test_direct_all_to_all_waits_for_the_straggler_and_nobody_else(release: str) -> None:
    ranks = 8
    came = 50 * PS_PER_US
    t = message_ps(SIZE // ranks)
    start = [came if rank == 5 else 0 for rank in range(ranks)]
    _, ends = late(start, "all_to_all", costs(all_to_all="direct"), release)
    assert ends[:5] + ends[6:] == [came + ENDPOINT_PS + t + ENDPOINT_PS] * 7
    # What is for the straggler was there long ago.
    assert ends[5] == came + ENDPOINT_PS + ENDPOINT_PS


@either_release
def test_a_straggler_delays_only_its_own_process_group(release: str) -> None:
    programs = [
        [compute(40 * PS_PER_US if rank == 1 else 0), collective(SIZE, 0, axes=("tp",))] for rank in range(8)
    ]
    topology = one_dimension("FullyConnected", 8)
    late_run = run(topology, job(workload(*programs, mesh={"dp": 4, "tp": 2})), release=release)
    alike = [[compute(0), collective(SIZE, 0, axes=("tp",))]] * 8
    even_run = run(topology, job(workload(*alike, mesh={"dp": 4, "tp": 2})), release=release)
    late_ends, even_ends = times(late_run), times(even_run)
    for rank in range(8):
        moved = late_ends[0, 0, rank, 1][1] - even_ends[0, 0, rank, 1][1]
        assert (moved > 30 * PS_PER_US) if rank < 2 else moved == 0


ALGORITHMS = {
    "all_reduce": ("ring", "direct", "halving_doubling", "double_binary_tree"),
    "all_gather": ("ring", "direct", "halving_doubling"),
    "reduce_scatter": ("ring", "direct", "halving_doubling"),
    "all_to_all": ("ring", "direct"),
    "broadcast": ("ring", "binomial_tree"),
    "barrier": ("dissemination",),
}


@either_release
@pytest.mark.parametrize(("kind", "name"), [(k, name) for k, names in ALGORITHMS.items() for name in names])
def test_no_rank_is_done_before_it_came(kind: str, name: str, release: str) -> None:
    planner = Planner(costs(**{kind: name}))
    size, came = 0 if kind == "barrier" else SIZE, 10_000 * PS_PER_US
    for late_one in range(4):
        programs = [[compute(came * (r == late_one)), collective(size, 0, kind=kind)] for r in range(4)]
        topology = one_dimension("Switch", 4)
        records = run(topology, job(workload(*programs)), collectives=planner, release=release)
        assert times(records)[0, 0, late_one, 1][1] >= came


@either_release
@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("splits", [2, 5])
@pytest.mark.parametrize("active", [1, 2])
def test_stragglers_do_not_lock_chunks_against_each_other(
    model: Any, splits: int, active: int, release: str
) -> None:
    """In three dimensions, chunks on their way in and out meet in the queue of the one in the middle."""
    grid = grid_topology([Dimension("Ring", 2, 400e9 / k, 500 * PS_PER_NS) for k in (1, 2, 3)])
    planner = Planner(costs(all_reduce=["ring"] * 3, splits=splits, active_chunks=active))
    for straggler, came in ((0, 1), (3, 5 * PS_PER_US), (6, 80 * PS_PER_US)):
        programs = [
            [compute(came if rank == straggler else rank % 3 * PS_PER_US), collective(SIZE, 0)]
            for rank in range(8)
        ]
        records = run(grid, job(workload(*programs)), network=model(), collectives=planner, release=release)
        assert len(records.ops) == 16


@either_release
def test_flows_exist_from_the_first_arrival_to_the_last_exit(release: Release) -> None:
    came = 90 * PS_PER_US
    programs = [[compute(10 * PS_PER_US + (came if r == 2 else 0)), collective(SIZE, 0)] for r in range(4)]
    watched = Watched(CongestionAwareNetwork())
    replay = Replay(one_dimension("Ring", 4), watched, [job(workload(*programs))], Planner(), release)
    seen: list[tuple[int, int]] = []

    def look() -> Any:
        while replay.environment.now < 200 * PS_PER_US:
            seen.append((int(replay.environment.now), len(watched.left)))
            yield replay.environment.timeout(PS_PER_US)

    replay.environment.process(look())
    records = replay.run()
    (one,) = records.collectives
    assert one.start_ps == 10 * PS_PER_US
    assert one.ready_ps == 10 * PS_PER_US + came
    for now, count in seen:
        if now < one.start_ps:
            assert count == 0
        elif one.start_ps < now < one.end_ps:
            assert count == 1
        elif now > one.end_ps:
            assert count == 0
    assert watched.left == {}


@either_release
def test_memory_follows_what_is_in_flight_not_how_often_it_runs(release: str) -> None:
    """Forty iterations of a collective and a message need as many handles as one."""
    program = [collective(4096), collective(4096, 0, axes=("tp",)), collective(4096, 1, axes=("dp",))]
    work = workload(program, mesh={"dp": 2, "tp": 2})
    most = []
    for iterations in (1, 40):
        watched = Watched(CongestionAwareNetwork())
        run(one_dimension("Ring", 4), job(work, iterations=iterations), network=watched, release=release)
        assert watched.left == {}
        most.append(watched.most_open)
    assert most[1] <= most[0] + 1


def test_an_algorithm_whose_exit_does_not_wait_for_the_rank_is_named() -> None:
    planner = Planner(config(broadcast="ring"))
    template = planner.plan(Collective.BROADCAST, 2, SIZE).chunks[0][0].template
    # Undo what makes rank 1's exit wait for its entry.
    row = int(template.block_row[-2]) + 1
    distances = template.dep_distance[int(template.dep_ptr[row]) : int(template.dep_ptr[row + 1])]
    distances[distances == template.exit_base] = 1
    programs = [[compute(came), collective(SIZE, 0, kind="broadcast")] for came in (0, 10**9)]
    with pytest.raises(AlgorithmError, match=r"rank 1 is done with broadcast .* before it came"):
        run(one_dimension("Ring", 2), job(workload(*programs)), collectives=planner)


class Growing:
    """Operation o of iteration k takes (k + 1) (o + 1) times as long, less the number of the rank."""

    def durations_ps(self, rank: int, iteration: int, operation: I64, duration_ps: I64) -> I64:
        return duration_ps * (iteration + 1) * (operation + 1) - rank


def test_each_iteration_of_each_rank_has_its_own_pace() -> None:
    us = PS_PER_US
    work = workload([compute(us), compute(us, 0)], [compute(us), compute(us, 0)])
    found = times(run(one_dimension("Ring", 2), job(work, iterations=4, pace=Growing())))
    for rank in (0, 1):
        took = [[found[0, k, rank, op][1] - found[0, k, rank, op][0] for op in (0, 1)] for k in range(4)]
        assert took == [[(k + 1) * us - rank, 2 * (k + 1) * us - rank] for k in range(4)]
