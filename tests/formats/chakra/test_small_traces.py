"""Small traces of messages and collectives: how they are found and read, and that they are ASTRA-sim's."""

from pathlib import Path

import pytest

from cosim.context import Context
from cosim.errors import StallError
from cosim.formats.chakra.read import ChakraWorkload
from cosim.workload.check import check
from tests.formats.chakra.small_traces import FOLDERS
from tests.inputs import find, needs


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_microbenchmarks_are_one_collective_of_1_mib(small_traces: Path, kind: str, ranks: int) -> None:
    workload = ChakraWorkload(path=f"chakra/microbenchmarks/{kind}/{ranks}npus_1MB").build(
        Context(small_traces)
    )
    check(workload)
    assert (workload.world_size, len(workload.programs)) == (ranks, 1)
    (op,) = workload.programs[0].operations
    assert (op.collective, op.size_bytes, op.ranks, op.axes) == (kind, 2**20, None, ())


@pytest.mark.parametrize("case", ["one_0_1", "incast8", "fanout", "late_recv", "ringar_8_red5", "twoflows"])
def test_point_to_point_traces_pair_up(small_traces: Path, case: str) -> None:
    check(ChakraWorkload(path=f"chakra/p2p/{case}").build(Context(small_traces)))


def test_a_receive_without_its_send_is_named_before_anything_runs(small_traces: Path) -> None:
    workload = ChakraWorkload(path="chakra/p2p/norecv").build(Context(small_traces))
    with pytest.raises(StallError) as caught:
        check(workload)
    assert caught.value.waits == (
        "rank 1: RECV op 0 'recv_0_1_t7' 1 kB from rank 0, tag 7: rank 0 never sends it",
    )


def test_every_prefix_is_found_from_the_folder_and_from_the_prefix(small_traces: Path) -> None:
    folder = small_traces / "chakra" / "p2p" / "incast8"
    for path in (folder, folder / "incast8", Path("chakra/p2p/incast8/incast8")):
        assert ChakraWorkload(path=str(path)).build(Context(small_traces)).world_size == 9


@needs("chakra/p2p", "chakra/microbenchmarks")
def test_they_say_what_the_files_say_that_astra_sim_ran(small_traces: Path) -> None:
    for folder in FOLDERS:
        ours = ChakraWorkload(path=folder).build(Context(small_traces))
        theirs = ChakraWorkload(path=str(find(folder))).build(Context(small_traces))
        assert ours.world_size == theirs.world_size, folder
        for rank in range(ours.world_size):
            assert ours.program(rank).operations == theirs.program(rank).operations, folder
