"""Laws of growth, by hand: what small programs say of a large one, and what they don't say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.errors import InputError, WorkloadError
from cosim.profiler.file import ClassProgram, Profile
from cosim.profiler.launch import ProfileRequest
from cosim.profiler.lower import KernelRow, ProfiledOperation, merged
from cosim.profiler.scale import extrapolate, profile_scaled


def training(layers: int, hidden: int, ranks: int) -> Profile:
    """A program as a script would give it: layers forward, layers backward with a gather ahead, one
    update."""
    table: dict[KernelRow, int] = {}

    def kernel(name: str, rows: int, columns: int) -> tuple[tuple[int, int], ...]:
        flops = 2 * 64 * rows * columns
        moved = 2 * (64 * rows + rows * columns + 64 * columns)
        key: KernelRow = (name, "matmul", "bf16", flops, moved, 1, 64, rows, columns)
        return ((table.setdefault(key, len(table)), 1),)

    steps = [ProfiledOperation("forward", "compute", (), kernel("embed", 7, hidden))]
    last = 0
    forward = []
    for _ in range(layers):
        steps.append(ProfiledOperation("forward", "compute", (last,), kernel("a", hidden, hidden)))
        steps.append(
            ProfiledOperation(
                "forward", "comm", (last, len(steps) - 1), (), "all_reduce", ("dp",), 128 * hidden
            )
        )
        steps.append(
            ProfiledOperation("forward", "compute", (len(steps) - 1,), kernel("b", hidden, 4 * hidden))
        )
        last = len(steps) - 1
        forward.append(last)
    head = last
    for layer in range(layers):
        size = hidden * hidden // ranks
        after = (last, head) if layer == 0 and head != last else (last,)
        steps.append(ProfiledOperation("backward", "comm", after, (), "all_gather", ("dp",), size))
        steps.append(ProfiledOperation("backward", "compute", (len(steps) - 1,), kernel("c", hidden, hidden)))
        last = len(steps) - 1
    steps.append(
        ProfiledOperation(
            "optimizer", "compute", (forward[0], forward[-1], last), kernel("step", layers, hidden)
        )
    )
    program = ClassProgram({}, tuple(steps))
    return Profile("x", "h100-sxm", {"dp": ranks}, tuple(table), (program,))


def same(one: Profile, other: Profile) -> bool:
    def named(p: Profile, step: ProfiledOperation) -> list[object]:
        return [(p.kernels[k], times) for k, times in step.kernels]

    def spelled(p: Profile) -> list[object]:
        return [
            (s.phase, s.stream, s.deps, s.kind, s.group, s.size_bytes, named(p, s))
            for program in p.programs for s in program.steps
        ]  # fmt: skip

    return spelled(one) == spelled(other) and one.mesh == other.mesh


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.integers(1, 3), st.integers(1, 3), st.integers(8, 60))
def test_layers_are_blocks_put_in(first: int, step: int, more: int, target: int) -> None:
    sizes = [first, first + step, first + step + more]
    made = extrapolate("layers", sizes, [training(n, 64, 8) for n in sizes], max(target, sizes[-1]))
    assert same(made, training(max(target, sizes[-1]), 64, 8))
    assert "proved on" in made.made["scaled"][0]


def test_hidden_size_is_a_polynomial_and_ranks_divide() -> None:
    hidden = [64, 128, 192, 256]
    assert same(
        extrapolate("hidden", hidden, [training(2, h, 8) for h in hidden], 4096), training(2, 4096, 8)
    )
    ranks = [4, 8, 16]
    assert same(extrapolate("ranks", ranks, [training(2, 64, r) for r in ranks], 1024), training(2, 64, 1024))


def test_a_held_out_size_that_does_otherwise_is_refused() -> None:
    profiles = [training(n, 64, 8) for n in (2, 4, 6)]
    profiles[2] = training(7, 64, 8)
    with pytest.raises(WorkloadError, match="no law that holds at 6"):
        extrapolate("layers", [2, 4, 6], profiles, 100)


def test_a_number_off_by_one_at_the_held_out_size_is_refused() -> None:
    profiles = [training(2, h, 8) for h in (64, 128, 192)]
    with pytest.raises(WorkloadError, match="follows no law"):
        extrapolate("hidden", [64, 128, 193], [*profiles[:2], training(2, 192, 8)], 512)


def test_a_share_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(WorkloadError, match="no whole number"):
        extrapolate("ranks", [4, 8, 16], [training(2, 64, r) for r in (4, 8, 16)], 1000)


@pytest.mark.parametrize(
    ("sweep", "predict", "said"),
    [
        (["layers"], ["layers=3"], "not a parameter with sizes"),
        (["layers=2,4"], ["layers=3"], "three or four"),
        (["layers=2,3,4"], [], "no --predict"),
        ([], ["layers=3"], "no --sweep"),
        (["layers=2,3,4"], ["layers=many"], "not a parameter with a size"),
    ],
)
def test_what_cannot_be_a_sweep(sweep: list[str], predict: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        profile_scaled(ProfileRequest("train.py"), sweep, predict, lambda _: None)


def test_merging_keeps_the_work_and_what_others_wait_for() -> None:
    steps = (
        ProfiledOperation("forward", "compute", (), ((0, 1),)),
        ProfiledOperation("forward", "compute", (0,), ((1, 1),)),
        ProfiledOperation("forward", "comm", (1,), (), "all_reduce", ("dp",), 8),
        ProfiledOperation("forward", "compute", (1,), ((0, 1),)),
        ProfiledOperation("forward", "compute", (3,), ((0, 1),)),
        ProfiledOperation("backward", "compute", (2, 4), ((1, 1),)),
    )
    assert merged(steps) == (
        ProfiledOperation("forward", "compute", (), ((0, 1), (1, 1))),
        ProfiledOperation("forward", "comm", (0,), (), "all_reduce", ("dp",), 8),
        ProfiledOperation("forward", "compute", (0,), ((0, 2),)),
        ProfiledOperation("backward", "compute", (1, 2), ((1, 1),)),
    )
