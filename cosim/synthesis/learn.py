"""Learn a model of a workload: which operations are alike, what waits for what, which blocks repeat."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cosim.engine.programs import naming
from cosim.errors import InputError
from cosim.synthesis.blocks import find_blocks
from cosim.synthesis.hide import Step, class_steps, hidden_model
from cosim.synthesis.model import Family, Kind, RankOperations, Role, TraceModel
from cosim.workload.match_messages import peers
from cosim.workload.operation import CPU_STREAM, Operation, OpKind
from cosim.workload.program import Workload

_NUMBER = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
_MOST_REDUCED = 30_000
"""Operations of a program, of which dependencies that others imply are left out: memory is their square."""
_MOST_TIMES = 256
_COMPUTES = (OpKind.COMPUTE, OpKind.MEMORY)


@dataclass(frozen=True, eq=False)
class LearnedRole:
    """Ranks that do the same, before times are put together: ``times_ps`` has int64[ranks or 1, operations],
    ``columns`` the rest, with no times yet.
    """

    ranks: list[int]
    columns: RankOperations
    times_ps: np.ndarray[tuple[int, int], np.dtype[np.int64]]


def learn(workload: Workload, *, hide: int = 1) -> TraceModel:
    """Learn from a workload, as :func:`cosim.synthesis.sources.read_sources` gives it.

    Parameters
    ----------
    workload
        Of all ranks.
    hide
        The least number of operations that share what is kept.

    Raises
    ------
    InputError
        There are fewer operations than ``hide``.
    """
    reader = _Reader(workload)
    roles = reader.roles()
    count = sum(len(role.columns.alike) * len(role.ranks) for role in roles)
    if hide > count:
        raise InputError(
            f"--hide {hide} asks for {hide} operations that share each size, and the traces have {count}",
            hint=f"--hide {max(count // 2, 1)} at most, or more traces",
        )
    families, kinds = reader.families(roles), reader.kinds_that_stand_for_all(roles)
    if hide > 1:
        return hidden_model(hide, workload.world_size, families, kinds, roles)
    times: list[list[int]] = []
    number: dict[object, int] = {}
    found = [_role(role, number, times, n) for n, role in enumerate(roles)]
    return TraceModel(
        hide=1,
        ranks=workload.world_size,
        families=families,
        kinds=kinds,
        times_ps=[_thinned(values) for values in times],
        roles=found,
    )


def steps(workload: Workload, hide: int) -> list[list[Step]]:
    """Each distinct rank's operations, in order, by the names that a hidden model has for them."""
    reader = _Reader(workload)
    roles = reader.roles()
    return class_steps(hide, reader.kinds, roles)


def _thinned(values: list[int]) -> list[int]:
    ordered = sorted(values)
    if len(ordered) <= _MOST_TIMES:
        return ordered
    return [ordered[(2 * n + 1) * len(ordered) // (2 * _MOST_TIMES)] for n in range(_MOST_TIMES)]


def _role(role: LearnedRole, number: dict[object, int], times: list[list[int]], own: int) -> Role:
    """The role with times: those of one place in equal blocks are drawn from together, others are its own."""
    place: dict[int, tuple[int, int, int]] = {}
    for row, blocks in enumerate(role.columns.blocks):
        for begin, end in pairwise(blocks):
            seen: Counter[int] = Counter()
            for at in range(begin, end):
                token = role.columns.alike[at]
                place[at] = row, token, seen[token]
                seen[token] += 1
    chosen = []
    for at in range(len(role.columns.alike)):
        values = role.times_ps[:, at].tolist()
        if not any(values):
            chosen.append(-1)
            continue
        key = (own, *place[at]) if at in place else (own, at)
        one = number.setdefault(key, len(times))
        if one == len(times):
            times.append([])
        times[one] += values
        chosen.append(one)
    operations = role.columns.model_copy(update={"times": chosen})
    return Role(ranks=role.ranks, alike=len(role.times_ps) == 1, operations=operations)


class _Reader:
    """Numbers kinds and families of groups as they are met."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._kinds: dict[tuple[object, ...], int] = {}
        self.kinds: list[Kind] = []
        self._tokens: dict[Kind, int] = {}
        self._families: list[set[tuple[int, ...]]] = []
        self._family_of: dict[tuple[int, ...], int] = {}
        self._orders: dict[int, tuple[list[int], list[list[int]]]] = {}

    def roles(self) -> list[LearnedRole]:
        """Ranks put together where they do the same: kinds, sizes, what waits for what, groups, peers."""
        by_rank = [self._rank(rank) for rank in range(self._workload.world_size)]
        alike: dict[str, list[int]] = defaultdict(list)
        for rank, (columns, _) in enumerate(by_rank):
            alike[columns.model_dump_json()].append(rank)
        roles = []
        for ranks in alike.values():
            columns = by_rank[ranks[0]][0]
            times = np.array([by_rank[rank][1] for rank in ranks], np.int64)
            if (times == times[0]).all():
                times = times[:1]
            columns = columns.model_copy(update={"blocks": self._blocks(columns)})
            roles.append(LearnedRole(ranks, columns, times))
        return roles

    def families(self, roles: Sequence[LearnedRole]) -> list[Family]:
        """Groups' shapes. Those of all ranks grow with these; else those that talk least often, as data
        parallel ones do.
        """
        uses: Counter[int] = Counter()
        for role in roles:
            for kind in role.columns.kind:
                uses[self.kinds[kind].family] += len(role.ranks)
        numbers = range(len(self._families))
        whole = [
            one for one in numbers if all(len(g) == self._workload.world_size for g in self._families[one])
        ]
        grows = whole or sorted(numbers, key=lambda one: (uses[one], one))[:1]
        return [
            Family(groups=[list(group) for group in sorted(groups)], grows=number in grows)
            for number, groups in enumerate(self._families)
        ]

    def kinds_that_stand_for_all(self, roles: Sequence[LearnedRole]) -> list[Kind]:
        """Kinds, with those marked that are there once, after the last block of each role that has them."""
        fits: dict[int, bool] = {}
        for role in roles:
            last = max((row[-1] for row in role.columns.blocks), default=len(role.columns.alike))
            times = Counter(role.columns.alike)
            for at, (kind, token) in enumerate(zip(role.columns.kind, role.columns.alike, strict=True)):
                once = at >= last and times[token] == 1
                fits[kind] = fits.get(kind, True) and once and self._may_stand_for_all(kind)
        return [one.model_copy(update={"all_layers": fits[number]}) for number, one in enumerate(self.kinds)]

    def _may_stand_for_all(self, kind: int) -> bool:
        """What the GPU does for all layers at once takes longer with more of them; issuing it doesn't."""
        one = self.kinds[kind]
        return one.kind == "collective" or (one.kind == "compute" and one.stream != CPU_STREAM)

    def _blocks(self, columns: RankOperations) -> list[list[int]]:
        """Rows of blocks, found in what computes: gradients' buckets needn't be alike."""
        lane = [at for at, kind in enumerate(columns.kind) if self.kinds[kind].kind in ("compute", "memory")]
        place = [*lane, len(columns.kind)]
        rows = find_blocks(np.array([columns.alike[at] for at in lane], np.int32))
        talks = {at for at, kind in enumerate(columns.kind) if self.kinds[kind].kind in ("send", "recv")}
        found = []
        for row in rows:
            ends = [place[at] for at in row]
            if not any(at in talks for at in range(ends[0], ends[-1])):
                found.append(ends)
        return found

    def _rank(self, rank: int) -> tuple[RankOperations, list[int]]:
        number = int(self._workload.program_of[rank])
        operations = self._workload.programs[number].operations
        if number not in self._orders:
            self._orders[number] = _in_order(operations)
        order, back = self._orders[number]
        kinds, alike, times, sizes, towards, tags, roots = ([] for _ in range(7))
        for at in order:
            one = operations[at]
            kind = self._kind(rank, one)
            kinds.append(kind)
            token = self.kinds[kind].model_copy(update={"name": _NUMBER.sub("#", one.name)})
            alike.append(self._tokens.setdefault(token, len(self._tokens)))
            times.append(one.duration_ps if one.kind in _COMPUTES else 0)
            sizes.append(one.size_bytes)
            other = rank if one.peer is None else int(peers(self._workload, np.array([rank]), one.peer)[0])
            towards.append(other - rank)
            tags.append(one.tag)
            roots.append(one.root)
        columns = RankOperations(
            kind=kinds, alike=alike, times=[-1] * len(kinds), size_bytes=sizes, back=back, peer=towards,
            tag=tags, root=roots, blocks=[],
        )  # fmt: skip
        return columns, times

    def _kind(self, rank: int, one: Operation) -> int:
        family = self._family(rank, one) if one.kind is OpKind.COLLECTIVE else -1
        key = (one.name, one.kind, one.stream, one.collective, family, one.access)
        if key not in self._kinds:
            self._kinds[key] = len(self.kinds)
            kind = Kind(
                name=one.name, kind=one.kind.value, stream=one.stream, collective=one.collective,
                family=family, access=one.access,
            )  # fmt: skip
            self.kinds.append(kind)
        return self._kinds[key]

    def _family(self, rank: int, one: Operation) -> int:
        mesh = self._workload.mesh
        ranks = one.ranks
        if ranks is None:
            axes = naming(one, mesh)
            ranks = mesh.group(rank, tuple(map(str, axes))) if axes else (rank,)
        if ranks not in self._family_of:
            self._family_of[ranks] = self._fitting(ranks)
            self._families[self._family_of[ranks]].add(ranks)
        return self._family_of[ranks]

    def _fitting(self, ranks: tuple[int, ...]) -> int:
        """The first family of this shape in which none of the ranks has a group yet, or a new one."""
        for number, groups in enumerate(self._families):
            first = next(iter(groups))
            shape = tuple(rank - first[0] + ranks[0] for rank in first)
            if shape == ranks and not any({*ranks} & {*group} for group in groups):
                return number
        self._families.append(set())
        return len(self._families) - 1


def _in_order(operations: Sequence[Operation]) -> tuple[list[int], list[list[int]]]:
    """Numbers in an order where each waits for earlier ones, as near as can be to the program's; and how far
    back these lie, without those that others imply.
    """
    place: dict[int, int] = {}
    order: list[int] = []
    for first in range(len(operations)):
        stack = [first]
        while stack:
            at = stack[-1]
            if at in place:
                stack.pop()
                continue
            missing = [before for before in sorted(operations[at].deps, reverse=True) if before not in place]
            if missing:
                stack += missing
                continue
            stack.pop()
            place[at] = len(order)
            order.append(at)
    reduce = len(order) <= _MOST_REDUCED
    behind: list[int] = []
    back = []
    for number, at in enumerate(order):
        before = sorted({place[other] for other in operations[at].deps}, reverse=True)
        if reduce:
            implied, kept = 0, []
            for other in before:
                if not implied >> other & 1:
                    kept.append(other)
                    implied |= behind[other]
            behind.append(implied | sum(1 << other for other in kept))
            before = kept
        back.append([number - other for other in before])
    return order, back
