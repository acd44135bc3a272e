"""A model's training with gradients of its first layers an iteration late: SAPipe's staleness, by buckets.

Gradients are exchanged in the order of the backward pass, those of the first layers last. A bucket is late if
all it carries may be. How few layers are enough is found by a rank whose collectives take what a ring takes
on links of one rate (Y. Chen et al., "SAPipe", NeurIPS 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from cosim.errors import WorkloadError
from cosim.models.parts import Layer
from cosim.units import PS_PER_S
from cosim.workload.program import DeviceMesh, Operation, OpKind, Program, Workload
from cosim.workload.stale_gradients import IsGradient, one_iteration_late
from cosim.workload.steady_period import steady_period_ps

Stages = Sequence[Sequence[Sequence[Layer]]]
"""Layers of each chunk of each stage."""


def with_late_layers(
    workload: Workload,
    stages: Stages,
    first: int | None,
    is_gradient: IsGradient,
    copy_ps: Callable[[int], int],
) -> tuple[Workload, int]:
    """The workload with gradients of the ``first`` layers (None: of all) an iteration late, and how many
    bytes of them the fullest GPU keeps; ``copy_ps``: what predicting as many bytes of weights takes.

    Raises
    ------
    WorkloadError
        There are fewer layers.
    """
    late = late_exchanges(workload.programs, stages, first, is_gradient)
    most = max(
        sum(one.size_bytes for one, is_late in zip(program.operations, chosen, strict=True) if is_late)
        for program, chosen in zip(workload.programs, late, strict=True)
    )
    return one_iteration_late(workload, late, copy_ps(most) if most else 0), most


def fewest_late_layers(
    workload: Workload,
    stages: Stages,
    is_gradient: IsGradient,
    copy_ps: Callable[[int], int],
    rate_bps: float,
) -> int:
    """So many first layers, late, take no longer than all; on links of ``rate_bps``.

    Raises
    ------
    WorkloadError
        Several pipeline stages, which wait for each other.
    """
    if len(stages) > 1:
        raise WorkloadError(
            f"staleness: auto looks at one rank, but there are {len(stages)} pipeline stages",
            hint="staleness: {first: 4}, or 1 for all",
        )

    def period_ps(first: int) -> float:
        program = with_late_layers(workload, stages, first, is_gradient, copy_ps)[0].programs[0]
        times = [_takes_ps(one, workload.mesh, rate_bps) for one in program.operations]
        return steady_period_ps(program, times)

    count = sum(map(len, stages[0]))
    least = period_ps(count)
    return next(first for first in range(count + 1) if period_ps(first) <= least * (1 + 1e-9))


def _takes_ps(one: Operation, mesh: DeviceMesh, rate_bps: float) -> int:
    if one.kind is not OpKind.COLLECTIVE:
        return one.duration_ps
    ranks = math.prod(mesh.axes[axis] for axis in one.axes)
    passes = 2 if one.collective == "all_reduce" else 1
    return round(passes * (ranks - 1) / ranks * one.size_bytes * 8 / rate_bps * PS_PER_S)


def late_exchanges(
    programs: Sequence[Program],
    stages: Stages,
    first: int | None,
    is_gradient: IsGradient,
) -> list[list[bool]]:
    """Which operations of each stage's program exchange gradients of the ``first`` layers and of no other;
    None: of any.

    Raises
    ------
    WorkloadError
        There are fewer layers.
    """
    if first is None:
        return [[is_gradient(one) for one in program.operations] for program in programs]
    count = sum(len(layers) for chunks in stages for layers in chunks)
    if first > count:
        raise WorkloadError(
            f"staleness: the first {first} of {count} layers, embedding and head among them",
            hint=f"up to {count}, or staleness: 1 for all",
        )
    left, early = first, [dict[tuple[str, ...], int]() for _ in stages]
    for chunk in range(len(stages[0])):
        for stage, chunks in enumerate(stages):
            for layer in chunks[chunk][:left]:
                for axes, parameters in layer.parameters.items():
                    early[stage][axes] = early[stage].get(axes, 0) + parameters
            left -= min(left, len(chunks[chunk]))
    return [
        _of_program(program, chunks, may_be, is_gradient)
        for program, chunks, may_be in zip(programs, stages, early, strict=True)
    ]


def _of_program(
    program: Program,
    chunks: Sequence[Sequence[Layer]],
    early: dict[tuple[str, ...], int],
    is_gradient: IsGradient,
) -> list[bool]:
    """The last exchanges over each group of axes, as long as they carry no more than those layers have."""
    late = [False] * len(program.operations)
    exchanges: dict[tuple[str, ...], list[int]] = {}
    for number, one in enumerate(program.operations):
        if is_gradient(one):
            exchanges.setdefault(one.axes, []).append(number)
    for axes, numbers in exchanges.items():
        parameters = sum(layer.parameters.get(axes, 0) for layers in chunks for layer in layers)
        size = sum(program.operations[number].size_bytes for number in numbers)
        carried = 0
        for number in reversed(numbers):
            carried += program.operations[number].size_bytes
            late[number] = carried * parameters <= early.get(axes, 0) * size
    return late
