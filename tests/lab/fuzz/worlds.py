"""Random jobs, and what changes nothing about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cosim.context import HERE
from cosim.engine.folding.find import find_folding
from cosim.engine.records import JobInfo, Records
from cosim.engine.replay import replay
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.fabric import PortSettings
from cosim.network.fair_share import FairShare, FairShareNetwork
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.pattern.dissemination import Dissemination
from cosim.pattern.planner import Planner
from cosim.protocol.session import ServerConfig
from cosim.testing.strategies.jobs import JobMix, job_mixes
from cosim.topology.graph import Topology
from cosim.workload.program import Operation, OpKind, Program, Workload
from tests.engine.test_folding import cases, same
from tests.engine.worlds import Hesitant, ShortSighted, Shuffled
from tests.lab.fuzz.invariants import check
from tests.lab.fuzz.loop import looped
from tests.lab.fuzz.tally import Target, from_strategy
from tests.network.congestion.worlds import graph, watch

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


def _sized(mix: JobMix, size: Callable[[Operation], int]) -> JobMix:
    jobs = tuple(replace(job, workload=sized(job.workload, size)) for job in mix.jobs)
    return replace(mix, jobs=jobs)


def sized(workload: Workload, size: Callable[[Operation], int]) -> Workload:
    """With other sizes of operations that carry something, and no rendezvous."""

    def program(one: Program) -> Program:
        operations = tuple(replace(op, size_bytes=size(op)) if _carries(op) else op for op in one.operations)
        return replace(one, operations=operations)

    return replace(workload, programs=tuple(map(program, workload.programs)), rendezvous=False)


def _carries(op: Operation) -> bool:
    return op.kind is not OpKind.COMPUTE and op.collective != "barrier"


def _at_twice_the_rates(mix: JobMix) -> JobMix:
    topology = replace(mix.topology, link_rate_bps=2 * mix.topology.link_rate_bps)
    return replace(mix, topology=topology, planner=at_twice_the_rates(mix.planner))


def at_twice_the_rates(planner: Planner) -> Planner:
    """With memory that reductions go by twice as fast; a barrier's messages are twice as large."""
    config, barrier = planner.config, planner.config.barrier
    assert isinstance(barrier, Dissemination)
    changed: dict[str, Any] = {"barrier": barrier.model_copy(update={"message": 2 * barrier.message})}
    if config.reduction_rate is not None:
        changed["reduction_rate"] = 2 * config.reduction_rate
    return Planner(config.model_copy(update=changed))


def scaled(given: JobMix) -> None:
    """Twice the bytes at twice the rate take the same time.

    Messages of a barrier have a size of their own, which is doubled, too; those that ask for a rendezvous
    have one that can't be, and are not sent. Nothing rounds: chunks have multiples of 64 bytes. ``floor``
    sizing gives a chunk a byte a rank at least, as ASTRA-sim does; here are more bytes than that.
    """
    unit = 64 * given.planner.config.splits
    mix = _sized(given, lambda op: unit * max(1, -(-op.size_bytes // unit)))
    after = _at_twice_the_rates(_sized(mix, lambda op: 2 * op.size_bytes))
    one, other = run(mix, FairShareNetwork()), run(after, FairShareNetwork())
    assert np.array_equal(one.ops.end_ps, other.ops.end_ps), "sizes and rates doubled change a time"


def cut(given: tuple[JobMix, int, int]) -> None:
    """A network that grants little, looks not ahead, and is given flows in any order changes nothing."""
    mix, which, number = given
    digest = run(mix, NETWORKS[which]()).digest
    for other in (
        Hesitant(NETWORKS[which](), number),
        ShortSighted(NETWORKS[which]()),
        Shuffled(NETWORKS[which](), number),
    ):
        assert run(mix, other, "engine").digest == digest, f"{type(other).__name__} changes the result"


def elsewhere(given: tuple[JobMix, int, int]) -> None:
    """The same jobs on other endpoints of a fabric that is the same from each: nothing takes another time.

    In networks where nothing is first come, first served: of two that come at once one is first there.
    """
    mix, which, number = given
    if mix.topology.name.startswith("Ring"):
        moved = (np.arange(mix.topology.num_endpoints) + number) % mix.topology.num_endpoints
    else:
        moved = np.random.default_rng(number).permutation(mix.topology.num_endpoints)
    jobs = tuple(replace(job, endpoints=moved[job.endpoints].astype(np.int32)) for job in mix.jobs)
    before, after = run(mix, NETWORKS[which]()), run(replace(mix, jobs=jobs), NETWORKS[which]())
    for one, other in zip(before.iteration_end_ps, after.iteration_end_ps, strict=True):
        assert np.array_equal(one, other), "on other endpoints of an even fabric it takes another time"


def folded(given: tuple[Topology, JobInfo, Planner]) -> None:
    """Where a job folds, each rank that was left out fares as its representative."""
    topology, job, planner = given
    folding, _ = find_folding(topology, FairShare().build(HERE).describe(), [job], planner)
    if folding is not None:
        same(topology, FairShare, job, planner, folding)


LONE = st.tuples(
    st.lists(st.sampled_from((1e9, 10e9, 40e9, 100e9)), min_size=1, max_size=4),
    st.sampled_from((0, 1000, 1_000_000)),
    st.integers(1, 3_000_000),
)
"""Rates of links in a row, their latency (ps), bytes."""


def lone(given: tuple[Sequence[float], int, int]) -> None:
    """One flow under a window that never closes is as fast as its fair share, but for packets that each
    further link stores first; queues of less than 64 bytes are not followed.
    """
    rates, latency, size = given
    last = len(rates)
    links = [(k if k else 0, k + 1, rate, latency) for k, rate in enumerate(rates)]
    ends = [{0: 0, last: 1}.get(node, node + (node != 0)) for node in range(last + 1)]  # endpoints come first
    topology = graph(2, last + 1, [(ends[a], ends[b], rate, lat) for a, b, rate, lat in links])
    mtu = 1000
    fluid = watch(
        topology, Fixed(bdp=1000), [(0, 1, size)], PortSettings(mtu_bytes=mtu, headers=False)
    ).done_ps[0]
    share = size * 8e12 / min(rates) + last * latency
    stored = sum(min(size, mtu) * 8e12 / rate for rate in rates[1:])
    dust = 64 * 8e12 / min(rates)
    assert share - 1 <= fluid <= share + stored + dust, f"{fluid} ps; {share:g} is its share's"


def targets() -> list[Target]:
    """Random jobs; what they need is compiled before any is timed."""
    lone(([1e9], 0, 1000))
    mixes, number = job_mixes(), st.integers(1, 7)
    which = st.integers(0, len(NETWORKS) - 1)
    even = job_mixes(("Ring", "Switch"))
    return [
        Target("random jobs", from_strategy(st.tuples(mixes, which)), one_world),
        Target("random jobs, doubled", from_strategy(mixes), scaled),
        Target("random jobs, cut", from_strategy(st.tuples(mixes, which, number)), cut),
        Target(
            "random jobs, elsewhere", from_strategy(st.tuples(even, st.integers(1, 2), number)), elsewhere
        ),
        Target("random jobs, folded", from_strategy(cases()), folded),
        Target("one flow", from_strategy(LONE), lone),
    ]
