import pytest

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.formats.chakra.read import ChakraWorkload
from cosim.formats.chakra.read_messages import read_messages
from cosim.workload.check import check
from cosim.workload.program import COMM_STREAM, CPU_STREAM, OpKind
from tests.inputs import find, needs

CHAKRA = find("chakra")


@needs("chakra/feeder_tests_rank0.et")
def test_a_real_pytorch_trace_is_read_on_as_many_ranks_as_told() -> None:
    path = "feeder_tests_rank0.et"
    with pytest.raises(WorkloadError, match="world_size"):
        ChakraWorkload(path=path).build(Context(CHAKRA))
    with pytest.raises(WorkloadError, match="dependencies: data"):
        ChakraWorkload(path=path, world_size=4).build(Context(CHAKRA))
    workload = ChakraWorkload(path=path, world_size=4, dependencies="data").build(Context(CHAKRA))
    check(workload)
    operations = workload.programs[0].operations
    assert len(operations) == 3664
    collectives = [op for op in operations if op.kind is OpKind.COLLECTIVE]
    assert [(op.collective, op.size_bytes) for op in collectives] == [
        ("broadcast", 212480),
        ("broadcast", 424),
        ("all_reduce", 8196000),
        ("all_reduce", 31502336),
        ("all_reduce", 26255360),
        ("all_reduce", 26550272),
        ("all_reduce", 9724160),
    ]
    assert {op.stream for op in collectives} == {COMM_STREAM}
    assert sum(op.stream == CPU_STREAM for op in operations) == 2448
    assert "14572 x COMP_NODE" in workload.report.read  # 3643 on each of four ranks
    assert "84 x COMM_COLL_NODE" in workload.report.read  # 21


@needs("chakra/custom_ring_allreduce_8npus_1MB")
def test_a_custom_collective_is_read_as_columns() -> None:
    ranks = read_messages(CHAKRA / "custom_ring_allreduce_8npus_1MB")
    assert len(ranks) == 8
    for rank, columns in enumerate(ranks):
        rows = list(zip(*(columns[key] for key in ("kind", "peer", "bytes", "duration_ps")), strict=True))
        assert rows.count(("send", (rank + 1) % 8, 131072, 0)) == 14
        assert rows.count(("recv", (rank - 1) % 8, 131072, 0)) == 14
        assert rows.count(("comp", -1, 0, 7_000_000)) == 7
        assert columns["id"] == sorted(columns["id"])
        assert columns["deps"][1] == (0,)
