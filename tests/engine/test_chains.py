"""Chains: operations that go to the network whole end as if each had gone by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from engine_worlds import (
    NETWORKS,
    Front,
    collective,
    compute,
    config,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    run,
    send,
    times,
    workload,
)
from hypothesis import HealthCheck, given, settings
from random_jobs import World, worlds

from cosim.engine.chains import find_chains
from cosim.engine.programs import ready_program
from cosim.engine.records import JobInfo, Records
from cosim.errors import StallError
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator
from cosim.units import PS_PER_US
from cosim.workload.program import DeviceMesh, Operation, OpKind, Peer, Program

RING = one_dimension("Ring", 8)


class OneByOne(Front):
    """Does not take chains."""

    def describe(self) -> Capabilities:
        return replace(self.inner.describe(), chains=False)


class Interrupted(Front):
    """The user loses patience at the n-th advance."""

    def __init__(self, inner: NetworkSimulator, after: int) -> None:
        super().__init__(inner)
        self._left = after

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return super().advance(flows, horizon_ps)


def to_stage(offset: int, *deps: int, receives: bool = False) -> Operation:
    kind, stream = (OpKind.RECV, "") if receives else (OpKind.SEND, "pp")
    return Operation("between", kind, stream, deps, size_bytes=1 << 16, peer=Peer(axis="pp", offset=offset))


def layers(first: int, count: int, *deps: int) -> list[Operation]:
    """Computation, all-reduce, computation, reduce-scatter ... of ``count`` halves, then one computation."""
    found = []
    for k in range(count):
        kind = ("all_reduce", "reduce_scatter")[k % 2]
        found.append(compute((k + 1) * PS_PER_US, *deps))
        found.append(collective(1 << 18, first + 2 * k, axes=("tp",), kind=kind))
        deps = (first + 2 * k + 1,)
    return [*found, compute(PS_PER_US, *deps)]


def stages(micro_batches: int = 3) -> JobInfo:
    """Two pipeline stages of four tensor-parallel ranks: chains between messages."""
    first: list[Operation] = []
    last: list[Operation] = []
    for _ in range(micro_batches):
        at = len(first)
        first += [*layers(at, 3, *([at - 2] if at else [])), to_stage(1, at + 6)]
        at = len(last)
        last += [to_stage(-1, *([at - 1] if at else []), receives=True), *layers(at + 1, 2, at)]
    mesh = {"pp": 2, "tp": 4}
    work = workload(first, last, mesh=mesh)
    return job(replace(work, program_of=np.repeat([0, 1], 4).astype(np.int32)), iterations=2)


def all_of(records: Records) -> tuple[object, ...]:
    links = records.links
    return (
        records.digest,
        times(records),
        records.collectives,
        links.link_bytes.tolist(),
        links.flows_started,
        [finish.tolist() for finish in records.finish_ps],
    )


@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
def test_chains_change_nothing_but_how_often_the_network_is_asked(model: type[NetworkSimulator]) -> None:
    whole, one_by_one = run(RING, stages(), network=model()), run(RING, stages(), network=OneByOne(model()))
    assert all_of(whole) == all_of(one_by_one)
    assert whole.info["advances"] < one_by_one.info["advances"] / 2


@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(world=worlds())
def test_chains_change_nothing_in_random_jobs(model: type[NetworkSimulator], world: World) -> None:
    whole = run(world.topology, *world.jobs, network=model(), collectives=world.planner)
    other = run(world.topology, *world.jobs, network=OneByOne(model()), collectives=world.planner)
    assert all_of(whole) == all_of(other)


def test_every_message_of_a_chain_has_its_operations_key() -> None:
    whole = run(RING, stages(), network=FairShareNetwork(), record_messages=True).messages
    other = run(RING, stages(), network=OneByOne(FairShareNetwork()), record_messages=True).messages
    assert whole is not None
    assert other is not None
    for name in ("job", "iteration", "op", "src", "dst", "size_bytes", "start_ps", "end_ps"):
        assert np.array_equal(getattr(whole, name), getattr(other, name)), name


def test_a_chain_too_long_for_one_table_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one = all_of(run(RING, stages(), network=OneByOne(FairShareNetwork())))
    asked = []
    for most in (1 << 16, 40, 1):
        monkeypatch.setattr("cosim.engine.chain_runs.MOST_ROWS", most)
        records = run(RING, stages(), network=FairShareNetwork())
        assert all_of(records) == one_by_one
        asked.append(records.info["advances"])
    assert asked == sorted(set(asked))


def test_chunked_collectives_go_one_by_one() -> None:
    chunked = config(splits=4)
    one = run(RING, stages(), network=FairShareNetwork(), collectives=chunked)
    other = run(RING, stages(), network=OneByOne(FairShareNetwork()), collectives=chunked)
    assert all_of(one) == all_of(other)
    assert one.info["advances"] == other.info["advances"]


@pytest.mark.parametrize("after", [0, 2, 4, 7])
def test_what_ended_in_a_chain_before_an_interrupt_is_kept(after: int) -> None:
    whole = run(RING, stages(), network=FairShareNetwork())
    part = run(RING, stages(), network=Interrupted(FairShareNetwork(), after))
    assert part.interrupted.startswith("interrupted at ")
    found, full = times(part), times(whole)
    assert all(full[key] == at for key, at in found.items())
    assert {key for key, (_, end) in full.items() if end < part.end_ps} <= set(found)
    assert set(part.collectives) <= set(whole.collectives)


def test_a_stall_in_a_chain_reads_as_without_chains() -> None:
    work = workload([*layers(0, 3), send(7, 8, 6)], mesh={"pp": 2, "tp": 4})
    late = Program("late", (*layers(0, 3)[:3], collective(8, 2, axes=("tp",), kind="barrier")))
    # Rank 3 runs two operations of its group's chain, then one that the others have not come to.
    stuck = replace(
        work,
        programs=(work.programs[0], late),
        program_of=np.array([0, 0, 0, 1, 0, 0, 0, 0], np.int32),
    )
    never = replace(
        work,
        programs=(Program("waits", tuple(layers(0, 3))), Program("asks", _behind_a_message())),
        program_of=np.array([0, 0, 0, 0, 1, 1, 1, 1], np.int32),
    )
    for case in (stuck, never):
        said = []
        for network in (FairShareNetwork(), OneByOne(FairShareNetwork())):
            with pytest.raises(Exception, match=r"rank") as caught:
                run(RING, job(case), network=network)
            said.append((type(caught.value), str(caught.value)))
        assert said[0] == said[1]


def _behind_a_message() -> tuple[Operation, ...]:
    """A chain that one rank of its group waits before: messages along pp from ranks that send none."""
    return (to_stage(-1, receives=True), *layers(1, 2, 0))


def test_a_rank_that_never_comes_to_a_chain_is_named() -> None:
    program = tuple(layers(0, 3))
    asks = Operation("asked", OpKind.RECV, "", (), size_bytes=8, peer=Peer(1))
    late = (asks, *(replace(o, deps=tuple(dep + 1 for dep in o.deps) or (0,)) for o in program))
    said = []
    for network in (FairShareNetwork(), OneByOne(FairShareNetwork())):
        work = workload([*program], [*late], mesh={"pp": 1, "tp": 2})
        work = replace(work, program_of=np.array([1, 0], np.int32))
        with pytest.raises(StallError) as caught:
            run(one_dimension("Ring", 2), job(work), network=network)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "rank 1 never posts the SEND" in said[0]


# -- what is one -----------------------------------------------------------------------------------------


def chains_of(*operations: Operation) -> list[tuple[int, ...]]:
    program = ready_program(Program("p", operations), DeviceMesh({"dp": 2, "tp": 4}), {})
    return [chain.operations for chain in find_chains(program).values()]


def test_a_chain_goes_on_while_nothing_else_can_matter() -> None:
    assert chains_of(*layers(0, 3)) == [(0, 1, 2, 3, 4, 5, 6)]


def test_a_dependency_that_ended_long_ago_does_not_end_a_chain() -> None:
    operations = layers(0, 3)
    operations[4] = replace(operations[4], deps=(0, 3))
    assert chains_of(*operations) == [(0, 1, 2, 3, 4, 5, 6)]


def test_what_else_waits_ends_a_chain() -> None:
    assert chains_of(*layers(0, 3), to_stage(1, 3)) == [(0, 1, 2, 3), (4, 5, 6)]


def test_what_else_is_waited_for_begins_a_chain() -> None:
    operations = [to_stage(-1, receives=True), *layers(1, 3)]
    operations[4] = replace(operations[4], deps=(0, 3))
    assert chains_of(*operations) == [(1, 2, 3), (4, 5, 6, 7)]


def test_a_stream_that_another_operation_may_hold_is_in_no_chain() -> None:
    assert chains_of(*layers(0, 3), collective(8, axes=("dp",))) == []


def test_collectives_of_another_group_begin_another_chain() -> None:
    operations = layers(0, 4)
    operations[5] = replace(operations[5], axes=("dp",))
    assert chains_of(*operations) == [(0, 1, 2, 3, 4), (5, 6), (7, 8)]
