"""What is written before a run, beside the programs that it is written from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.engine.columns import NONE, EngineColumns
from cosim.engine.flow_log import FlowLog
from cosim.engine.programs import ready_job
from cosim.engine.records import JobInfo
from cosim.engine.tables import Tables
from cosim.errors import WorkloadError
from cosim.topology.grid import Dimension, grid_topology
from cosim.workload.operation import NO_STREAM
from cosim.workload.program import DeviceMesh, Operation, OpKind, Peer, Program, Workload

MESH = DeviceMesh({"a": 2, "b": 3})
PEERS = st.one_of(
    st.none(),
    st.builds(Peer, rank=st.integers(0, 6)),
    st.builds(Peer, axis=st.sampled_from(["a", "b", "c"]), offset=st.integers(-1, 1)),
)
OPERATIONS = st.builds(
    Operation,
    st.just("x"),
    st.sampled_from([OpKind.COMPUTE, OpKind.SEND, OpKind.RECV]),
    st.sampled_from([NO_STREAM, "comm", "compute"]),
    size_bytes=st.integers(0, 2),
    duration_ps=st.integers(0, 9),
    peer=PEERS,
    tag=st.integers(0, 1),
    channel=st.integers(0, 1),
)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    programs = []
    for number in range(draw(st.integers(1, 3))):
        operations = draw(st.lists(OPERATIONS, max_size=6))
        every = st.integers(0, max(len(operations) - 1, 0))
        made = []
        for at, one in enumerate(operations):
            deps = [dep for dep in draw(st.lists(every, max_size=4)) if dep != at]
            late = draw(st.lists(st.tuples(every, st.integers(1, 2)), max_size=2))
            made.append(replace(one, deps=tuple(deps), lagged=tuple(late)))
        programs.append(Program(f"p{number}", tuple(made)))
    program_of = draw(st.lists(st.integers(0, len(programs) - 1), min_size=6, max_size=6))
    return Workload("w", MESH, programs, np.array(program_of, np.int32), rendezvous=draw(st.booleans()))


def written(workload: Workload) -> dict[str, Any]:
    """The columns of a second job of this workload."""
    topology = grid_topology([Dimension("Switch", 6, 1e9, 0)])
    info = JobInfo("w", workload, np.arange(6, dtype=np.int32)[::-1].copy(), 1, 0)
    columns = EngineColumns()
    Tables(columns, FlowLog(columns), [ready_job(number, info, topology) for number in range(2)])
    return vars(columns) | {"rank0": 6, "program0": len(workload.programs)}


@settings(max_examples=150)
@given(workloads())
def test_each_operation_has_what_its_program_says_in_every_slot(workload: Workload) -> None:
    columns = written(workload)
    longest = max((lag for p in workload.programs for op in p.operations for _, lag in op.lagged), default=0)
    slots = 2 * longest + 1
    for number, program in enumerate(workload.programs):
        mine = columns["programs"][columns["program0"] + number]
        length = len(program.operations)
        streams = sorted({op.stream for op in program.operations} - {NO_STREAM})
        assert (mine["ops"], mine["lanes"]) == (length, len(streams) + 1)
        lane = [streams.index(op.stream) if op.stream else len(streams) for op in program.operations]
        base = columns["lane_base"][mine["lane0"] :][: len(streams) + 1].tolist()
        assert base == [slots * sum(one < k for one in lane) for k in range(len(streams) + 1)]
        roots = columns["roots"][mine["root0"] :][: mine["roots"]].tolist()
        assert roots == [at for at, op in enumerate(program.operations) if not op.deps]
        for slot in range(slots):
            for at, op in enumerate(program.operations):
                row = columns["ops"][mine["op0"] + slot * length + at]
                said = {"duration": op.duration_ps, "size": op.size_bytes, "number": at, "slot": slot}
                said |= {"lane": lane[at], "early": sum(lag > slot for _, lag in {*op.lagged})}
                # What waits for nothing of its iteration waits for that to begin.
                said["waits"] = (len({*op.deps}) or 1) + len({*op.lagged})
                assert {name: int(row[name]) for name in said} == said
                after = columns["successors"][row["first"] : row["last"]].tolist()
                assert sorted(after) == sorted(
                    [slot * length + k for k, one in enumerate(program.operations) if at in one.deps]
                    + [
                        (slot + lag) % slots * length + k
                        for k, one in enumerate(program.operations)
                        for dep, lag in {*one.lagged}
                        if dep == at
                    ]
                )


def ends(workload: Workload, columns: dict[str, Any]) -> Iterator[tuple[Operation, int, int, Any]]:
    """Of each SEND and RECV of a rank: the operation, the rank, who is at the other end (-1: nobody), its
    port.
    """
    for rank in range(6):
        row = columns["ranks"][columns["rank0"] + rank]
        for at, op in enumerate(workload.program(rank).operations):
            if op.kind is OpKind.COMPUTE:
                continue
            peer, said = -1, op.peer or Peer()
            if said.rank is not None:
                peer = said.rank
            elif said.axis is not None and said.axis in MESH.axes:
                where = MESH.coordinates(rank)
                where[said.axis] += said.offset
                if 0 <= where[said.axis] < MESH.axes[said.axis]:
                    peer = MESH.rank(where)
            one = columns["ops"][columns["programs"]["op0"][row["program"]] + at]
            known = 0 <= peer < 6 and peer != rank
            yield op, rank, peer if known else -1, columns["ports"][row["port0"] + one["ref"]]


@settings(max_examples=150)
@given(workloads())
def test_ends_of_messages_meet_by_sender_receiver_and_tag(workload: Workload) -> None:
    columns = written(workload)
    found = []
    for op, rank, peer, port in ends(workload, columns):
        assert port["peer"] == peer
        sends = op.kind is OpKind.SEND
        if peer < 0:
            assert (port["channel"], port["binding"]) == (NONE, NONE)
            continue
        ranks = (rank, peer) if sends else (peer, rank)
        found.append((port["channel"], (*ranks, op.tag)))
        if not sends and not workload.rendezvous:
            assert port["binding"] == NONE
            continue
        info = int(columns["info"][columns["bindings"]["info"][port["binding"]]])
        assert info & ((1 << 36) - 1) == (op.size_bytes if sends else 8192)
    for (one, said), (other, also) in combinations(found, 2):
        assert (one == other) == (said == also)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"deps": (0, 2)}, "operation 1 'x' depends on 2, which is not another of its 2 operations"),
        ({"deps": (1,)}, "operation 1 'x' depends on 1, which is not another"),
        ({"lagged": ((-1, 1),)}, "operation 1 'x' depends on -1, which is not another"),
    ],
)
def test_a_dependency_on_nothing_is_refused(wrong: dict[str, Any], says: str) -> None:
    one = Operation("x", OpKind.COMPUTE)
    programs = (Program("p", (one,)), Program("q", (one, replace(one, **wrong))))
    with pytest.raises(WorkloadError, match=says):
        written(Workload("w", MESH, programs, np.array([0, 1, 1, 1, 1, 1], np.int32)))


def test_ranks_of_jobs_lie_one_after_another_each_with_its_device_and_its_rows() -> None:
    topology = grid_topology([Dimension("Switch", 6, 1e9, 0)])
    programs = [
        Program(f"p{count}", (Operation("x", OpKind.COMPUTE, NO_STREAM),) * count) for count in (1, 3)
    ]
    workload = Workload("w", MESH, programs, np.array([0, 1, 1, 0, 0, 1], np.int32))
    devices = np.array([2, 0, 1, 2, 0, NONE], np.int32)
    endpoints = np.arange(6, dtype=np.int32)[::-1].copy()
    info = JobInfo("w", workload, endpoints, 2, 0, devices=devices)
    columns = EngineColumns()
    Tables(columns, FlowLog(columns), [ready_job(number, info, topology) for number in range(3)])
    ranks = columns.ranks[: columns.used("ranks")]
    assert ranks["job"].tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert ranks["number"].tolist() == [*range(6)] * 3
    assert ranks["device"].tolist() == devices[endpoints].tolist() * 3
    operations = np.array([1, 3, 3, 1, 1, 3] * 3)
    assert ranks["cell0"].tolist() == (np.cumsum(operations) - operations).tolist()
    assert (ranks["iteration"] == NONE).all()
    assert (columns.cells["started"][: operations.sum()] == NONE).all()
    assert (columns.lanes["busy"][: columns.used("lanes")] == NONE).all()
    assert (columns.traits[:6] == NONE).all()
