"""Nothing hangs without a word: whatever can't end, ends in a named error that says who waits for whom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim.context import Context
from cosim.errors import (
    AlgorithmError,
    CosimError,
    MismatchError,
    SimulationError,
    StallError,
    UnreachableError,
    WorkloadError,
)
from cosim.formats.chakra.read import ChakraWorkload
from cosim.network.aware import CongestionAwareNetwork
from cosim.topology.graph import Topology
from cosim.topology.routing import ShortestPaths
from cosim.units import NEVER, PS_PER_US
from cosim.workload.program import Operation, OpKind, Peer, Workload
from tests.engine.worlds import (
    NETWORKS,
    Watched,
    collective,
    compute,
    config,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    recv,
    run,
    send,
    times,
    workload,
)

RANKS_3 = (0, 1, 2)
every_network = pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
either_release = pytest.mark.parametrize("release", ["network", "engine"])


def stall(work: Workload, **settings: Any) -> StallError:
    """The error that a workload ends in; the network is closed all the same."""
    watched = Watched(settings.pop("network", None) or CongestionAwareNetwork())
    with pytest.raises(StallError) as caught:
        run(one_dimension("Ring", max(work.world_size, 2)), job(work), network=watched, **settings)
    assert watched.is_closed
    assert all(wait in str(caught.value) for wait in caught.value.waits[:40])
    return caught.value


@either_release
def test_a_missing_send_names_the_receive_that_waits(release: str) -> None:
    work = workload([compute(PS_PER_US), recv(1, 4096, 0, name="grads", tag=7)], [compute(2 * PS_PER_US)])
    error = stall(work, release=release)
    assert "nothing can happen after 2 us, but 1 of 2 ranks have not finished" in str(error)
    (line,) = error.waits
    assert re.fullmatch(r"rank 0: RECV op 1 'grads', 4.* tag 7: rank 1 never posts the SEND", line)


@either_release
def test_a_missing_receive_is_told_although_every_rank_ends(release: str) -> None:
    error = stall(workload([send(1, 4096, name="acts")], [compute(PS_PER_US)]), release=release)
    assert "1 messages were only posted at one end" in str(error)
    (line,) = error.waits
    assert line.startswith("rank 0: SEND op 0 'acts'")
    assert line.endswith("rank 1 never posts the RECV")


def test_the_trace_with_a_receive_that_is_never_sent_names_it(small_traces: Path) -> None:
    error = stall(
        ChakraWorkload.model_validate({"path": "norecv"}).build(Context(small_traces / "chakra" / "p2p"))
    )
    assert "1 of 4 ranks have not finished" in str(error)
    (line,) = error.waits
    assert re.fullmatch(r"rank 1: RECV op 0 'recv_0_1_t7', .* tag 7: rank 0 never posts the SEND", line)


def test_who_waits_behind_a_missing_message_is_listed() -> None:
    work = workload(
        [recv(1, 64, name="first"), compute(5, 0, name="second"), send(2, 64, 1)], [compute(1)], [recv(0, 64)]
    )
    lines = "\n".join(stall(work).waits)
    assert "rank 0: RECV op 0 'first'" in lines
    assert "rank 0: op 1 'second' waits for op 0 'first'" in lines
    assert "rank 2: RECV op 0 'recv'" in lines


def test_sends_that_wait_for_each_others_request_are_a_named_stall() -> None:
    """With rendezvous a SEND blocks until its RECV; each rank posts its RECV after its SEND."""
    programs = [[send(1, 64), recv(1, 64, 0)], [send(0, 64), recv(0, 64, 0)]]
    error = stall(workload(*programs, rendezvous=True))
    assert len(re.findall(r"SEND op 0 'send'", str(error))) == 2
    assert run(one_dimension("Ring", 2), job(workload(*programs))).num_messages == 2  # eager, it ends


@pytest.mark.parametrize("kind", ["all_reduce", "barrier"])
@either_release
def test_a_rank_that_never_joins_is_named(kind: str, release: str) -> None:
    programs = [[collective(0 if kind == "barrier" else 64, kind=kind, name="sync")]] * 3 + [[compute(5)]]
    error = stall(workload(*programs), release=release)
    size = "0 B" if kind == "barrier" else "64 B"
    assert f"ranks 0, 1, 2: {kind} 'sync', {size} (iteration 0): waits for rank 3 to start it" in error.waits


@either_release
def test_collectives_in_another_order_on_two_groups_name_the_circle(release: str) -> None:
    small, large = {"ranks": (0, 1), "name": "small"}, {"ranks": RANKS_3, "name": "large"}
    work = workload(
        [collective(64, **small), collective(64, 0, **large)],  # type: ignore[arg-type]
        [collective(64, **large), collective(64, 0, **small)],  # type: ignore[arg-type]
        [collective(64, **large)],  # type: ignore[arg-type]
    )
    lines = "\n".join(stall(work, release=release).waits)
    assert "rank 0: all_reduce 'small', 64 B (iteration 0): waits for rank 1 to start it" in lines
    assert "ranks 1, 2: all_reduce 'large', 64 B (iteration 0): waits for rank 0 to start it" in lines
    assert "rank 0: op 1 'large' waits for op 0 'small'" in lines
    assert "rank 1: op 1 'small' waits for op 0 'large'" in lines


def test_collectives_that_hold_each_others_stream_are_named() -> None:
    """Nothing depends on anything, but one collective runs at a time, and lowest goes first."""
    one = [collective(64, ranks=(0, 1), name="small"), collective(64, ranks=RANKS_3, name="large")]
    work = workload(one, one[::-1], [one[1]])
    lines = "\n".join(stall(work).waits)
    assert "rank 0: op 1 'large' waits for stream 'comm', which op 0 'small' holds" in lines
    assert "rank 1: op 1 'small' waits for stream 'comm', which op 0 'large' holds" in lines


def test_operations_that_wait_for_each_other_are_listed() -> None:
    error = stall(workload([compute(5, 1, name="hen"), compute(5, 0, name="egg")], [compute(5)]))
    assert error.waits == (
        "rank 0: op 0 'hen' waits for op 1 'egg'",
        "rank 0: op 1 'egg' waits for op 0 'hen'",
    )


def test_of_several_jobs_the_lines_name_the_job() -> None:
    good, bad = workload([compute(5)]), workload([recv(1, 64)], [compute(5)])
    with pytest.raises(StallError) as caught:
        run(one_dimension("Ring", 4), job(good, name="fine"), job(bad, [2, 3], name="broken"))
    assert caught.value.waits[0].startswith("broken: rank 0: RECV op 0 'recv'")


@pytest.mark.parametrize(
    ("mine", "theirs", "told"),
    [
        ({"size_bytes": 64}, {"size_bytes": 65}, "rank 1: op 0 'collective': all_reduce of 65 bytes"),
        ({"kind": "all_reduce"}, {"kind": "all_gather"}, "rank 1: op 0 'collective': all_gather of 64 bytes"),
        ({"kind": "broadcast", "root": 0}, {"kind": "broadcast", "root": 1}, "root 1"),
    ],
    ids=["size", "kind", "root"],
)
@either_release
def test_ranks_that_disagree_on_a_collective_are_named(
    mine: dict[str, Any], theirs: dict[str, Any], told: str, release: str
) -> None:
    programs = [[collective(**{"size_bytes": 64, **mine})], [collective(**{"size_bytes": 64, **theirs})]]
    watched = Watched(CongestionAwareNetwork())
    with pytest.raises(MismatchError, match=re.escape(told)) as caught:
        run(one_dimension("Ring", 2), job(workload(*programs)), network=watched, release=release)
    assert "rank 0: op 0 'collective'" in str(caught.value)
    assert watched.is_closed


def test_groups_that_differ_name_both_sides() -> None:
    programs = [
        [collective(64, ranks=(0, 1))],
        [collective(64, ranks=RANKS_3)],
        [collective(64, ranks=RANKS_3)],
    ]
    lines = stall(workload(*programs)).waits
    assert "rank 0: all_reduce 'collective', 64 B (iteration 0): waits for rank 1 to start it" in lines
    assert "ranks 1, 2: all_reduce 'collective', 64 B (iteration 0): waits for rank 0 to start it" in lines


def test_one_group_may_be_named_in_several_ways() -> None:
    mesh = {"dp": 2, "tp": 2}
    ways: list[dict[str, Any]] = [{}, {"axes": ("dp", "tp")}, {"axes": ("tp", "dp")}, {"ranks": (0, 1, 2, 3)}]
    work = workload(*[[collective(64, **way), collective(64, 0, **way)] for way in ways], mesh=mesh)
    assert len(run(one_dimension("Ring", 4), job(work)).collectives) == 2
    rows = [
        [collective(64, axes=("tp",)), collective(128, 0, ranks=(0, 2))],
        [collective(64, ranks=(0, 1)), collective(128, 0, axes=("dp",))],
        [collective(64, axes=("tp",)), collective(128, 0, axes=("dp",))],
        [collective(64, ranks=(2, 3)), collective(128, 0, ranks=(1, 3))],
    ]
    records = run(one_dimension("Ring", 4), job(workload(*rows, mesh=mesh)))
    assert sorted(one.ranks for one in records.collectives) == [(0, 1), (0, 2), (1, 3), (2, 3)]


def test_a_send_and_a_receive_of_other_sizes_are_named() -> None:
    with pytest.raises(MismatchError, match=r"rank 0 SENDs 64 bytes to rank 1 .* RECVs 65 bytes"):
        run(one_dimension("Ring", 2), job(workload([send(1, 64)], [recv(0, 65)])))


def island() -> Topology:
    """0 and 1 are linked, 2 stands alone."""
    return Topology(
        name="island",
        num_endpoints=3,
        node_names=("a", "b", "c"),
        link_src=np.array([0, 1], np.int32),
        link_dst=np.array([1, 0], np.int32),
        link_rate_bps=np.array([8e9, 8e9]),
        link_latency_ps=np.array([0, 0], np.int64),
        routing=ShortestPaths(endpoints_forward=True),
    )


@every_network
@either_release
def test_a_partitioned_topology_names_both_ends(model: Any, release: str) -> None:
    for work in (workload([send(2, 64)], [], [recv(0, 64)]), workload(*[[collective(64)]] * 3)):
        with pytest.raises(UnreachableError) as caught:
            run(island(), job(work), network=model(), release=release)
        assert {name for name in ("a", "b", "c") if re.search(rf"\b{name}\b", str(caught.value))} >= {"c"}
    work = workload([send(1, 64)], [recv(0, 64)], [compute(5)])
    assert run(island(), job(work), network=model(), release=release).num_messages == 1


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (Operation("op", OpKind.SEND, size_bytes=5), "no peer"),
        (Operation("op", OpKind.SEND, size_bytes=5, peer=Peer(0)), "no peer"),
        (Operation("op", OpKind.RECV, size_bytes=5, peer=Peer(9)), "no peer"),
        (Operation("op", OpKind.SEND, size_bytes=5, peer=Peer(axis="rank", offset=5)), "no peer"),
        (Operation("op", OpKind.COLLECTIVE, collective="gossip", size_bytes=5), "no collective 'gossip'"),
        (collective(5, axes=("nowhere",)), "no axis 'nowhere'"),
        (collective(5, ranks=(0, 9)), "not made of different ranks"),
        (collective(5, ranks=(0, 0)), "not made of different ranks"),
        (collective(5, ranks=(1,)), "a group that it is not in"),
        (compute(5, 3), "depends on 3"),
        (compute(5, 0), "depends on 0"),
    ],
)
def test_an_operation_that_makes_no_sense_is_an_input_error(operation: Operation, told: str) -> None:
    with pytest.raises(WorkloadError, match=told):
        run(one_dimension("Ring", 2), job(workload([operation], [compute(1)])))


def test_jobs_that_do_not_fit_are_refused() -> None:
    work = workload([compute(5)], [compute(5)])
    ring = one_dimension("Ring", 4)
    for settings, told in (
        ({"endpoints": np.array([0], np.int32)}, "has 2 ranks, but 1 endpoints"),
        ({"endpoints": np.array([0, 4], np.int32)}, r"endpoints 0 to 4; Ring\(4\) has 0 to 3"),
        ({"start_ps": -1}, "time begins at 0"),
        ({"iterations": 1 << 20}, "iterations must stay below"),
    ):
        with pytest.raises(WorkloadError, match=told):
            run(ring, job(work, **settings))


def test_an_algorithm_that_can_not_be_built_is_an_input_error() -> None:
    work = workload(*[[collective(64)]] * 3)
    with pytest.raises(AlgorithmError, match="halving"):
        run(one_dimension("Ring", 3), job(work), collectives=config(all_reduce="halving_doubling"))


def test_time_that_runs_out_is_a_named_error() -> None:
    with pytest.raises(SimulationError, match="53 days"):
        run(one_dimension("Ring", 2), job(workload([compute(NEVER - 5), compute(10, 0)])))
    assert issubclass(SimulationError, CosimError)


def test_an_empty_workload_ends_at_once() -> None:
    records = run(one_dimension("Ring", 2), job(workload([], []), iterations=3))
    assert (len(records.ops), records.end_ps, records.iteration_end_ps[0].shape) == (0, 0, (3, 2))
    late = run(one_dimension("Ring", 2), job(workload([], [compute(5)]), iterations=2, start_ps=7))
    assert late.iteration_end_ps[0].tolist() == [[7, 12], [7, 17]]
    assert times(late)[0, 1, 1, 0] == (12, 17)
