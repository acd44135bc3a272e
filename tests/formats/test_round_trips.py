"""What is written reads back: import(export(x)) == x, for each pair that loses nothing, field by field.

- csv, parquet (operations): the workload itself.
- csv, parquet (messages), goal, chakra-messages: the flat view (``flat_workload``); goal rounds durations to
  nanoseconds, Chakra to microseconds, and neither has channels; names are each format's own.
- chakra: one program for each rank, groups as ranks.
- htsim, flow-list: the file's own content; a scenario as one of them is not lossless.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.context import HERE, Context
from cosim.engine.records import JobInfo
from cosim.errors import WorkloadError
from cosim.formats.chakra.et_def_pb2 import NodeType
from cosim.formats.chakra.file import read_trace
from cosim.formats.chakra.read import ChakraWorkload, RemoteMemory
from cosim.formats.chakra.write_collectives import ChakraFormat
from cosim.formats.chakra.write_messages import ChakraMessagesFormat
from cosim.formats.flow_list.read import Flow, read_flows
from cosim.formats.flow_list.write import write_flows
from cosim.formats.goal import read as goal_in
from cosim.formats.goal.write import GoalFormat
from cosim.formats.htsim.file import KINDS, HtsimConnection, Matrix, Trigger, read_matrix
from cosim.formats.htsim.write import HtsimFormat, write_matrix
from cosim.formats.tables.read import CsvWorkload, ParquetWorkload
from cosim.formats.tables.write import CsvFormat, ParquetFormat
from cosim.network.fair_share import FairShareNetwork
from cosim.pattern.planner import Planner
from cosim.translation.contract import Format, no_progress
from cosim.translation.flat.view import FlatView
from cosim.translation.loss_report import LossReport
from cosim.translation.source import Source
from cosim.units import PS_PER_NS, PS_PER_US
from cosim.workload.program import DeviceMesh, Operation, OpKind, Peer, Program, Workload
from tests.inputs import find, needs
from tests.translation.flat_workload import flat_workload
from tests.translation.worlds import (
    World,
    collective,
    compute,
    config,
    job,
    one_dimension,
    recv,
    send,
    source_of,
    workload,
    workloads,
    world_source,
    worlds,
)

some = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))

EVERYTHING = (
    Operation(
        'a "quoted", name\nwith all', OpKind.COMPUTE, "cpu", (), duration_ps=3 * PS_PER_US, flops=1.5e12,
        bytes_moved=7.25, phase="forward, then", ahead=2,
    ),
    Operation(
        "é", OpKind.COLLECTIVE, "other", (0,), collective="broadcast", axes=("b",), size_bytes=12345,
        root=1, phase="x",
    ),
    Operation(
        "ranks", OpKind.COLLECTIVE, "comm", (0, 1), collective="all_gather", ranks=(3, 0, 1, 2), size_bytes=9
    ),
    Operation(
        "to", OpKind.SEND, "comm", (2,), size_bytes=77, peer=Peer(axis="b", offset=1), tag=5, channel=3
    ),
    Operation("memory", OpKind.MEMORY, "comm", (2,), duration_ps=17, bytes_moved=4096.0),
    Operation("save", OpKind.MEMORY, "memory", (2,), duration_ps=19, size_bytes=4096, access="store"),
)  # fmt: skip
"""Between them, every field of an operation that a translation meets has another value than its default."""


def every_field() -> Workload:
    """Ranks 0 and 2 send along b, 1 and 3 receive; every field of a workload is set."""
    receive = Operation("from", OpKind.RECV, "", (2,), size_bytes=77, peer=Peer(axis="b", offset=-1), tag=5)
    here = Program("sends", EVERYTHING)
    there = Program(
        "receives", (*EVERYTHING[:3], receive, *(replace(one, deps=()) for one in EVERYTHING[4:]))
    )
    mesh = DeviceMesh({"a xis": 2, "b": 2})
    return Workload("all of it", mesh, (here, there), np.array([0, 1, 0, 1], np.int32), rendezvous=True)


def written(source: Source, to: Format, folder: Path) -> LossReport:
    report = LossReport(type(to).__name__)
    to.examine(source, report)
    folder.mkdir(exist_ok=True)
    to.write(source, folder, report, no_progress)
    return report


def source(work: Workload, **more: Any) -> Source:
    topology = one_dimension("Switch", max(2, work.world_size))
    return source_of(topology, (job(work, **more),), Planner(), FairShareNetwork)


def assert_same(one: Workload, two: Workload) -> None:
    assert one.name == two.name
    assert list(one.mesh.axes.items()) == list(two.mesh.axes.items())
    assert one.rendezvous == two.rendezvous
    assert one.program_of.tolist() == two.program_of.tolist()
    assert [program.name for program in one.programs] == [program.name for program in two.programs]
    assert [program.operations for program in one.programs] == [
        program.operations for program in two.programs
    ]


def test_the_sample_sets_every_field_of_an_operation() -> None:
    default = Operation("", OpKind.COMPUTE)
    for field in fields(Operation):
        if field.name == "lagged":  # what is translated has its iterations unrolled
            continue
        assert any(getattr(op, field.name) != getattr(default, field.name) for op in EVERYTHING), field.name
    assert {field.name for field in fields(Peer)} == {"rank", "axis", "offset"}


TABLES: list[tuple[Callable[..., Format], Callable[..., Any]]] = [
    (CsvFormat, CsvWorkload),
    (ParquetFormat, ParquetWorkload),
]


@pytest.mark.parametrize(("out", "into"), TABLES, ids=["csv", "parquet"])
def test_tables_keep_every_field(out: Any, into: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs Arrow: pip install '.[parquet]'")
    work = every_field()
    report = written(source(work), out(), tmp_path)
    assert report.is_lossless
    assert_same(into(path=str(tmp_path)).build(HERE), work)


@pytest.mark.parametrize(("out", "into"), TABLES, ids=["csv", "parquet"])
def test_tables_keep_what_a_job_says(out: Any, into: Any, tmp_path: Path) -> None:
    from cosim.formats.tables.file import read_table

    info = job(every_field(), [3, 1, 0, 2], name="j\r,k", iterations=7, start_ps=11, weight=2.5, priority=4)
    two = (job(workload(*[(compute(1),)] * 4), name="first"), info)
    written(source_of(one_dimension("Ring", 4), two, Planner(), FairShareNetwork), out(), tmp_path)
    rows = [row for _, row in read_table(tmp_path, "jobs", into.suffix)]
    assert rows[1] == {
        "job": 1, "name": "j\r,k", "workload": "all of it", "iterations": 7, "start_ps": 11, "weight": 2.5,
        "priority": 4, "rendezvous": 1,
    }  # fmt: skip
    endpoints = [row["endpoint"] for _, row in read_table(tmp_path, "ranks", into.suffix) if row["job"] == 1]
    assert endpoints == [3, 1, 0, 2]
    assert_same(into(path=str(tmp_path), job=1).build(HERE), info.workload)


@some
@given(worlds(), st.sampled_from(TABLES))
def test_tables_of_random_jobs(tmp_path_factory: pytest.TempPathFactory, world: World, pair: Any) -> None:
    out, into = pair
    folder = tmp_path_factory.mktemp("tables")
    written(world_source(world, FairShareNetwork), out(), folder)
    for number, info in enumerate(world.jobs):
        assert_same(into(path=str(folder), job=number).build(HERE), info.workload)


@some
@given(worlds(), st.sampled_from(TABLES))
def test_tables_of_messages_are_the_flat_view(
    tmp_path_factory: pytest.TempPathFactory, world: World, pair: Any
) -> None:
    out, into = pair
    folder = tmp_path_factory.mktemp("tables")
    origin = world_source(world, FairShareNetwork)
    written(origin, out(level="messages"), folder)
    view = FlatView(origin)
    for number in range(len(world.jobs)):
        assert_same(into(path=str(folder), job=number).build(HERE), flat_workload(view, number))


def in_chakra(job_info: JobInfo, rank: int, op: Operation) -> Operation:
    """An operation as a trace has it: groups by rank, streams by kind."""
    if op.kind is OpKind.COLLECTIVE:
        work = job_info.workload
        ranks = op.ranks if op.ranks is not None else work.mesh.group(rank, op.axes)
        all_ranks = ranks == tuple(range(work.world_size))
        return replace(op, axes=(), ranks=None if all_ranks else ranks, stream="comm", root=0)
    return op if op.kind is not OpKind.SEND else replace(op, stream="comm")


def whole_us(work: Workload) -> Workload:
    """Durations that Chakra can say: whole microseconds, above 0."""

    def whole(op: Operation) -> Operation:
        if op.kind is not OpKind.COMPUTE:
            return op
        return replace(op, duration_ps=PS_PER_US * (1 + op.duration_ps // PS_PER_US))

    programs = tuple(replace(p, operations=tuple(map(whole, p.operations))) for p in work.programs)
    return replace(work, programs=programs)


@some
@given(st.sampled_from((2, 4, 8)).flatmap(workloads))
def test_chakra_of_random_jobs(tmp_path_factory: pytest.TempPathFactory, work: Workload) -> None:
    work = replace(whole_us(work), rendezvous=False)
    info = job(work)
    folder = tmp_path_factory.mktemp("chakra")
    written(source(work), ChakraFormat(), folder)
    back = ChakraWorkload(path="").build(Context(folder))  # with its comm_groups.json, if there is one
    for rank in range(work.world_size):
        mine = [in_chakra(info, rank, op) for op in work.program(rank).operations]
        mine = mine or [Operation("idle", OpKind.COMPUTE, "")]
        assert list(back.program(rank).operations) == mine


def test_chakra_keeps_every_field_it_has_a_word_for(tmp_path: Path) -> None:
    operations = (
        Operation("first", OpKind.COMPUTE, "cpu", (), duration_ps=3 * PS_PER_US),
        Operation("second", OpKind.COMPUTE, "compute", (0,), duration_ps=5 * PS_PER_US),
        Operation("load", OpKind.MEMORY, "comm", (1,), duration_ps=82_000, bytes_moved=4096),
        Operation(
            "sum", OpKind.COLLECTIVE, "comm", (1, 2), collective="all_reduce", ranks=(1, 0), size_bytes=640
        ),
    )
    there = (*operations, recv(0, 55, 3, tag=7, name="take"))
    mine = (*operations, send(1, 55, 3, tag=7, name="give"))
    work = workload(mine, there, (compute(PS_PER_US, name="alone"),))
    written(source(work), ChakraFormat(prefix="run"), tmp_path)
    back = ChakraWorkload(
        path="run", comm_groups="comm_groups.json", memory=RemoteMemory(latency="1ns", rate="50GB/s")
    ).build(Context(tmp_path))
    assert [back.program(rank).operations for rank in range(3)] == [
        work.program(rank).operations for rank in range(3)
    ]


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
@pytest.mark.parametrize("npus", [4, 16])
def test_collective_traces(small_traces: Path, kind: str, npus: int, tmp_path: Path) -> None:
    first = ChakraWorkload(path=f"{kind}/{npus}npus_1MB").build(
        Context(small_traces / "chakra" / "microbenchmarks")
    )
    report = written(source(first), ChakraFormat(), tmp_path)
    assert [entry.what for entry in report.entries("lost", "approximated")] == ["algorithms of collectives"]
    assert_programs(ChakraWorkload(path="").build(Context(tmp_path)), first)


@pytest.mark.parametrize("to", [ChakraFormat, ChakraMessagesFormat])
@pytest.mark.parametrize(
    "folder", ["incast8", "ringar_8_red5", "twoflows", "late_recv", "fanout", "comp_send"]
)
def test_message_traces(small_traces: Path, folder: str, to: Callable[[], Format], tmp_path: Path) -> None:
    first = ChakraWorkload(path=folder).build(Context(small_traces / "chakra" / "p2p"))
    written(source(first), to(), tmp_path)
    back = ChakraWorkload(path="").build(Context(tmp_path))
    if to is ChakraFormat:
        assert_programs(back, first)
    else:
        assert_messages(back, flat_workload(FlatView(source(first))), PS_PER_US)


def assert_programs(one: Workload, two: Workload) -> None:
    assert one.world_size == two.world_size
    for rank in range(one.world_size):
        assert one.program(rank).operations == two.program(rank).operations


def assert_messages(found: Workload, flat: Workload, quantum_ps: int) -> None:
    """Equal in all that a message-level format says: not names, streams and channels."""
    assert found.world_size == flat.world_size
    for rank in range(flat.world_size):
        mine, theirs = found.program(rank).operations, flat.program(rank).operations
        if not theirs:  # a rank without anything has an operation without effect
            assert [(op.kind, op.duration_ps) for op in mine] == [(OpKind.COMPUTE, 0)]
            continue
        for one, two in zip(mine, theirs, strict=True):
            rounded = (two.duration_ps + quantum_ps // 2) // quantum_ps * quantum_ps
            if quantum_ps == PS_PER_US and two.duration_ps:
                rounded = rounded or PS_PER_NS
            said = (one.kind, set(one.deps), one.size_bytes, one.peer, one.tag, one.duration_ps)
            assert said == (two.kind, set(two.deps), two.size_bytes, two.peer, two.tag, rounded)


@some
@given(worlds())
def test_goal_and_chakra_messages_of_random_jobs(
    tmp_path_factory: pytest.TempPathFactory, world: World
) -> None:
    info = replace(world.jobs[0], endpoints=np.arange(world.jobs[0].workload.world_size, dtype=np.int32))
    origin = source_of(world.topology, (info,), world.planner, FairShareNetwork)
    flat = flat_workload(FlatView(origin))
    folder = tmp_path_factory.mktemp("goal")
    written(origin, GoalFormat(), folder)
    back = goal_in.GoalWorkload(path="schedule.goal").build(Context(folder))
    assert_messages(back, flat, PS_PER_NS)
    assert_cpus_never_meet(back)
    written(origin, ChakraMessagesFormat(), folder / "et")
    assert_messages(
        ChakraWorkload(path="et", world_size=flat.world_size).build(Context(folder)), flat, PS_PER_US
    )


def assert_cpus_never_meet(work: Workload) -> None:
    """Calculations of one cpu wait for each other already: the cpu adds nothing."""
    for program in work.programs:
        before: list[set[int]] = []
        for op in program.operations:
            before.append(set(op.deps).union(*(before[dep] for dep in op.deps)))
        streams: dict[str, int] = {}
        for number, op in enumerate(program.operations):
            if op.kind is OpKind.COMPUTE and op.duration_ps and op.stream in streams:
                assert streams[op.stream] in before[number]
            if op.kind is OpKind.COMPUTE and op.duration_ps:
                streams[op.stream] = number


@needs("goal")
def test_a_real_goal_schedule(tmp_path: Path) -> None:
    first = goal_in.GoalWorkload(path="binary_tree_32.goal").build(Context(find("goal")))
    assert first.world_size == 32
    # a binomial tree: everyone but the root receives once, from who has it
    sends = [op for rank in range(32) for op in first.program(rank).operations if op.kind is OpKind.SEND]
    assert len(sends) == 31
    assert {op.peer.rank for op in sends if op.peer} == set(range(1, 32))
    report = written(source(first), GoalFormat(), tmp_path)
    assert report.is_lossless
    assert_messages(goal_in.GoalWorkload(path="schedule.goal").build(Context(tmp_path)), first, PS_PER_NS)


def test_goal_says_every_word_of_the_grammar(tmp_path: Path) -> None:
    text = """num_ranks 2 // how many
rank 0 { /* two
lines */
a: calc 5 cpu 3
b: send 7b to 1 tag 9 cpu 1 nic 2
b requires a
c: send 8b to 1
c irequires b
}
rank 1 {
recv 7b from 0 tag 9
z: recv 8b from 0 tag 0
}
"""
    (tmp_path / "x.goal").write_text(text)
    work = goal_in.GoalWorkload(path="x.goal").build(Context(tmp_path))
    assert work.program(0).operations == (
        Operation("a", OpKind.COMPUTE, "cpu3", duration_ps=5 * PS_PER_NS),
        Operation("b", OpKind.SEND, "", (0,), size_bytes=7, peer=Peer(1), tag=9),
        Operation("c", OpKind.SEND, "", (0,), size_bytes=8, peer=Peer(1)),
    )
    assert [op.name for op in work.program(1).operations] == ["op0", "z"]
    assert work.report.ignored == ("cpu of a send", "nic of a send")


@pytest.mark.parametrize("lines", ["c irequires b\nd irequires c", "d irequires c\nc irequires b"])
def test_what_begins_with_another_waits_for_all_that_lets_it_begin(tmp_path: Path, lines: str) -> None:
    """Wherever the lines stand."""
    text = "num_ranks 1\nrank 0 {\na: calc 5\nb: calc 5\nc: calc 5\nd: calc 5\nb requires a\n"
    (tmp_path / "x.goal").write_text(f"{text}{lines}\n}}\n")
    work = goal_in.GoalWorkload(path="x.goal").build(Context(tmp_path))
    assert [op.deps for op in work.program(0).operations] == [(), (0,), (0,), (0,)]


def test_operations_that_begin_with_each_other_are_refused(tmp_path: Path) -> None:
    text = "num_ranks 1\nrank 0 {\na: calc 5\nb: calc 5\na irequires b\nb irequires a\n}\n"
    (tmp_path / "x.goal").write_text(text)
    with pytest.raises(WorkloadError, match=r"x.goal:7: operations that begin with each other: .*"):
        goal_in.GoalWorkload(path="x.goal").build(Context(tmp_path))


NUMBERS = st.integers(0, 2**40)


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    nodes = draw(st.integers(2, 9))
    triggers = tuple(
        Trigger(number, draw(st.sampled_from(KINDS)), draw(st.integers(0, 5)))
        for number in sorted(draw(st.sets(st.integers(1, 20), max_size=4)))
    )

    def connection() -> HtsimConnection:
        src = draw(st.integers(0, nodes - 1))
        dst = draw(st.integers(0, nodes - 1).filter(lambda n: n != src))
        by_time = draw(st.booleans())
        return HtsimConnection(
            src, dst, draw(NUMBERS), draw(st.integers(0, 99)), draw(NUMBERS) if by_time else None,
            0 if by_time else draw(st.integers(1, 20)), draw(st.integers(0, 20)), draw(st.integers(0, 20)),
            draw(st.none() | st.integers(0, 9)),
        )  # fmt: skip

    connections = tuple(connection() for _ in range(draw(st.integers(0, 6))))
    failures = ("failure switch_type TOR switch_id 1 link_id 2",) * draw(st.integers(0, 2))
    return Matrix(nodes, connections, triggers, failures)


@settings(some, max_examples=60)
@given(matrices())
def test_connection_matrices(tmp_path_factory: pytest.TempPathFactory, matrix: Matrix) -> None:
    path = tmp_path_factory.mktemp("htsim") / "x.cm"
    text = io.StringIO()
    write_matrix(text, matrix)
    path.write_text(text.getvalue())
    assert read_matrix(path)[0] == matrix


FLOWS = st.builds(
    Flow, st.integers(0, 5), st.integers(6, 9), st.integers(0, 7), st.integers(0, 65535), NUMBERS, NUMBERS
)


@settings(some, max_examples=60)
@given(st.lists(FLOWS))
def test_flow_lists(tmp_path_factory: pytest.TempPathFactory, flows: list[Flow]) -> None:
    path = tmp_path_factory.mktemp("flows") / "flow.txt"
    text = io.StringIO()
    write_flows(text, len(flows), flows, no_progress)
    path.write_text(text.getvalue())
    assert list(read_flows(path)) == flows


def test_a_collective_s_own_settings_need_no_word_in_tables(tmp_path: Path) -> None:
    planner = Planner(config(endpoint_delay="10ns", all_reduce="direct"))
    work = workload(*[(collective(64),)] * 4)
    origin = source_of(one_dimension("Ring", 4), (job(work),), planner, FairShareNetwork)
    left = {entry.what for entry in written(origin, CsvFormat(), tmp_path).entries("left out")}
    assert {"algorithms of collectives", "endpoint delay"} <= left


ATTRIBUTES = {
    "COMP_NODE": {"is_cpu_op": "bool_val"},
    "METADATA_NODE": {"is_cpu_op": "bool_val"},
    "MEM_LOAD_NODE": {"is_cpu_op": "bool_val", "tensor_size": "int64_val"},
    "MEM_STORE_NODE": {"is_cpu_op": "bool_val", "tensor_size": "int64_val"},
    "COMM_COLL_NODE": {
        "is_cpu_op": "bool_val", "comm_type": "int64_val", "comm_size": "int64_val", "pg_name": "string_val",
    },
    "COMM_SEND_NODE": {
        "is_cpu_op": "bool_val", "comm_size": "int64_val", "comm_src": "int32_val", "comm_dst": "int32_val",
        "comm_tag": "int32_val",
    },
}  # fmt: skip
"""What ASTRA-sim's workload layer asks of each node, in the types that upstream's generator gives them."""
ATTRIBUTES["COMM_RECV_NODE"] = ATTRIBUTES["COMM_SEND_NODE"]


@pytest.mark.parametrize("to", [ChakraFormat, ChakraMessagesFormat])
def test_chakra_nodes_have_every_attribute_that_astra_sim_asks_for(
    to: Callable[[], Format], tmp_path: Path
) -> None:
    work = replace(every_field(), rendezvous=False)
    written(source(work, iterations=2, start_ps=5 * PS_PER_US), to(), tmp_path)
    kinds: set[str] = set()
    for rank in range(4):
        metadata, nodes = read_trace(tmp_path / f"trace.{rank}.et")
        assert metadata.version == "0.0.4"
        kinds |= {NodeType.Name(node.type) for node in nodes}
        for node in nodes:
            said = {attribute.name: attribute.WhichOneof("value") for attribute in node.attr}
            assert said == ATTRIBUTES[NodeType.Name(node.type)]
            assert node.name in {op.name for op in work.program(rank).operations} | {
                "start of the job", "iteration", "from", "to",
            }  # fmt: skip
    assert kinds >= {"COMP_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE"}
    assert len(kinds) == (6 if to is ChakraFormat else 4)


def test_htsim_numbers_every_flow_and_starts_each(tmp_path: Path) -> None:
    mine = [(compute(700 * (rank + 1)), collective(4000, 0, kind="all_gather")) for rank in range(4)]
    origin = source(workload(*mine), start_ps=9)
    written(origin, HtsimFormat(), tmp_path)
    matrix, _ = read_matrix(tmp_path / "traffic.cm")
    assert [flow.flow_id for flow in matrix.connections] == list(range(1, 13))
    # a rank's first message leaves after the job's start and its computation
    assert [flow.start_ps for flow in matrix.connections if not flow.trigger] == [709, 1409, 2109, 2809]
    assert {flow.size_bytes for flow in matrix.connections} == {4000}
    assert all((flow.start_ps is None) == bool(flow.trigger) for flow in matrix.connections)
    assert sum(flow.send_done > 0 for flow in matrix.connections) == 8  # all that a csg-htsim program fires
    assert not any(flow.recv_done for flow in matrix.connections)
    assert {trigger.number for trigger in matrix.triggers} == {
        flow.trigger for flow in matrix.connections if flow.trigger
    }


def test_htsim_s_own_limits_are_reported(tmp_path: Path) -> None:
    work = workload(
        (compute(123_456_789), send(1, 3 << 30, 0), send(1, 0, 1, tag=1)),
        (recv(0, 3 << 30), recv(0, 0, tag=1)),
    )
    report = written(source(work), HtsimFormat(), tmp_path)
    assert {entry.what for entry in report.entries("approximated")} == {
        "messages of 0 bytes", "messages of 2 GiB and more", "starts of messages", "dependencies",
    }  # fmt: skip
    sizes = [flow.size_bytes for flow in read_matrix(tmp_path / "traffic.cm")[0].connections]
    assert sizes == [2**31 - 1, 1]


@pytest.mark.parametrize(("out", "into"), TABLES, ids=["csv", "parquet"])
def test_tables_of_messages_keep_channels(out: Any, into: Any, tmp_path: Path) -> None:
    planner = Planner(config(all_gather={"algorithm": "ring", "channels": 3}))
    work = workload(*[(collective(4096, kind="all_gather"),)] * 4)
    origin = source_of(one_dimension("Ring", 4), (job(work),), planner, FairShareNetwork)
    assert written(origin, out(level="messages"), tmp_path).is_lossless
    back = into(path=str(tmp_path)).build(HERE)
    assert_same(back, flat_workload(FlatView(origin)))
    assert {op.channel for op in back.program(0).operations if op.kind is OpKind.SEND} == {0, 1, 2}
