"""Which gradients' exchanges are late where a model's first layers may be: SAPipe's, by buckets.

Gradients are exchanged in the order of the backward pass, those of the first layers last. A bucket is late if
all it carries may be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cosim.errors import WorkloadError
from cosim.models.parts import Layer
from cosim.workload.program import Operation, Program

IsGradient = Callable[[Operation], bool]


def late_exchanges(
    programs: Sequence[Program],
    stages: Sequence[Sequence[Sequence[Layer]]],
    first: int | None,
    is_gradient: IsGradient,
) -> list[list[bool]]:
    """Of each stage's program, which operations exchange gradients of the ``first`` layers and of no other;
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
