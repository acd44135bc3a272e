"""Ranks of a group must do the same collectives: as many, of the same kind and size, in the same order."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from cosim.errors import MismatchError, WorkloadError
from cosim.units import format_size
from cosim.workload.dependencies import topological_order
from cosim.workload.program import DeviceMesh, Operation, OpKind, Program, Workload

_Group = tuple[int, ...] | tuple[str, ...]
_What = tuple[str, int, int]


def check_collectives(workload: Workload) -> None:
    """Compare what the ranks of each group do.

    Raises
    ------
    WorkloadError
        A group without the rank that names it.
    MismatchError
        Unequal number, kind, size or root; names ranks, operations and sizes.
    """
    if not workload.table.is_kind(OpKind.COLLECTIVE).any():
        return
    programs = [_collectives(program, workload.mesh) for program in workload.programs]
    _check_membership(workload)
    explicit = any(group and isinstance(group[0], int) for found in programs for group in found)
    if not explicit and all(set(found) <= {()} for found in programs):
        _compare(workload, programs, (), np.arange(workload.world_size))
        return
    if not explicit:
        for axes in sorted({group for found in programs for group in found}):
            for ranks in _groups(workload, tuple(str(axis) for axis in axes)):
                _compare(workload, programs, axes, ranks)
        return
    _compare_resolved(workload)


def _collectives(program: Program, mesh: DeviceMesh) -> dict[_Group, list[int]]:
    """Numbers of the collectives of each group: axes in mesh order, ranks, or nothing for all ranks."""
    wide = tuple(name for name, size in mesh.axes.items() if size > 1)
    found: dict[_Group, list[int]] = {}
    for number, op in enumerate(program.operations):
        if op.kind is not OpKind.COLLECTIVE:
            continue
        group: _Group = ()
        if op.ranks is not None:
            group = op.ranks
        elif op.axes:
            group = tuple(name for name in wide if name in op.axes)
            if not group:
                continue  # a group of one
            if group == wide:
                group = ()
        found.setdefault(group, []).append(number)
    return found


def _check_membership(workload: Workload) -> None:
    for index, program in enumerate(workload.programs):
        ranks = np.flatnonzero(workload.program_of == index)
        checked: set[tuple[int, ...]] = set()
        for number, op in enumerate(program.operations):
            if op.kind is not OpKind.COLLECTIVE or op.ranks is None or op.ranks in checked:
                continue
            checked.add(op.ranks)
            outside = ranks[~np.isin(ranks, op.ranks)]
            if len(outside):
                raise WorkloadError(
                    f"rank {outside[0]}: {op.collective} op {number} {op.name!r} is of the group"
                    f" {_shown(op.ranks)}, which rank {outside[0]} isn't in"
                )


def _groups(workload: Workload, axes: tuple[str, ...]) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Ranks of every group over ``axes``; of groups whose ranks run the same programs only the first."""
    sizes = list(workload.mesh.axes.values())
    ranks = np.arange(workload.world_size).reshape(sizes)
    inner = [place for place, name in enumerate(workload.mesh.axes) if name in axes or not axes]
    rows = np.moveaxis(ranks, inner, range(len(sizes) - len(inner), len(sizes)))
    members = rows.reshape(-1, int(np.prod([sizes[place] for place in inner], dtype=np.int64)))
    _, first = np.unique(workload.program_of[members], axis=0, return_index=True)
    return [members[row] for row in sorted(first)]


def _compare_resolved(workload: Workload) -> None:
    """The general case: groups written in several ways, compared as sets of ranks."""
    by_group: dict[tuple[int, ...], dict[int, list[int]]] = defaultdict(dict)
    resolved: dict[tuple[int, tuple[str, ...]], tuple[int, ...]] = {}
    order: dict[tuple[int, ...], tuple[int, ...]] = {}
    for rank in range(workload.world_size):
        for number, op in enumerate(workload.program(rank).operations):
            if op.kind is not OpKind.COLLECTIVE:
                continue
            if op.ranks is not None:
                group = tuple(sorted(op.ranks))
            else:
                key = (rank, op.axes)
                if key not in resolved:
                    group = workload.mesh.group(rank, op.axes)
                    for other in group:
                        resolved[other, op.axes] = group
                group = resolved[key]
            written = group if op.ranks is None else op.ranks
            if order.setdefault(group, written) != written:
                raise MismatchError(
                    f"rank {rank}: op {number} {op.name!r} lists the group {_shown(group)} in another order"
                    f" than rank {min(by_group[group])}: {list(written[:8])}, {list(order[group][:8])}"
                )
            by_group[group].setdefault(rank, []).append(number)
    for group, numbers in by_group.items():
        first = group[0]
        for rank in group[1:]:
            _compare_two(workload, group, first, numbers.get(first, []), rank, numbers.get(rank, []))


def _compare(
    workload: Workload,
    programs: list[dict[_Group, list[int]]],
    group: _Group,
    ranks: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> None:
    """Compare one rank of each program among ``ranks`` with the first rank."""
    present, first_at = np.unique(workload.program_of[ranks], return_index=True)
    members = tuple(int(rank) for rank in ranks)
    mine = int(workload.program_of[ranks[0]])
    for program, place in zip(present, first_at, strict=True):
        if program != mine:
            _compare_two(
                workload,
                members,
                members[0],
                programs[mine].get(group, []),
                members[int(place)],
                programs[int(program)].get(group, []),
            )


def _compare_two(
    workload: Workload,
    group: tuple[int, ...],
    rank: int,
    numbers: list[int],
    other_rank: int,
    other_numbers: list[int],
) -> None:
    program, other = workload.program(rank), workload.program(other_rank)
    if program is other:
        return
    counts = Counter(_what(program.operations[number]) for number in numbers)
    other_counts = Counter(_what(other.operations[number]) for number in other_numbers)
    in_order, fixed = _ordered(program, numbers)
    other_in_order, other_fixed = _ordered(other, other_numbers)
    comparable = fixed and other_fixed
    if counts == other_counts and not comparable:
        return
    for place in range(max(len(in_order), len(other_in_order))):
        here = in_order[place] if place < len(in_order) else None
        there = other_in_order[place] if place < len(other_in_order) else None
        same = (
            here is not None
            and there is not None
            and _what(program.operations[here]) == _what(other.operations[there])
        )
        if not same:
            raise MismatchError(
                f"the group {_shown(group)} disagrees on its collective number {place}:\n"
                f"  {_does(program, rank, here)}\n  {_does(other, other_rank, there)}"
            )


def _what(op: Operation) -> _What:
    return op.collective, op.size_bytes, op.root


def _ordered(program: Program, numbers: list[int]) -> tuple[list[int], bool]:
    """``numbers`` in the order that dependencies fix, and whether they fix it wholly (else by number)."""
    if len(numbers) < 2:
        return numbers, True
    wanted = set(numbers)
    # depth: most of the wanted operations on a way that ends here. All different: a total order.
    depth = [0] * len(program.operations)
    for number in topological_order([op.deps for op in program.operations]):
        before = max((depth[other] for other in program.operations[number].deps), default=0)
        depth[number] = before + (number in wanted)
    fixed = len({depth[number] for number in numbers}) == len(numbers)
    return (sorted(numbers, key=lambda number: depth[number]) if fixed else numbers), fixed


def _does(program: Program, rank: int, number: int | None) -> str:
    if number is None:
        return f"rank {rank}: nothing"
    op = program.operations[number]
    root = f" from position {op.root}" if op.collective == "broadcast" else ""
    return f"rank {rank}: {op.collective} of {format_size(op.size_bytes)}{root} (op {number} {op.name!r})"


def _shown(ranks: tuple[int, ...]) -> str:
    if len(ranks) > 2 and ranks == tuple(range(ranks[0], ranks[-1] + 1)):
        return f"of ranks {ranks[0]} to {ranks[-1]}"
    shown = ", ".join(str(rank) for rank in ranks[:8])
    return f"of ranks {shown}{' ...' if len(ranks) > 8 else ''}"
