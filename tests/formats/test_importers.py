"""Importers say what is wrong, where, and what would be right; damaged files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.context import Context
from cosim.errors import CosimError, WorkloadError
from cosim.formats.flow_list import read
from cosim.formats.flow_list.read import FlowListWorkload, read_columns
from cosim.formats.goal.read import GoalWorkload
from cosim.formats.htsim.read import HtsimWorkload
from cosim.formats.tables.read import CsvWorkload
from cosim.workload.program import OpKind

GOAL = "num_ranks 2\nrank 0 {\na: send 8b to 1 tag 3\n}\nrank 1 {\nb: recv 8b from 0 tag 3\n}\n"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("num_ranks 2", "num_ranks 0", "x.goal:1: num_ranks is 0"),
        ("num_ranks 2", "num_ranks 600000", "1 to 524287 can be simulated"),
        ("num_ranks 2\n", "", "x.goal:1: a rank before num_ranks"),
        ("rank 1 {", "rank 2 {", "x.goal:5: rank 2 of 2"),
        ("rank 1 {", "rank 0 {", "x.goal:5: rank 0 is there twice"),
        ("to 1", "to 7", "x.goal:3: peer 7 of rank 0"),
        ("to 1", "from 1", "x.goal:3: send ... from"),
        ("8b to", "8 to", "x.goal:3: 'a: send 8 to 1 tag 3' is no operation"),
        ("from 0 tag 3", "from -1 tag 3", "x.goal:6: any source or any tag can't be simulated"),
        ("tag 3\n}\nrank 1", "tag 3\na requires z\n}\nrank 1", "x.goal:4: rank 0 has no operation 'z' above"),
        ("tag 3\n}\nrank 1", "tag 3\na requires a\n}\nrank 1", "x.goal:4: 'a' waits for itself"),
        ("b: recv", "/* b: recv", "x.goal:7: "),
        ("recv 8b from 0 tag 3\n}\n", "recv 8b from 0 tag 3\n", "which begins in line 5, is not closed"),
        ("from 0 tag 3", "from 0 tag 4", "never posts the RECV"),
    ],
)
def test_goal_mistakes(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in GOAL
    (tmp_path / "x.goal").write_text(GOAL.replace(old, new))
    with pytest.raises(CosimError) as wrong:
        GoalWorkload(path="x.goal").build(Context(tmp_path))
    assert says in str(wrong.value)


CM = """Nodes 4
Connections 3
Triggers 1
0->1 id 1 start 0 size 100 recv_done_trigger 1
2->1 id 2 start 7 size 50 recv_done_trigger 1
1->3 id 3 trigger 1 size 9 prio 4
trigger id 1 barrier count 2
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("Nodes 4\n", "", "a connection before Nodes"),
        ("Connections 3", "Connections 2", "Connections says 2, but there are 3"),
        ("count 2", "count 3", "x.cm:6: trigger 1 is a barrier of 3, fired by 2 flows"),
        ("barrier count 2", "oneshot", "x.cm:6: trigger 1 is a oneshot, fired by 2 flows"),
        ("barrier count 2", "multishot", "x.cm:6: trigger 1 is a multishot"),
        ("trigger id 1", "trigger id 2", "x.cm:4: trigger 1 is not there"),
        ("start 7 ", "", "x.cm:5: a connection starts at a time or by a trigger"),
        ("2->1", "1->1", "x.cm:5: a flow from 1 to itself"),
        ("2->1", "4->1", "x.cm:5: source is '4'"),
        ("size 50", "size -50", "x.cm:5: size is '-50'"),
        ("prio 4", "speed 4", "x.cm:6: 'speed'"),
        ("1->3", "0->3", "0 bytes"),
    ],
)
def test_htsim_mistakes(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in CM
    (tmp_path / "x.cm").write_text(CM.replace(old, new))
    if says == "0 bytes":  # not a mistake: htsim's triggers reach any node
        work = HtsimWorkload(path="x.cm").build(Context(tmp_path))
        assert "2 x a message of 0 bytes that carries a trigger to another node" in work.report.assumed
        return
    with pytest.raises(WorkloadError) as wrong:
        HtsimWorkload(path="x.cm").build(Context(tmp_path))
    assert says in str(wrong.value)


def test_a_barrier_waits_for_all_that_fire_it(tmp_path: Path) -> None:
    (tmp_path / "x.cm").write_text(CM)
    work = HtsimWorkload(path="x.cm").build(Context(tmp_path))
    middle = work.program(1).operations
    assert [(op.kind, op.size_bytes, op.deps) for op in middle] == [
        (OpKind.RECV, 100, ()), (OpKind.RECV, 50, ()), (OpKind.SEND, 9, (0, 1)),
    ]  # fmt: skip
    assert [(op.kind, op.duration_ps) for op in work.program(2).operations] == [
        (OpKind.COMPUTE, 7), (OpKind.SEND, 0),
    ]  # fmt: skip
    assert work.report.ignored == ("3 x id of a flow", "prio of a flow (a job has a priority)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "flow.txt: the file is empty"),
        ("2\n0 1 3 100 8 0\n", "flow.txt:2: the file ends after 1 of 2 flows"),
        ("2\n0 1 3 100 8 0\n0 1 3 8 0\n", "flow.txt:3: '0 1 3 8 0'"),
        ("1\n0 1 3 100\n", "flow.txt:2: '0 1 3 100'"),
        ("1\n0 0 3 100 8 0\n", "flow.txt:2: a flow from 0 to 0"),
        ("1\n0 1 3 100 8 1e999999999\n", "flow.txt:2: 8 bytes at 1e999999999 s"),
        ("1\n0 1 3 100 8 -1\n", "flow.txt:2: 8 bytes at -1 s"),
        ("x\n", "flow.txt:1: begins with 'x'"),
    ],
)
def test_flow_list_mistakes(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "flow.txt").write_text(text)
    with pytest.raises(WorkloadError) as wrong:
        FlowListWorkload(path="flow.txt").build(Context(tmp_path))
    assert says in str(wrong.value)


def test_conweave_s_lines_have_no_port_and_prose_may_follow(tmp_path: Path) -> None:
    (tmp_path / "flow.txt").write_text("2\n0 1 3 200000000 2\n1 2 3 200000000 2\n\nFirst line: # of flows\n")
    work = FlowListWorkload(path="flow.txt").build(Context(tmp_path))
    sends = [op for program in work.programs for op in program.operations if op.kind is OpKind.SEND]
    assert [op.size_bytes for op in sends] == [200_000_000] * 2
    waits = [op for program in work.programs for op in program.operations if op.kind is OpKind.COMPUTE]
    assert {op.duration_ps for op in waits} == {2 * 10**12}
    assert "line behind the flows" in work.report.ignored
    assert work.report.doubts == ()


def test_flows_that_ns3_does_not_read_are_a_doubt(tmp_path: Path) -> None:
    (tmp_path / "flow.txt").write_text("1\n0 1 3 100 8 0\n0 1 3 100 8 0\nsrc0 dst0\n")
    work = FlowListWorkload(path="flow.txt").build(Context(tmp_path))
    (doubt,) = work.report.doubts
    assert "has 1 flows more than the 1 that its first line says" in doubt.why
    assert work.report.read == ("flow",)


def test_flows_go_between_the_hosts_of_their_topology(tmp_path: Path) -> None:
    (tmp_path / "topology.txt").write_text(
        "4 1 3\n0\n" + "".join(f"0 {k} 100Gbps 1us 0\n" for k in (1, 2, 3))
    )
    (tmp_path / "flow.txt").write_text("1\n3 1 3 100 8 0\n")
    work = FlowListWorkload(path="flow.txt", topology="topology.txt").build(Context(tmp_path))
    peer = work.program(2).operations[0].peer
    assert peer is not None
    assert peer.rank == 0
    (tmp_path / "flow.txt").write_text("1\n3 0 3 100 8 0\n")
    with pytest.raises(WorkloadError, match="names node 0, which is no host"):
        FlowListWorkload(path="flow.txt", topology="topology.txt").build(Context(tmp_path))


def test_messages_of_a_connection_go_in_order(tmp_path: Path) -> None:
    lines = [
        "0->1 id 1 msg start 0 size 100",
        "0->1 id 2 msg 1 start 0 size 7",
        "0->1 id 1 msg 2 start 0 size 50",
    ]
    (tmp_path / "m.cm").write_text("\n".join(["Nodes 2", "Connections 3", *lines]))
    work = HtsimWorkload(path="m.cm").build(Context(tmp_path))
    sends = [op for op in work.program(0).operations if op.kind is OpKind.SEND]
    assert [(op.size_bytes, len(op.deps)) for op in sends] == [(100, 0), (7, 0), (50, 1)]
    assert work.program(0).operations[sends[2].deps[0]].size_bytes == 100
    assert "3 x message of a connection" in work.report.read
    (tmp_path / "m.cm").write_text("Nodes 2\nConnections 1\n0->1 msg start 0 size 1")
    with pytest.raises(WorkloadError, match=r"m\.cm:3: a message of no connection"):
        HtsimWorkload(path="m.cm").build(Context(tmp_path))


def test_flows_are_the_same_wherever_a_file_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{k % 7} {k % 7 + 1} 3 100 {k + 1} {k}e-6" for k in range(40)]
    (tmp_path / "flow.txt").write_text("\n".join(["40", *rows]))  # no newline at its end
    whole = read_columns(tmp_path / "flow.txt")
    monkeypatch.setattr(read, "_BLOCK", 50)
    cut = read_columns(tmp_path / "flow.txt")
    for name in ("src", "dst", "size_bytes", "start_ps"):
        assert getattr(cut, name).tolist() == getattr(whole, name).tolist()
    assert cut.start_ps.tolist() == [k * 10**6 for k in range(40)]


def test_table_mistakes_name_line_and_cell(tmp_path: Path) -> None:
    import cosim

    cosim.translate(
        cosim.loads(
            "topology: {kind: ring, endpoints: 2, rate: 1Gbps, latency: 1us}\nnetwork: fair_share\n"
            "jobs: [{workload: {kind: periodic, compute: 1us, size: 1kB}}]\n"
        ),
        "csv",
        tmp_path,
    )
    good = (tmp_path / "operations.csv").read_text()
    for old, new, says in (
        (",send,", ",sent,", "operations.csv:3: kind is 'sent'\n  it should be one of compute, memory"),
        (",1000000,", ",1e6,", "operations.csv:2: duration_ps is '1e6'\n  it should be a whole number"),
        (",phase,", ",face,", "operations.csv:1: lacks the column 'phase'"),
        ("0,0,1,", "0,0,2,", "operations.csv:3: op is 2\n  operations are in order; the next is 1"),
        ("0,1,0,", "0,7,0,", "operations.csv:4: program is 7\n  there are 2 of them, from 0"),
    ):
        assert old in good, old
        (tmp_path / "operations.csv").write_text(good.replace(old, new, 1))
        with pytest.raises(WorkloadError) as wrong:
            CsvWorkload(path=".").build(Context(tmp_path))
        assert says in str(wrong.value)
    with pytest.raises(WorkloadError, match="there are 0 jobs of number 3"):
        CsvWorkload(path=".", job=3).build(Context(tmp_path))


@pytest.mark.parametrize(
    "line", ["send {}b to 1", "send 8b to {}", "send 8b to 1 tag {}", "send 8b to 1 cpu {}", "calc {}"]
)
def test_goal_numbers_that_python_will_not_read_are_refused(tmp_path: Path, line: str) -> None:
    """Found by tests.lab.fuzz: more than 4,300 digits were a ValueError."""
    body = f"num_ranks 2\n\nrank 0 {{\nl0: {line.format('9' * 4301)}\n}}\nrank 1 {{\n}}\n"
    (tmp_path / "x.goal").write_text(body)
    with pytest.raises(WorkloadError, match="is no operation"):
        GoalWorkload(path="x.goal").build(Context(tmp_path))
