"""Figures of a workload: operations and bytes of each kind, depth, width, durations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.workload.dependencies import topological_order
from cosim.workload.operation import Operation, OpKind
from cosim.workload.program import Workload


@dataclass(frozen=True, eq=False)
class KindFigures:
    """Operations of one kind, of all ranks: how many, their bytes, their durations (int64, ascending)."""

    count: int
    size_bytes: int
    times_ps: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WorkloadFigures:
    """Figures of a workload.

    ``kinds`` are named as ``compute on cpu``, ``all_reduce``, ``send``. ``depth`` is the mean over ranks of
    the longest chain, ``width`` that of the most operations that end chains of one length.
    """

    kinds: dict[str, KindFigures]
    depth: float
    width: float


def figures(workload: Workload) -> WorkloadFigures:
    """Count."""
    times: dict[str, list[int]] = defaultdict(list)
    sizes: Counter[str] = Counter()
    depth = width = 0
    of_program = [_depth_and_width(program.operations) for program in workload.programs]
    for rank in range(workload.world_size):
        number = int(workload.program_of[rank])
        for one in workload.programs[number].operations:
            name = _name(one)
            times[name].append(one.duration_ps)
            sizes[name] += one.size_bytes
        depth += of_program[number][0]
        width += of_program[number][1]
    kinds = {
        name: KindFigures(len(values), sizes[name], np.sort(np.array(values, np.int64)))
        for name, values in sorted(times.items())
    }
    return WorkloadFigures(kinds, depth / workload.world_size, width / workload.world_size)


def _name(one: Operation) -> str:
    if one.kind is OpKind.COMPUTE:
        return f"compute on {one.stream or 'none'}"
    return one.collective or one.access or one.kind.value


def _depth_and_width(operations: Sequence[Operation]) -> tuple[int, int]:
    level = [0] * len(operations)
    for at in topological_order([sorted({*one.deps}) for one in operations]):
        level[at] = 1 + max((level[other] for other in operations[at].deps), default=-1)
    return max(level) + 1, max(Counter(level).values())
