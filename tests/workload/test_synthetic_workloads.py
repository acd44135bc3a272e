import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.workload.check import check
from cosim.workload.program import OpKind
from cosim.workload.synthetic import Periodic, Repeated


def test_one_rank_computes_and_sends_the_other_receives() -> None:
    workload = Periodic.model_validate({"compute": "141ms", "size": "1GB"}).build(HERE)
    check(workload)
    sender, receiver = (workload.program(rank).operations for rank in (0, 1))
    assert [(op.kind, op.duration_ps, op.size_bytes) for op in sender] == [
        (OpKind.COMPUTE, 141 * 10**9, 0),
        (OpKind.SEND, 0, 10**9),
    ]
    assert sender[1].deps == (0,)
    assert [(op.kind, op.size_bytes) for op in receiver] == [(OpKind.RECV, 10**9)]


def test_steps_wait_for_each_other_and_pairs_are_neighbours() -> None:
    workload = Periodic.model_validate({"compute": "1us", "size": "1kB", "ranks": 6, "steps": 3}).build(HERE)
    check(workload)
    assert [op.deps for op in workload.program(4).operations] == [(), (0,), (1,), (2,), (3,), (4,)]
    assert [op.deps for op in workload.program(5).operations] == [(), (0,), (1,)]
    assert workload.program_of.tolist() == [0, 1] * 3


def test_a_periodic_job_may_use_a_collective() -> None:
    settings = {"compute": "1us", "size": "1kB", "ranks": 5, "communication": "all_reduce", "steps": 2}
    workload = Periodic.model_validate(settings).build(HERE)
    check(workload)
    assert [op.collective for op in workload.programs[0].operations] == ["", "all_reduce", "", "all_reduce"]


def test_one_collective_is_repeated_in_order() -> None:
    workload = Repeated.model_validate(
        {"collective": "broadcast", "size": "1MiB", "ranks": 8, "repeat": 3, "root": 2}
    ).build(HERE)
    check(workload)
    ops = workload.programs[0].operations
    assert [op.deps for op in ops] == [(), (0,), (1,)]
    assert {(op.collective, op.size_bytes, op.root) for op in ops} == {("broadcast", 2**20, 2)}


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (Periodic, {"compute": "1us", "size": "1kB", "ranks": 3}, "3 is odd"),
        (Periodic, {"compute": "-1us", "size": "1kB"}, "greater than or equal to 0"),
        (Repeated, {"collective": "all_reduce", "ranks": 4}, "all_reduce needs a size"),
        (Repeated, {"collective": "broadcast", "size": 1, "ranks": 4, "root": 4}, "root is 4"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    kind: type[Periodic | Repeated], settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        kind.model_validate(settings)


def test_settings_without_effect_are_named() -> None:
    barrier = Repeated.model_validate({"collective": "barrier", "size": "1kB", "ranks": 4, "root": 0})
    assert [name for name, _ in barrier.idle_settings()] == ["size", "root"]
    check(barrier.build(HERE))
