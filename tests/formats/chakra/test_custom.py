from pathlib import Path

import pytest

from cosim.errors import WorkloadError
from cosim.formats.chakra.read_messages import read_messages
from tests.formats.chakra.trace_files import coll, node, recv, send, write_ranks


def test_columns_are_in_order_of_node_id_and_dependencies_are_ids(tmp_path: Path) -> None:
    write_ranks(tmp_path, [recv(30, 1, deps=[10]), node(20, "COMP", deps=[30]), send(10, 1, tag=4)], [])
    (tmp_path / "job.1.et").write_bytes((tmp_path / "job.0.et").read_bytes())
    with pytest.raises(WorkloadError, match=r"job\.1\.et: node 10 .* comm_dst is 1; it should be another"):
        read_messages(tmp_path)
    write_ranks(
        tmp_path, [recv(30, 1, deps=[10]), node(20, "COMP", deps=[30]), send(10, 1, tag=4)], [send(0, 0)]
    )
    first = read_messages(tmp_path)[0]
    assert first["id"] == [10, 20, 30]
    assert first["kind"] == ["send", "comp", "recv"]
    assert first["peer"] == [1, -1, 1]
    assert first["tag"] == [4, 0, 0]
    assert first["bytes"] == [1000, 0, 1000]
    assert first["duration_ps"] == [0, 1000, 0]
    assert first["deps"] == [(), (30,), (10,)]


def test_other_node_types_are_refused(tmp_path: Path) -> None:
    write_ranks(tmp_path, [coll(0)], [send(0, 0)])
    with pytest.raises(WorkloadError, match="SEND, RECV and COMP nodes only"):
        read_messages(tmp_path)


def test_a_cycle_is_refused(tmp_path: Path) -> None:
    write_ranks(tmp_path, [send(0, 1, deps=[1]), recv(1, 1, deps=[0])], [send(0, 0)])
    with pytest.raises(WorkloadError, match="wait for each other"):
        read_messages(tmp_path)
