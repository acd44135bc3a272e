from pathlib import Path

import pytest

from cosim.context import Context
from cosim.errors import StallError, WorkloadError
from cosim.formats.chakra.read import Chakra
from cosim.formats.chakra.read_messages import read_messages
from cosim.workload.check import check
from cosim.workload.program import COMM_STREAM, CPU_STREAM, OpKind
from tests.inputs import find, needs

pytestmark = needs("chakra")
CHAKRA = find("chakra")


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_microbenchmarks_are_one_collective_of_1_mib(kind: str, ranks: int) -> None:
    workload = Chakra(path=f"microbenchmarks/{kind}/{ranks}npus_1MB").build(Context(CHAKRA))
    check(workload)
    assert (workload.world_size, len(workload.programs)) == (ranks, 1)
    (op,) = workload.programs[0].operations
    assert (op.collective, op.size_bytes, op.ranks, op.axes) == (kind, 2**20, None, ())


@pytest.mark.parametrize("case", ["one_0_1", "incast8", "fanout", "late_recv", "ringar_8_red5", "twoflows"])
def test_point_to_point_traces_pair_up(case: str) -> None:
    check(Chakra(path=f"p2p/{case}").build(Context(CHAKRA)))


def test_a_receive_without_its_send_is_named_before_anything_runs() -> None:
    workload = Chakra(path="p2p/norecv").build(Context(CHAKRA))
    with pytest.raises(StallError) as caught:
        check(workload)
    assert caught.value.waits == (
        "rank 1: RECV op 0 'recv_0_1_t7' 1 kB from rank 0, tag 7: rank 0 never sends it",
    )


def test_a_real_pytorch_trace_is_read_on_as_many_ranks_as_told() -> None:
    path = "feeder_tests_rank0.et"
    with pytest.raises(WorkloadError, match="world_size"):
        Chakra(path=path).build(Context(CHAKRA))
    with pytest.raises(WorkloadError, match="dependencies: data"):
        Chakra(path=path, world_size=4).build(Context(CHAKRA))
    workload = Chakra(path=path, world_size=4, dependencies="data").build(Context(CHAKRA))
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


def test_every_prefix_is_found_from_the_folder_and_from_the_prefix() -> None:
    folder = CHAKRA / "p2p" / "incast8"
    for path in (folder, folder / "incast8", Path("p2p/incast8/incast8")):
        assert Chakra(path=str(path)).build(Context(CHAKRA)).world_size == 9
