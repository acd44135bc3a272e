"""Random jobs, and what changes nothing about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cosim.engine.records import Records
from cosim.engine.replay import replay
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.protocol.session import ServerConfig
from cosim.testing.strategies.jobs import JobMix, job_mixes
from cosim.workload.program import Program, Workload
from tests.fuzz.invariants import check
from tests.fuzz.loop import looped
from tests.fuzz.tally import Target, from_strategy

NETWORKS = (CongestionAwareNetwork, CongestionUnawareNetwork, FairShareNetwork)


def run(mix: JobMix, network: NetworkSimulator, release: Any = "network") -> Records:
    """The jobs on a network, every message kept."""
    return replay(mix.topology, network, mix.jobs, mix.planner, release=release, record_messages=True)


def one_world(given: tuple[JobMix, int]) -> None:
    """Invariants; and who releases messages, or where the network runs, changes nothing."""
    mix, which = given
    make = NETWORKS[which]
    records = run(mix, make())
    check(records)
    assert run(mix, make(), "engine").digest == records.digest, "release: engine changes the result"
    served = looped(ServerConfig(make))
    assert run(mix, served).digest == records.digest, "a network behind the protocol gives another result"


def _with_sizes_doubled(mix: JobMix) -> JobMix:
    def program(one: Program) -> Program:
        return replace(
            one, operations=tuple(replace(op, size_bytes=2 * op.size_bytes) for op in one.operations)
        )

    def workload(one: Workload) -> Workload:
        return replace(one, programs=tuple(map(program, one.programs)))

    jobs = tuple(replace(job, workload=workload(job.workload)) for job in mix.jobs)
    return replace(mix, jobs=jobs)


def scaled(mix: JobMix) -> None:
    """Twice the bytes at twice the rate take the same time; sizes that are split evenly."""
    rates = replace(mix.topology, link_rate_bps=2 * mix.topology.link_rate_bps)
    sizes = {op.size_bytes for job in mix.jobs for one in job.workload.programs for op in one.operations}
    config = mix.planner.config
    if any(size % 64 for size in sizes) or config.splits == 3 or config.reduction_rate is not None:
        return
    before = run(mix, FairShareNetwork())
    after = run(replace(_with_sizes_doubled(mix), topology=rates), FairShareNetwork())
    assert np.array_equal(before.ops.end_ps, after.ops.end_ps), "sizes and rates doubled change a time"


def targets() -> list[Target]:
    """Random jobs."""
    mixes = job_mixes()
    which = st.integers(0, len(NETWORKS) - 1)
    return [
        Target("random jobs", from_strategy(st.tuples(mixes, which)), one_world),
        Target("random jobs, doubled", from_strategy(mixes), scaled),
    ]
