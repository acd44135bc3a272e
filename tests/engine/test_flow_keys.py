"""A flow's key names it: no two flows of a run share one, and it doesn't depend on how the run went."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from cosim.errors import AlgorithmError
from cosim.network.aware import CongestionAwareNetwork
from cosim.testing.recorder import Recorder
from cosim.testing.strategies.jobs import JobMix as World
from cosim.testing.strategies.jobs import job_mixes as worlds
from cosim.topology.grid import Dimension, grid_topology
from cosim.units import PS_PER_US
from tests.engine.worlds import (
    NETWORKS,
    Shuffled,
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
    workload,
)

many = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


@many
@given(world=worlds())
def test_keys_of_all_completions_are_unique(world: World) -> None:
    recorder = Recorder(CongestionAwareNetwork())
    run(world.topology, *world.jobs, network=recorder, collectives=world.planner)
    found = flows_of(recorder.recording)
    assert [key for key, count in Counter(flow.key for flow in found).items() if count > 1] == []
    shuffled = Recorder(Shuffled(NETWORKS["congestion_unaware"](), 1))
    run(world.topology, *world.jobs, network=shuffled, collectives=world.planner, release="engine")
    assert {flow.key for flow in flows_of(shuffled.recording)} == {flow.key for flow in found}


def test_a_message_never_has_the_key_of_a_sub_group_that_begins_with_its_rank() -> None:
    """Ranks 2 and 3 form a sub-group of operation 0, as rank 0 numbers it; rank 2's operation 0 is a SEND."""
    whole = collective(4096, ranks=(0, 1, 2, 3))
    later = collective(4096, 0, ranks=(0, 1, 2, 3))
    work = workload([whole], [whole], [send(3, 64), later], [recv(2, 64), later], rendezvous=True)
    grid = grid_topology([Dimension("Ring", 2, 400e9, 1000), Dimension("Ring", 2, 400e9, 1000)])
    recorder = Recorder(CongestionAwareNetwork())
    run(grid, job(work), network=recorder, collectives=config(all_reduce=["ring", "ring"], splits=2))
    keys = Counter(flow.key for flow in flows_of(recorder.recording))
    assert keys.most_common(1)[0][1] == 1


def test_flows_of_equal_operations_in_other_iterations_jobs_and_groups_differ() -> None:
    work = workload([collective(4096, axes=("tp",)), compute(PS_PER_US, 0)], mesh={"dp": 2, "tp": 2})
    recorder = Recorder(CongestionAwareNetwork())
    twice = (job(work, iterations=3), job(work, iterations=3))
    run(one_dimension("Ring", 4), *twice, network=recorder)
    found = flows_of(recorder.recording)
    assert len({flow.key for flow in found}) == len(found) == 2 * 3 * 2 * (2 + 4 + 2)


def test_more_chunks_than_keys_can_tell_apart_are_refused() -> None:
    grid = grid_topology([Dimension("Ring", 2, 400e9, 1000), Dimension("Ring", 2, 400e9, 1000)])
    work = workload([collective(1 << 20)], mesh={"dp": 4})
    with pytest.raises(AlgorithmError, match=r"2000 chunks of 3 phases .*\n.*splits to 1364 or less"):
        run(grid, job(work), collectives=config(all_reduce=["ring", "ring"], splits=2000))
