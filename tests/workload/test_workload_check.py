from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.errors import MismatchError, StallError, WorkloadError
from cosim.pattern.template import Collective
from cosim.workload.check import COLLECTIVES, check
from cosim.workload.dependencies import find_cycle, topological_order
from cosim.workload.program import DeviceMesh, Operation, OpKind, Peer, Program, Workload


def workload(mesh: dict[str, int], program_of: Sequence[int], *programs: Sequence[Operation]) -> Workload:
    made = tuple(Program(f"p{number}", tuple(ops)) for number, ops in enumerate(programs))
    return Workload("w", DeviceMesh(mesh), made, np.array(program_of, np.int32))


def coll(kind: str = "all_reduce", size: int = 100, deps: tuple[int, ...] = (), **rest: object) -> Operation:
    return Operation("c", OpKind.COLLECTIVE, "comm", deps, collective=kind, size_bytes=size, **rest)  # type: ignore[arg-type]


def send(to: int | Peer, size: int = 100, tag: int = 0) -> Operation:
    peer = Peer(rank=to) if isinstance(to, int) else to
    return Operation("s", OpKind.SEND, "comm", size_bytes=size, tag=tag, peer=peer)


def recv(source: int | Peer, size: int = 100, tag: int = 0) -> Operation:
    peer = Peer(rank=source) if isinstance(source, int) else source
    return Operation("r", OpKind.RECV, "", size_bytes=size, tag=tag, peer=peer)


def test_names_of_collectives_are_those_of_patterns() -> None:
    assert {kind.value for kind in Collective} == COLLECTIVES


WRONG = {
    "depends on operation 5": [Operation("a", OpKind.COMPUTE, deps=(5,))],
    "names a dependency twice": [Operation("a", OpKind.COMPUTE), Operation("b", OpKind.COMPUTE, deps=(0, 0))],
    "op 0 'a' -> op 1 'b' -> op 0 'a'": [
        Operation("a", OpKind.COMPUTE, deps=(1,)),
        Operation("b", OpKind.COMPUTE, deps=(0,)),
    ],
    "negative duration": [Operation("a", OpKind.COMPUTE, duration_ps=-1)],
    "there are: all_gather": [coll("all_redcue")],
    "is over axis 'pp'; the mesh has dp, tp": [coll(axes=("pp",))],
    "has both axes and ranks": [coll(axes=("tp",), ranks=(0, 1))],
    "ranks are 0 to 3": [coll(ranks=(0, 1, 2, 3, 4))],
    "each once": [coll(ranks=(0, 0))],
    "has root 2 in a group of 2": [coll("broadcast", axes=("tp",), root=2)],
    "needs a peer": [Operation("s", OpKind.SEND)],
    "has peer 9, but ranks are 0 to 3": [send(9)],
    "along axis 'pp'": [send(Peer(axis="pp", offset=1))],
    "offset 0": [send(Peer(axis="tp"))],
    "beyond the edge of axis 'tp'": [send(Peer(axis="tp", offset=1)), recv(Peer(axis="tp", offset=-1))],
    "which rank 2 isn't in": [coll(ranks=(0, 1))],
    "has a peer itself": [send(0)],
}


@pytest.mark.parametrize("message", WRONG)
def test_programs_that_make_no_sense_are_refused(message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        check(workload({"dp": 2, "tp": 2}, [0] * 4, WRONG[message]))
    assert message in str(caught.value)


def test_every_rank_needs_a_program_that_is_there() -> None:
    with pytest.raises(WorkloadError, match="the mesh has 4 ranks, 3 have a program"):
        check(workload({"r": 4}, [0] * 3, [coll()]))
    with pytest.raises(WorkloadError, match="rank 1 runs program 1; there are 1"):
        check(workload({"r": 2}, [0, 1], [coll()]))


def test_ranks_of_a_group_must_do_equal_collectives() -> None:
    with pytest.raises(MismatchError) as caught:
        check(workload({"r": 3}, [0, 0, 1], [coll(size=2**20)], [coll(size=2**21)]))
    assert str(caught.value).splitlines() == [
        "the group of ranks 0 to 2 disagrees on its collective number 0:",
        "  rank 0: all_reduce of 1 MiB (op 0 'c')",
        "  rank 2: all_reduce of 2 MiB (op 0 'c')",
    ]
    with pytest.raises(MismatchError, match="rank 1: nothing"):
        check(workload({"r": 2}, [0, 1], [coll(), coll(deps=(0,))], [coll()]))
    with pytest.raises(MismatchError, match="rank 1: all_gather"):
        check(workload({"r": 2}, [0, 1], [coll()], [coll("all_gather")]))


def test_an_order_that_dependencies_fix_must_be_equal() -> None:
    forward = [coll(size=1), coll(size=2, deps=(0,))]
    backward = [coll(size=2), coll(size=1, deps=(0,))]
    by_number_only = [coll(size=2), coll(size=1)]
    renumbered = [coll(size=2, deps=(1,)), coll(size=1)]
    with pytest.raises(MismatchError, match="collective number 0"):
        check(workload({"r": 2}, [0, 1], forward, backward))
    check(workload({"r": 2}, [0, 1], forward, by_number_only))
    check(workload({"r": 2}, [0, 1], forward, renumbered))


def test_groups_along_an_axis_are_compared_each_for_itself() -> None:
    one, two = [coll(axes=("tp",), size=1)], [coll(axes=("tp",), size=2)]
    check(workload({"dp": 2, "tp": 2}, [0, 0, 1, 1], one, two))
    with pytest.raises(MismatchError, match="the group of ranks 0, 1 disagrees"):
        check(workload({"dp": 2, "tp": 2}, [0, 1, 0, 1], one, two))


def test_a_group_may_be_written_as_axes_or_as_ranks() -> None:
    by_axis, by_rank, everyone = coll(axes=("tp",)), coll(ranks=(2, 3)), coll()
    all_axes = coll(axes=("dp", "tp"))
    check(workload({"dp": 2, "tp": 2}, [0, 0, 1, 0], [by_axis, everyone], [by_rank, everyone]))
    check(workload({"dp": 2, "tp": 2}, [0, 0, 1, 0], [everyone], [all_axes]))
    check(workload({"dp": 1, "tp": 2}, [0, 1], [everyone], [by_axis]))
    check(workload({"dp": 1, "tp": 2}, [0, 1], [everyone, coll(axes=("dp",))], [by_axis]))
    with pytest.raises(MismatchError, match="in another order"):
        check(workload({"r": 2}, [0, 1], [coll(ranks=(0, 1))], [coll(ranks=(1, 0))]))
    with pytest.raises(MismatchError, match="rank 3: nothing"):
        check(workload({"r": 4}, [1, 1, 0, 1], [coll(ranks=(2, 3))], []))


def test_each_send_needs_its_receive() -> None:
    check(workload({"r": 2}, [0, 1], [send(1), send(1, tag=3)], [recv(0, tag=3), recv(0)]))
    with pytest.raises(StallError) as caught:
        check(workload({"r": 2}, [0, 1], [coll(), send(1, size=2**20)], [coll(), recv(0, size=5, tag=8)]))
    assert caught.value.waits == (
        "rank 0: SEND op 1 's' 1 MiB to rank 1, tag 0: rank 1 never posts the RECV",
        "rank 1: RECV op 1 'r' 5 B from rank 0, tag 8: rank 0 never sends it",
    )
    with pytest.raises(StallError, match="rank 1 posts only 1 of 2 RECVs"):
        check(workload({"r": 2}, [0, 1], [send(1), send(1)], [recv(0)]))
    with pytest.raises(MismatchError, match="rank 0 sends 5 B to rank 1 with tag 0, which receives 6 B"):
        check(workload({"r": 2}, [0, 1], [send(1, size=5)], [recv(0, size=6)]))


def test_offsets_along_an_axis_pair_up_on_large_meshes() -> None:
    first = [send(Peer(axis="pp", offset=1))]
    middle = [recv(Peer(axis="pp", offset=-1)), send(Peer(axis="pp", offset=1))]
    last = [recv(Peer(axis="pp", offset=-1))]
    program_of = np.repeat([0, 1, 1, 2], 256)
    check(workload({"pp": 4, "dp": 256}, program_of.tolist(), first, middle, last))


@given(st.lists(st.lists(st.integers(0, 11), max_size=3, unique=True), min_size=12, max_size=12))
@settings(deadline=None)
def test_a_cycle_is_found_exactly_where_no_order_exists(deps: list[list[int]]) -> None:
    order, cycle = topological_order(deps), find_cycle(deps)
    assert (len(order) == len(deps)) == (cycle == [])
    for number, other in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        assert other in deps[number]
    place = {number: at for at, number in enumerate(order)}
    assert all(place[other] < place[number] for number in order for other in deps[number])


def test_a_peer_may_be_named_by_its_rank_or_along_an_axis() -> None:
    ahead = Peer(axis="tp", offset=1)
    behind = Peer(axis="tp", offset=-1)
    check(workload({"tp": 2}, [0, 1], [send(ahead), send(1), send(ahead)], [recv(behind)] * 3))
    with pytest.raises(StallError, match="RECV op 3"):
        check(workload({"tp": 2}, [0, 1], [send(ahead), send(1), send(ahead)], [recv(behind)] * 4))
