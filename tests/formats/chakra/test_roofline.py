"""Chakra's computations by a roofline, in closed form, and its traces as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.formats.chakra.et_def_pb2 import AttributeProto, GlobalMetadata, Node, NodeType
from cosim.formats.chakra.file import framed
from cosim.formats.chakra.read import ChakraWorkload
from cosim.workload.program import Operation

SYSTEM = {"roofline-enabled": 1, "peak-perf": 312, "local-mem-bw": 2039}


def nodes() -> list[Node]:
    found = []
    for number, (operations, size) in enumerate([(10**12, 10**9), (10**9, 10**9)]):
        node = Node(id=number, name=f"n{number}", type=NodeType.COMP_NODE)
        node.attr.append(AttributeProto(name="num_ops", int64_val=operations))
        node.attr.append(AttributeProto(name="tensor_size", uint64_val=size))
        node.attr.append(AttributeProto(name="is_cpu_op", bool_val=False))
        found.append(node)
    return found


def operations(folder: Path, name: str, **values: Any) -> tuple[Operation, ...]:
    work = ChakraWorkload(path=name, **values).build(Context(folder))
    return tuple(work.program(0).operations)


def test_operations_and_bytes_take_what_a_system_s_roofline_says(tmp_path: Path) -> None:
    (tmp_path / "t.0.et").write_bytes(b"".join(map(framed, [GlobalMetadata(version="0.0.4"), *nodes()])))
    (tmp_path / "system.json").write_text(json.dumps(SYSTEM))
    for roofline in ("system.json", {"peak_flops": 312e12, "rate": "2039GB/s"}):
        found = operations(tmp_path, "t", roofline=roofline)
        # 1000 operations a byte: the peak's; one a byte: the memory's
        assert [op.duration_ps for op in found] == [
            int(1e12 / 312e12 * 1e9) * 1000,
            int(1e9 / 2039e9 * 1e9) * 1000,
        ]
    (tmp_path / "system.json").write_text(json.dumps(SYSTEM | {"roofline-enabled": 0}))
    assert [op.duration_ps for op in operations(tmp_path, "t", roofline="system.json")] == [1000, 1000]


def test_without_a_roofline_such_a_trace_is_doubtful(tmp_path: Path) -> None:
    (tmp_path / "t.0.et").write_bytes(b"".join(map(framed, [GlobalMetadata(version="0.0.4"), *nodes()])))
    work = ChakraWorkload(path="t").build(Context(tmp_path))
    (doubt,) = work.report.doubts
    assert "num_ops and no duration" in doubt.why


def test_what_the_jsonizer_writes_is_the_same_trace(tmp_path: Path) -> None:
    messages = [GlobalMetadata(version="0.0.4"), *nodes()]
    (tmp_path / "t.0.et").write_bytes(b"".join(map(framed, messages)))
    (tmp_path / "j.0.json").write_text("".join(map(MessageToJson, messages)))
    graph = [
        {
            "Id": 0,
            "Name": "n0",
            "NodeType": 4,
            "data_deps": [],
            "num_ops": 10**12,
            "tensor_size": 10**9,
            "is_cpu_op": False,
        },
        {
            "Id": 1,
            "Name": "n1",
            "NodeType": 4,
            "data_deps": [],
            "num_ops": 10**9,
            "tensor_size": 10**9,
            "is_cpu_op": False,
        },
    ]
    (tmp_path / "g.0.json").write_text(json.dumps({"workload_graph": graph}))
    roofline = {"peak_flops": 312e12, "rate": "2039GB/s"}
    assert operations(tmp_path, "t", roofline=roofline) == operations(tmp_path, "j", roofline=roofline)
    assert operations(tmp_path, "t", roofline=roofline) == operations(tmp_path, "g", roofline=roofline)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", r"t\.0\.json:1: not JSON"),
        ("[]", "the trace has no nodes"),
        ('{"version": "1"}\n{"id": "x"}', r"t\.0\.json:2: no Chakra Node"),
        ('{"workload_graph": [{"Id": 0, "NodeType": "what"}]}', r"t\.0\.json:1: no Chakra Node"),
        ('{"workload_graph": 3}', "no list of nodes"),
    ],
)
def test_damaged_json_says_where(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "t.0.json").write_text(text)
    with pytest.raises(WorkloadError, match=says):
        ChakraWorkload(path="t").build(Context(tmp_path))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("3", "no JSON object"),
        (json.dumps(SYSTEM | {"peak-perf": 0}), "peak-perf and local"),
    ],
)
def test_a_system_without_its_numbers_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "t.0.et").write_bytes(b"".join(map(framed, [GlobalMetadata(version="0.0.4"), *nodes()])))
    (tmp_path / "system.json").write_text(text)
    with pytest.raises(WorkloadError, match=says):
        operations(tmp_path, "t", roofline="system.json")
