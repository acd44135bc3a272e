import contextlib
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.errors import WorkloadError
from cosim.formats.chakra.et_def_pb2 import AttributeProto, Node
from cosim.formats.chakra.file import framed, iter_nodes, read_trace
from tests.formats.chakra.trace_files import node, trace

UINT64 = st.integers(0, 2**64 - 1)
ATTRIBUTES = st.one_of(
    st.builds(AttributeProto, name=st.text(), int64_val=st.integers(-(2**63), 2**63 - 1)),
    st.builds(AttributeProto, name=st.text(), bool_val=st.booleans()),
    st.builds(AttributeProto, name=st.text(), string_val=st.text()),
    st.builds(AttributeProto, name=st.text(), double_val=st.floats(allow_nan=False)),
)
NODES = st.builds(
    Node,
    id=UINT64,
    name=st.text(),
    type=st.integers(0, 7),
    data_deps=st.lists(UINT64, max_size=4),
    ctrl_deps=st.lists(UINT64, max_size=4),
    duration_micros=UINT64,
    attr=st.lists(ATTRIBUTES, max_size=4),
)


def read_bytes(content: bytes) -> list[Node]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.0.et"
        path.write_bytes(content)
        return read_trace(path)[1]


@given(st.lists(NODES, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_nodes_come_back_as_they_were_written(nodes: list[Node]) -> None:
    assert read_bytes(trace(nodes)) == nodes


def test_a_file_cut_at_any_byte_is_refused_or_is_a_whole_prefix() -> None:
    nodes = [node(i, "COMP", us=i, deps=range(i), long_name_attribute="x" * 60) for i in range(4)]
    content = trace(nodes)
    starts = [len(trace(nodes[:count])) for count in range(5)]
    for cut in range(len(content)):
        if cut in starts[1:]:
            assert read_bytes(content[:cut]) == nodes[: starts.index(cut)]
        else:
            with pytest.raises(WorkloadError, match=r"x\.0\.et"):
                read_bytes(content[:cut])


@given(st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_garbage_never_ends_in_another_exception(content: bytes) -> None:
    with contextlib.suppress(WorkloadError):
        read_bytes(content)


def test_the_error_says_which_node_and_at_which_byte(tmp_path: Path) -> None:
    content = trace([node(0, "COMP", us=1), node(1, "COMP", us=1)])
    start = len(trace([node(0, "COMP", us=1)]))
    path = tmp_path / "cut.0.et"
    path.write_bytes(content[:-3])
    with pytest.raises(WorkloadError, match=f"byte {start}: node 1 of the file should have"):
        read_trace(path)


def test_a_huge_length_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "huge.0.et"
    path.write_bytes(b"\xff\xff\xff\xff\x0f" + b"x")
    with pytest.raises(WorkloadError, match="the metadata should have 4294967295 bytes"):
        read_trace(path)


@pytest.mark.parametrize(("content", "message"), [(b"", "empty"), (trace([]), "no nodes")])
def test_a_trace_without_nodes_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "none.0.et"
    path.write_bytes(content)
    with pytest.raises(WorkloadError, match=message):
        list(iter_nodes(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=re.escape(str(tmp_path / "gone.et"))):
        read_trace(tmp_path / "gone.et")


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16383, 16384, 40000])
def test_lengths_of_every_number_of_bytes_are_read(size: int) -> None:
    long = node(3, "COMP", us=1, text="y" * size)
    assert read_bytes(trace([long])) == [long]
    assert framed(long).endswith(long.SerializeToString())
