"""The critical path has the iteration's length; what lies on it makes the run longer, what doesn't,
doesn't.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cosim.engine.records import JobInfo, Records
from cosim.engine.replay import replay
from cosim.errors import InputError
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.results.critical_path import COMPUTE, WAIT, CriticalPath, critical_path, last_critical_paths
from cosim.results.path_parts import PathPart, limit
from cosim.testing import strategies
from cosim.testing.strategies import JobMix
from cosim.topology.graph import Topology
from cosim.workload.program import Operation, OpKind, Program, Workload
from tests.results.synthetic_run import example

NETWORKS = (CongestionAwareNetwork, CongestionUnawareNetwork, FairShareNetwork)


@settings(max_examples=60, deadline=None)
@given(strategies.job_mixes(), st.sampled_from(NETWORKS), st.booleans())
def test_its_steps_follow_one_another_and_add_up_to_the_iteration(
    mix: JobMix, network: type[FairShareNetwork], messages: bool
) -> None:
    records = replay(mix.topology, network(), mix.jobs, mix.planner, record_messages=messages)
    for job, ends in enumerate(records.iteration_end_ps):
        begins = [mix.jobs[job].start_ps, *ends.max(axis=1).tolist()]
        for iteration, (begin, end) in enumerate(pairwise(begins)):
            path = critical_path(records, job, iteration)
            assert path.length_ps == end - begin
            assert [step.start_ps for step in path.steps[1:]] == [step.end_ps for step in path.steps[:-1]]
            assert not any(step.kind == WAIT for step in path.steps)


@settings(max_examples=40, deadline=None)
@given(strategies.fabrics(("Ring", "Switch")), strategies.workloads(4), st.integers(0, 2**32), st.data())
def test_a_computation_on_it_made_free_shortens_the_run_and_one_off_it_does_not(
    topology: Topology, work: Workload, seed: int, data: st.DataObject
) -> None:
    # Without contention, and with streams in one order, an end is the maximum of sums: nothing else can
    # happen.
    work = without_ties(replace(work, rendezvous=False), seed)
    before = run(topology, work)
    path = critical_path(before)
    on = {(step.rank, step.op) for step in path.steps if step.kind == COMPUTE}
    computed = {
        (rank, op)
        for rank in range(work.world_size)
        for op, operation in enumerate(work.program(rank).operations)
        if operation.kind is OpKind.COMPUTE
    }
    assume(computed)
    rank, op = data.draw(st.sampled_from(sorted(computed)))
    after = run(topology, made_free(work, rank, op))
    if (rank, op) in on:
        assert after.end_ps < before.end_ps
    else:
        assert after.end_ps == before.end_ps


def run(topology: Topology, work: Workload) -> Records:
    """One iteration of a job, without contention."""
    endpoints = np.arange(work.world_size, dtype=np.int32)
    planner = Planner(CollectiveConfig.model_validate({"all_reduce": "ring", "all_to_all": "direct"}))
    network = CongestionUnawareNetwork()
    return replay(topology, network, [JobInfo("job", work, endpoints, 1, 0)], planner, record_messages=True)


def without_ties(work: Workload, seed: int) -> Workload:
    """Computations of each rank in one order, of times that no two sums have in common."""
    draw = np.random.default_rng(seed)
    programs = []
    for program in work.programs:
        operations: list[Operation] = []
        last: tuple[int, ...] = ()
        for number, one in enumerate(program.operations):
            if one.kind is OpKind.COMPUTE:
                deps = tuple(sorted({*one.deps, *last}))
                one = replace(one, deps=deps, duration_ps=int(draw.integers(10**6, 10**9)))
                last = (number,)
            operations.append(one)
        programs.append(Program(program.name, tuple(operations)))
    return replace(work, programs=tuple(programs))


def made_free(work: Workload, rank: int, op: int) -> Workload:
    """The same, but that one computation takes no time."""
    programs = list(work.programs)
    operations = list(programs[rank].operations)
    operations[op] = replace(operations[op], duration_ps=0)
    programs[rank] = Program(programs[rank].name, tuple(operations))
    return replace(work, programs=tuple(programs))


def test_what_was_not_recorded_is_a_wait() -> None:
    records = example().records()
    kept = records.ops.rank == 0
    ops = type(records.ops)(*(getattr(records.ops, name)[kept] for name in records.ops.__dataclass_fields__))
    path = critical_path(replace(records, ops=ops))
    ends = records.iteration_end_ps[0].max(axis=1)
    assert path.length_ps == ends[-1] - ends[-2]
    assert any(step.kind == WAIT for step in path.steps)


def test_an_iteration_that_is_not_there_is_refused() -> None:
    records = example().records()
    with pytest.raises(InputError, match="so that there is no iteration 99"):
        critical_path(records, 0, 99)
    with pytest.raises(InputError, match="there is no job 7"):
        critical_path(records, 7)


def test_what_limits_a_job_is_the_larger_side_of_its_path_and_the_largest_part_of_that() -> None:
    def part(kind: str, what: str, time_ps: int) -> PathPart:
        return PathPart(kind, what, time_ps, 1)

    parts = [
        part("compute", "forward", 40),
        part("collective", "all_reduce 1 B", 35),
        part("send", "send", 25),
    ]
    assert limit(parts) == (
        "communication, 60.0 % of its critical path, most of it all_reduce 1 B (35 ps of 100 ps)"
    )
    assert limit([part("wait", "wait", 60), part("compute", "forward", 40)]) == (
        "waits that no computation or message explains, 60.0 % of its critical path (60 ps of 100 ps)"
    )
    assert limit([]) == ""


def test_without_messages_a_collective_is_one_step_of_the_last_iteration() -> None:
    (path,) = last_critical_paths(example().records(messages=True), by_message=False)
    assert path.iteration == 1
    assert not path.by_message
    assert path.steps == critical_path(example().records()).steps


def test_a_path_knows_its_length() -> None:
    assert CriticalPath(0, 0, (), by_message=False).length_ps == 0
