"""Operations that wait for earlier iterations: the times of the program unrolled, and closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cosim
from cosim.errors import StallError, WorkloadError
from cosim.network.flows import I64
from cosim.topology.grid import Dimension, grid_topology
from cosim.units import PS_PER_MS, PS_PER_US
from cosim.workload.check import check
from cosim.workload.program import NO_STREAM, Operation, Workload
from cosim.workload.unroll import unrolled
from tests.engine.worlds import (
    NETWORKS,
    collective,
    compute,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    recv,
    run,
    send,
    times,
    workload,
)

ITERATIONS = 6


def lagged(operation: Operation, *pairs: tuple[int, int]) -> Operation:
    return replace(operation, lagged=pairs)


@st.composite
def programs(draw: st.DrawFn) -> list[list[Operation]]:
    """Ranks of one form with durations of their own: computations on two streams, collectives, a ring of
    messages, and dependencies back by up to three iterations.
    """
    ranks, count = draw(st.integers(2, 4)), draw(st.integers(1, 8))
    form = []
    for number in range(count):
        kind = draw(st.sampled_from(["compute", "compute", "collective", "message"]))
        waits = draw(st.sets(st.integers(0, number - 1), max_size=2)) if number else set[int]()
        looks = draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(1, 3)), max_size=2))
        form.append((kind, sorted(waits), sorted(looks), draw(st.sampled_from(["a", "b"]))))
    made = []
    for rank in range(ranks):
        operations: list[Operation] = []
        place: list[int] = []
        for kind, deps, late, stream in form:
            before = tuple(place[dep] for dep in deps)
            here = len(operations)
            place.append(here)
            if kind == "compute":
                one = compute(draw(st.integers(0, 5)) * PS_PER_US, *before, stream=stream)
            elif kind == "collective":
                one = collective(1 << 16, *before, stream=NO_STREAM)
            else:
                one = send((rank + 1) % ranks, 1 << 15, *before, tag=here, stream=stream)
            operations.append(lagged(one, *late))
            if kind == "message":
                operations.append(recv((rank - 1) % ranks, 1 << 15, *before, tag=here))
        made.append([replace(one, lagged=_placed(one.lagged, place)) for one in operations])
    return made


def _placed(late: Sequence[tuple[int, int]], place: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((place[other], lag) for other, lag in late)


def lengths(work: Workload) -> list[int]:
    return [len(program.operations) for program in work.programs]


@given(programs(), st.sampled_from(sorted(NETWORKS)))
@settings(max_examples=40, deadline=None)
def test_a_program_with_lags_takes_the_times_of_itself_unrolled(
    made: list[list[Operation]], network: str
) -> None:
    work = workload(*made)
    topology = one_dimension("Ring", work.world_size)
    kind = NETWORKS[network]
    window = run(topology, job(work, iterations=ITERATIONS), network=kind())
    plain = run(topology, job(unrolled(work, ITERATIONS)), network=kind())
    count = lengths(work)
    flat = {(j, o // count[r], r, o % count[r]): at for (j, _, r, o), at in times(plain).items()}
    assert times(window) == flat
    assert window.end_ps == plain.end_ps


@pytest.mark.parametrize("network", sorted(NETWORKS))
@pytest.mark.parametrize("kind", ["all_reduce", "reduce_scatter", "all_to_all"])
def test_collectives_over_several_dimensions_have_lags_too(kind: str, network: str) -> None:
    """Each dimension by its own algorithm, two iterations' collectives under way at once."""
    topology = grid_topology([Dimension(shape, 2, 80e9, PS_PER_US) for shape in ("Ring", "Switch", "Ring")])
    exchange = collective(1 << 22, 0, kind=kind, stream=NO_STREAM)
    work = workload(*[[lagged(compute(20 * PS_PER_US, name="step"), (0, 1), (1, 2)), exchange]] * 8)
    window = run(topology, job(work, iterations=ITERATIONS), network=NETWORKS[network]())
    plain = run(topology, job(unrolled(work, ITERATIONS)), network=NETWORKS[network]())
    flat = {(0, op // 2, rank, op % 2): at for (_, _, rank, op), at in times(plain).items()}
    assert times(window) == flat
    began, ended = ({key[1]: at[k] for key, at in flat.items() if key[2:] == (0, 1)} for k in (0, 1))
    assert any(began[at + 1] < ended[at] for at in range(ITERATIONS - 1))


def test_what_waits_for_the_iteration_before_begins_when_that_allows() -> None:
    """A collective hides behind the next iteration's computation, which waits for the one before it only."""
    step = compute(10 * PS_PER_US, name="step")
    work = workload([lagged(step, (0, 1)), compute(8 * PS_PER_US, 0, stream="comm")])
    records = run(one_dimension("Ring", 2), job(work, [0], iterations=4))
    assert records.iteration_end_ps[0].ravel().tolist() == [us * PS_PER_US for us in (18, 28, 38, 48)]


def test_an_iteration_waits_until_all_but_so_many_have_ended() -> None:
    """Lag 2 keeps three open: of a stream that takes longer than the other, the other one runs two ahead."""
    quick, slow = compute(PS_PER_US), compute(10 * PS_PER_US, stream="slow")
    work = workload([lagged(quick, (0, 2)), lagged(slow, (1, 2))])
    records = times(run(one_dimension("Ring", 2), job(work, [0], iterations=5)))
    assert [records[0, it, 0, 0][0] // PS_PER_US for it in range(5)] == [0, 1, 2, 10, 20]


def test_an_iteration_ends_when_it_and_all_before_it_have() -> None:
    work = workload([lagged(compute(30 * PS_PER_US), (0, 1)), compute(PS_PER_US, stream="other")])
    records = run(one_dimension("Ring", 2), job(work, [0], iterations=3))
    assert (np.diff(records.iteration_end_ps[0].ravel()) == 30 * PS_PER_US).all()


def test_each_open_iteration_has_durations_of_its_own() -> None:
    """A straggler's jitter goes by iteration, whichever are open with it."""
    step = lagged(compute(10 * PS_PER_US), (0, 1))
    plain = run(
        one_dimension("Ring", 2), job(workload([compute(10 * PS_PER_US)]), [0], iterations=5, pace=PACE)
    )
    late = run(one_dimension("Ring", 2), job(workload([step]), [0], iterations=5, pace=PACE))
    assert times(plain) == times(late)


class ByIteration:
    """Iteration i takes i microseconds longer."""

    def durations_ps(self, rank: int, iteration: int, operation: I64, duration_ps: I64) -> I64:
        return duration_ps + (iteration + rank + len(operation)) * PS_PER_US


PACE = ByIteration()


@pytest.mark.parametrize(("other", "lag"), [(1, 1), (-1, 1), (0, 0), (0, -1), (0, 1001)])
def test_lags_that_can_never_be_met_are_refused(other: int, lag: int) -> None:
    with pytest.raises(WorkloadError, match=rf"waits for operation {other} of {lag} iterations before"):
        check(workload([lagged(compute(1), (other, lag))]))


SAPIPE = """
topology: {kind: switch, endpoints: 8, rate: 10Gbps, latency: 1us}
network: fair_share
jobs:
  - iterations: 9
    workload:
      kind: layers
      workers: 8
      plan: data_parallel
      staleness: {first: 1}
      layers:
        - {forward: 1ms, backward: 2ms, parameters: 2MB}
        - {forward: 1ms, backward: 2ms, parameters: 3MB}
"""


def test_a_folded_job_keeps_its_times() -> None:
    folded, whole = (cosim.run(cosim.loads(SAPIPE), set={"fold": how}) for how in ("always", "never"))
    assert len(folded.records.iteration_end_ps[0][0]) < len(whole.records.iteration_end_ps[0][0]) == 8
    assert folded.summary.jobs[0].iteration_ps == whole.summary.jobs[0].iteration_ps


def test_who_releases_messages_changes_nothing() -> None:
    one, other = (cosim.run(cosim.loads(SAPIPE), set={"release": who}) for who in ("network", "engine"))
    assert one.records.digest == other.records.digest


def test_a_straggler_is_slow_in_whichever_iterations_are_open() -> None:
    """From 10 ms on rank 1 computes twice as slowly: of its computations those that begin later do."""
    text = SAPIPE + "events: [{rank: 1, slow: 2, at: 10ms}]\nfold: never\n"
    ops = cosim.run(cosim.loads(text)).records.ops
    forward = (ops.rank == 1) & (ops.op == 0)
    start, took = ops.start_ps[forward], (ops.end_ps - ops.start_ps)[forward]
    assert (took == np.where(start < 10 * PS_PER_MS, PS_PER_MS, 2 * PS_PER_MS)).all()
    assert (start < 10 * PS_PER_MS).any()


def test_what_waits_for_ever_is_told_with_its_iteration() -> None:
    """Rank 0 sends once an iteration, rank 1 receives twice and then computes."""
    one = [lagged(send(1, 1000), (0, 1))]
    two = [recv(0, 1000), recv(0, 1000), lagged(compute(1, 0, 1), (2, 1))]
    with pytest.raises(StallError) as stall:
        run(one_dimension("Ring", 2), job(workload(one, two), iterations=3))
    assert "rank 1: op 2 'compute' of iteration 2 waits for op 0 'recv' of iteration 2" in str(stall.value)
