"""The loop is closed: what a completion lets happen moves with it, and nothing else does.

``FaultyNetwork`` reports chosen completions late; the network behind goes on as if nothing had happened. On
``congestion_unaware`` messages don't touch each other, so whatever moves has moved through dependencies.
"""

from __future__ import annotations

import pytest

from cosim.engine.records import JobInfo, Records
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.pattern.config import CollectiveConfig
from cosim.testing.faulty import FaultyNetwork
from cosim.testing.recorder import Recorder
from cosim.topology.graph import Topology
from cosim.units import PS_PER_NS, PS_PER_US
from tests.engine.worlds import (
    Flow,
    collective,
    compute,
    config,
    flows_of,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    recv,
    run,
    send,
    times,
    workload,
)

Key = tuple[int, int]
RANKS = 8
SIZE = 1 << 20
ENDPOINT_PS, REDUCE_PS = 10 * PS_PER_NS, 3 * 81 * PS_PER_NS  # 3 * int(131072 / 1600) ns
MESSAGE_PS = (500 + 131072 // 50) * PS_PER_NS  # int(500 + 131072 / 50) ns
STEPS = 2 * (RANKS - 1)
COSTS = config(endpoint_delay="10ns", reduction_rate="1600GB/s")


def perturbed(
    topology: Topology, one: JobInfo, delay: dict[Key, int], collectives: CollectiveConfig | None = None
) -> tuple[Records, dict[Key, Flow], list[tuple[Key, int, int]]]:
    """A run with some completions late: its records, its flows, and what the faulty network did."""
    faulty = FaultyNetwork(CongestionUnawareNetwork(), delay)
    recorder = Recorder(faulty)
    records = run(topology, one, network=recorder, collectives=collectives, release="engine")
    return records, {flow.key: flow for flow in flows_of(recorder.recording)}, faulty.applied


def ring_times(late: dict[tuple[int, int], int]) -> tuple[dict[tuple[int, int], tuple[int, int]], list[int]]:
    """Start and completion of message (step, rank) of a ring all-reduce, and when each rank is done.

    By hand: a rank issues send s + 1 an endpoint delay, and a reduction in the first half, after the later of
    its send s and the arrival of its predecessor's message s.
    """
    start = {(0, rank): ENDPOINT_PS for rank in range(RANKS)}
    done: dict[tuple[int, int], int] = {}
    after = [0] * RANKS
    for step in range(STEPS):
        for rank in range(RANKS):
            done[step, rank] = start[step, rank] + MESSAGE_PS + late.get((step, rank), 0)
        for rank in range(RANKS):
            got = max(done[step, (rank - 1) % RANKS], start[step, rank])
            after[rank] = got + ENDPOINT_PS + (REDUCE_PS if step < RANKS - 1 else 0)
            start[step + 1, rank] = after[rank]
    return {key: (start[key], done[key]) for key in done}, after


def by_step(flows: dict[Key, Flow]) -> dict[tuple[int, int], Flow]:
    """Messages by (step, rank): a rank's messages in the order in which they start."""
    named: dict[tuple[int, int], Flow] = {}
    for rank in range(RANKS):
        mine = [flow for flow in flows.values() if flow.src == rank and flow.dst != rank]
        for step, flow in enumerate(sorted(mine, key=lambda flow: (flow.start_ps, flow.key))):
            named[step, rank] = flow
    return named


def ring_job() -> JobInfo:
    return job(workload([collective(SIZE)], mesh={"dp": RANKS}))


@pytest.mark.parametrize(("step", "rank"), [(0, 0), (3, 5), (6, 7), (STEPS - 1, 2)])
def test_a_late_completion_moves_the_injections_that_wait_for_it_along_the_ring(step: int, rank: int) -> None:
    topology = one_dimension("Ring", RANKS)
    _, before, _ = perturbed(topology, ring_job(), {}, COSTS)
    key = by_step(before)[step, rank].key
    records, after, applied = perturbed(topology, ring_job(), {key: PS_PER_US}, COSTS)

    assert applied == [(key, before[key].time_ps, before[key].time_ps + PS_PER_US)]
    assert set(before) == set(after)
    moved = {key for key in before if after[key].start_ps != before[key].start_ps}
    assert all(after[key].start_ps == before[key].start_ps + PS_PER_US for key in moved)
    # 1 us is less than a message takes: only the next step of the next rank waits, then the next after it ...
    names = by_step(before)
    along = {names[step + k, (rank + k) % RANKS].key for k in range(1, STEPS - step)}
    exit_rank = (rank + STEPS - step) % RANKS
    exits = {flow.key for flow in before.values() if flow.src == flow.dst == exit_rank and flow.start_ps > 0}
    assert moved == along | exits
    assert len(moved) == STEPS - step  # the rest of 14 * 8 messages and 16 marks stays
    ends = {rank: end for (_, _, rank, _), (_, end) in times(records).items()}
    normal = ring_times({})[1]
    assert ends == {r: normal[r] + (PS_PER_US if r == exit_rank else 0) for r in range(RANKS)}


@pytest.mark.parametrize("delay_ps", [1, PS_PER_US, 4 * PS_PER_US, 50 * PS_PER_US])
def test_every_injection_of_a_perturbed_ring_is_where_the_recurrence_puts_it(delay_ps: int) -> None:
    topology = one_dimension("Ring", RANKS)
    _, before, _ = perturbed(topology, ring_job(), {}, COSTS)
    late = {(2, 3): delay_ps, (9, 6): delay_ps}
    keys = by_step(before)
    records, after, _ = perturbed(topology, ring_job(), {keys[k].key: d for k, d in late.items()}, COSTS)
    expected, ends = ring_times(late)
    found = {name: after[flow.key] for name, flow in keys.items()}
    assert {name: (flow.start_ps, flow.time_ps) for name, flow in found.items()} == expected
    assert {rank: end for (_, _, rank, _), (_, end) in times(records).items()} == dict(enumerate(ends))


def chain() -> JobInfo:
    """0 -> 1 -> 2 with a computation at 1 between; beside it 3 -> 4, and 1 computes something else too."""
    return job(
        workload(
            [send(1, 4096)],
            [recv(0, 4096), compute(3 * PS_PER_US, 0), send(2, 8192, 1), compute(PS_PER_US, stream="cpu")],
            [recv(1, 8192), compute(2 * PS_PER_US, 0)],
            [compute(PS_PER_US), send(4, 4096, 0)],
            [recv(3, 4096)],
        )
    )


def test_a_late_message_moves_the_computation_and_the_message_after_it() -> None:
    topology = one_dimension("Switch", 5)
    records, before, _ = perturbed(topology, chain(), {})
    first = next(flow.key for flow in before.values() if (flow.src, flow.dst) == (0, 1))
    moved_records, after, _ = perturbed(topology, chain(), {first: PS_PER_US})

    moved = {(f.src, f.dst) for key, f in before.items() if after[key].start_ps != f.start_ps}
    assert moved == {(1, 2)}
    was, now = times(records), times(moved_records)
    arrives = int(2 * 500 + 4096 / 50) * PS_PER_NS
    assert was[0, 0, 1, 1] == (arrives, arrives + 3 * PS_PER_US)
    waiting = {(0, 0), (1, 0), (2, 0)}  # began before, end later
    shifted = {(1, 1), (1, 2), (2, 1)}
    for (_, _, rank, op), (start, end) in was.items():
        late_start = PS_PER_US if (rank, op) in shifted else 0
        late_end = PS_PER_US if (rank, op) in shifted | waiting else 0
        assert now[0, 0, rank, op] == (start + late_start, end + late_end), (rank, op)


def test_a_late_message_that_nobody_waits_for_yet_moves_nothing_else() -> None:
    work = workload([send(1, 4096)], [compute(9 * PS_PER_US), recv(0, 4096, 0), compute(PS_PER_US, 1)])
    topology = one_dimension("Switch", 2)
    records, before, _ = perturbed(topology, job(work), {})
    moved_records, _, _ = perturbed(topology, job(work), {next(iter(before)): PS_PER_US})
    was, now = times(records), times(moved_records)
    assert now.pop((0, 0, 0, 0))[1] == was.pop((0, 0, 0, 0))[1] + PS_PER_US  # the SEND itself
    assert now == was


def test_simpy_starts_a_computation_during_a_collective() -> None:
    overlapped = workload(
        [collective(SIZE), compute(7 * PS_PER_US), compute(7 * PS_PER_US, 1), compute(PS_PER_US, 0, 2)],
        mesh={"dp": RANKS},
    )
    records = run(one_dimension("Ring", RANKS), job(overlapped), collectives=COSTS)
    _, ends = ring_times({})
    for rank in range(RANKS):
        at = {op: times(records)[0, 0, rank, op] for op in range(4)}
        assert at[0] == (0, ends[rank])
        assert (at[1], at[2]) == ((0, 7 * PS_PER_US), (7 * PS_PER_US, 14 * PS_PER_US))
        assert at[0][0] < at[2][0] < at[0][1]  # started in the middle of it
        assert at[3] == (ends[rank], ends[rank] + PS_PER_US)


def test_a_message_sent_after_a_computation_slows_the_collective_under_way() -> None:
    """Open loop, the collective would not notice: the SEND leaves at a time that only SimPy knows."""
    quiet = workload([collective(SIZE)], [collective(SIZE)])
    busy = workload(
        [collective(SIZE), compute(PS_PER_US), send(1, 1 << 16, 1, stream="other")],
        [collective(SIZE), recv(0, 1 << 16)],
    )
    topology = one_dimension("Ring", 2)
    alone, shared = times(run(topology, job(quiet))), times(run(topology, job(busy)))
    # 512 KiB keep the link for 10485 ns and are there at 10985 ns, when the second step wants the link; but
    # it has been taken for another 1310 ns by the 64 KiB that queued behind the first step.
    assert alone[0, 0, 1, 0] == (0, 2 * 10985 * PS_PER_NS)
    assert shared[0, 0, 1, 0] == (0, (11795 + 10985) * PS_PER_NS)
    assert shared[0, 0, 0, 0] == alone[0, 0, 0, 0]  # what rank 0 gets comes over the other link
