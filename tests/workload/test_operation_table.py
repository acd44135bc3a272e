from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cosim
from cosim.context import HERE
from cosim.errors import CosimError, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.formats.flow_list.read import FlowListWorkload, read_columns, read_flows
from cosim.workload.by_rank import FlowOperations
from cosim.workload.check import check
from cosim.workload.program import NO_STREAM, DeviceMesh, Operation, OpKind, Peer, Program, Workload
from cosim.workload.table import OperationTable, TablePrograms

some = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

PEERS = st.one_of(
    st.none(),
    st.builds(Peer, rank=st.integers(0, 5)),
    st.builds(Peer, axis=st.sampled_from(["a", "b"]), offset=st.integers(-1, 1)),
)
OPERATIONS = st.builds(
    Operation,
    st.sampled_from(["x", "y"]),
    st.sampled_from(OpKind),
    st.sampled_from([NO_STREAM, "comm", "compute"]),
    st.lists(st.integers(0, 4), max_size=3).map(tuple),
    st.integers(-1, 9),
    collective=st.sampled_from(["all_reduce", "barrier", "?"]),
    size_bytes=st.integers(-1, 9),
    peer=PEERS,
    tag=st.integers(0, 2),
    channel=st.integers(-1, 1),
)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    programs = draw(st.lists(st.lists(OPERATIONS, max_size=5), min_size=1, max_size=3))
    program_of = draw(st.lists(st.integers(0, len(programs) - 1), min_size=6, max_size=6))
    made = tuple(Program(f"p{k}", tuple(own)) for k, own in enumerate(programs))
    return Workload("w", DeviceMesh({"a": 2, "b": 3}), made, np.array(program_of, np.int32))


def in_columns(workload: Workload) -> Workload:
    """The same with as few prototypes as there can be, and a column for all that columns can say."""
    rows = [op for program in workload.programs for op in program.operations]
    along = [op.peer if op.peer is not None and op.peer.axis else None for op in rows]
    rest = [
        (op.kind, op.stream, op.collective, peer, op.channel) for op, peer in zip(rows, along, strict=True)
    ]
    kinds = list(dict.fromkeys(rest))
    prototypes = [
        Operation("?", kind, stream, collective=collective, peer=peer, channel=channel)
        for kind, stream, collective, peer, channel in kinds
    ]
    names = sorted({op.name for op in rows})
    table = OperationTable(
        prototypes,
        [kinds.index(one) for one in rest],
        first=np.cumsum([0, *(len(program.operations) for program in workload.programs)]),
        names=names,
        name=[names.index(op.name) for op in rows],
        duration_ps=[op.duration_ps for op in rows],
        size_bytes=[op.size_bytes for op in rows],
        peer=[-1 if op.peer is None or op.peer.rank is None else op.peer.rank for op in rows],
        tag=[op.tag for op in rows],
        deps=(np.cumsum([0, *(len(op.deps) for op in rows)]), [dep for op in rows for dep in op.deps]),
    )
    programs = table.programs([program.name for program in workload.programs])
    return Workload(workload.name, workload.mesh, programs, workload.program_of)


def outcome(workload: Workload) -> str:
    """What a check says, or how a run ends."""
    try:
        check(workload)
        ring = {"kind": "ring", "endpoints": 6, "rate": "80Gbps", "latency": "1us"}
        return cosim.run(
            {"topology": ring, "network": "congestion_unaware", "jobs": [{"workload": workload}]}
        ).records.digest
    except CosimError as error:
        return str(error)


@some
@given(workloads())
def test_operations_are_the_same_in_columns(workload: Workload) -> None:
    table = in_columns(workload)
    assert [program.operations for program in table.programs] == [p.operations for p in workload.programs]
    assert [program.name for program in table.programs] == [p.name for p in workload.programs]


@some
@given(workloads())
def test_workloads_in_columns_are_refused_and_run_alike(workload: Workload) -> None:
    assert outcome(in_columns(workload)) == outcome(workload)


SECONDS = st.one_of(
    st.sampled_from(["0", "0.0", "1e-6", "0.0000000000015", "0.0000000000025", "-0", "1e-13", "4e6"]),
    st.sampled_from(
        ["5.", ".5", ".", "1.2.3", "000000001.5", "12345678", "0.1234567890123", "4611686.018427387904"]
    ),
    st.floats(0, 1e3).map(repr),
)
LINES = st.tuples(
    st.integers(0, 5), st.integers(0, 5), st.just(3), st.integers(0, 9), st.integers(0, 99), SECONDS
)


@some
@given(
    st.lists(LINES, max_size=9),
    st.sampled_from(["{}", " {}  ", "{}\n", "{}\r", "{}\r\n", "\t{}", "{} 1", "{};", "٣{}"]),
    st.integers(0, 3),
)
def test_flow_lists_read_by_columns_and_line_by_line_are_the_same(
    tmp_path: Path, lines: list[tuple[object, ...]], form: str, nodes: int
) -> None:
    path = tmp_path / "flow.txt"
    text = [
        form.format(" ".join(map(str, line))) if line[4] == 7 else " ".join(map(str, line)) for line in lines
    ]
    path.write_text("\n".join([str(len(lines)), *text]), newline="")
    try:
        flows = list(read_flows(path))
    except WorkloadError as error:
        with pytest.raises(WorkloadError) as wrong:
            read_columns(path)
        assert str(wrong.value) == str(error)  # noqa: PT017
        return
    found = FlowListWorkload(path=str(path), nodes=6 + nodes).build(HERE)
    check(found)
    plain = FlowOperations(6 + nodes)
    for at, flow in enumerate(flows):
        waits = plain.wait(flow.src, at, flow.start_ps)
        plain.message(f"flow {at}", flow.src, flow.dst, flow.size_bytes, waits)
    wanted = plain.workload("flow", ReportBuilder())
    assert [(one.name, one.operations) for one in found.programs] == [
        (one.name, one.operations) for one in wanted.programs
    ]
    assert (found.program_of == wanted.program_of).all()
    assert found.report.assumed == wanted.report.assumed


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"like": [0, 1]}, "like[1] is 1; there are 1, from 0"),
        ({"size_bytes": [1]}, "size_bytes has 1 rows, like has 2"),
        ({"first": [0, 1]}, "first should ascend from 0 to 2, but is [0, 1]"),
        ({"first": [0, 3, 2]}, "first should ascend from 0 to 2, but is [0, 3, 2]"),
        ({"names": ["a"], "name": [0, -1]}, "name[1] is -1; there are 1, from 0"),
        ({"deps": ([0, 1], [0])}, "deps should ascend from 0 to 1 in 3 numbers, but is [0, 1]"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, object], says: str) -> None:
    with pytest.raises(WorkloadError) as wrong:
        OperationTable([Operation("a", OpKind.COMPUTE)], **{"like": [0, 0], **columns})  # type: ignore[arg-type]
    assert says in str(wrong.value)


def test_programs_of_a_table_are_a_sequence() -> None:
    table = OperationTable([Operation("a", OpKind.COMPUTE)], [0, 0], first=[0, 1, 2])
    programs = table.programs()
    assert isinstance(programs, TablePrograms)
    assert [one.name for one in programs] == ["program 0", "program 1"]
    assert programs[-1] is programs[1]
    assert [one.name for one in programs[1:]] == ["program 1"]
    with pytest.raises(IndexError):
        programs[2]
