"""Any training iteration made asynchronous: its gradients used an iteration late, or its weights averaged
now and then. What waited for a gradient's collective waits for what that waited for, and for an earlier one.

Sources: SAPipe (Y. Chen et al., NeurIPS 2022), with all layers stale; local SGD (S. Stich, ICLR 2019), and
the average one period late ("Overlap Local-SGD", ICASSP 2020). Not modelled: accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cosim.workload.dependencies import topological_order
from cosim.workload.program import COMM_STREAM, COMPUTE_STREAM, Operation, OpKind, Program, Workload

IsGradient = Callable[[Operation], bool]
"""Whether an operation exchanges gradients that the optimizer waits for."""


def one_iteration_late(workload: Workload, late: Sequence[Sequence[bool]], predict_ps: int = 0) -> Workload:
    """Gradients are used by the next iteration's optimizer; ``late``: of each program, whether an operation
    exchanges such; ``predict_ps``: what predicting weights takes at the end of each iteration.
    """
    programs = tuple(
        _late(program, chosen, predict_ps) for program, chosen in zip(workload.programs, late, strict=True)
    )
    return replace(workload, programs=programs)


def averaged_every(
    workload: Workload, is_gradient: IsGradient, steps: int, *, late: bool = False
) -> Workload:
    """An iteration is ``steps`` of the workload's without gradients' collectives, then one of as many bytes
    over each group, for the weights: waited for, or, ``late``, by the iteration after the next.
    """
    programs = tuple(_averaged(program, is_gradient, steps, late) for program in workload.programs)
    return replace(workload, programs=programs, minibatches=steps * workload.minibatches)


def _late(program: Program, chosen: Sequence[bool], predict_ps: int) -> Program:
    waits = _without(program.operations, chosen)
    made = list(program.operations)
    for number, one in enumerate(made):
        if not chosen[number]:
            late = tuple((dep, 1) for dep in one.deps if chosen[dep])
            made[number] = replace(one, deps=waits[number], lagged=late)
    last = _sinks(waits, chosen)
    if predict_ps:
        made.append(Operation("predict weights", OpKind.MEMORY, COMPUTE_STREAM, last, duration_ps=predict_ps))
        last = (len(made) - 1,)
    for number, one in enumerate(made):
        if not one.deps:
            made[number] = replace(one, lagged=(*one.lagged, *((dep, 1) for dep in last)))
    return replace(program, operations=tuple(made))


def _averaged(program: Program, is_gradient: IsGradient, steps: int, late: bool) -> Program:
    chosen = [is_gradient(one) for one in program.operations]
    waits = _without(program.operations, chosen)
    kept = [number for number, is_chosen in enumerate(chosen) if not is_chosen]
    place = {number: at for at, number in enumerate(kept)}
    last = [place[number] for number in _sinks(waits, chosen)]
    made: list[Operation] = []
    for step in range(steps):
        base = step * len(kept)
        for number in kept:
            deps = tuple(base + place[dep] for dep in waits[number])
            if not deps and step:
                deps = tuple(base - len(kept) + at for at in last)
            made.append(replace(program.operations[number], deps=deps))
    ended = tuple((steps - 1) * len(kept) + at for at in last)
    sizes: dict[tuple[str, ...], int] = {}
    for one in program.operations:
        if is_gradient(one):
            sizes[one.axes] = sizes.get(one.axes, 0) + one.size_bytes
    averages = range(len(made), len(made) + len(sizes))
    for axes, size in sizes.items():
        made.append(
            Operation(
                "average weights", OpKind.COLLECTIVE, COMM_STREAM, ended, collective="all_reduce", axes=axes,
                size_bytes=size, phase="optimizer",
            )
        )  # fmt: skip
    if late:
        back = (*((number, 1) for number in ended), *((number, 2) for number in averages))
        made = [one if one.deps else replace(one, lagged=back) for one in made]
    return replace(program, operations=tuple(made))


def _without(operations: Sequence[Operation], chosen: Sequence[bool]) -> list[tuple[int, ...]]:
    """What each operation waits for, in the place of what is chosen what that waits for."""
    before: list[set[int]] = [set() for _ in operations]
    for number in topological_order([one.deps for one in operations]):
        for dep in operations[number].deps:
            before[number] |= before[dep] if chosen[dep] else {dep}
    return [tuple(sorted(one)) for one in before]


def _sinks(waits: Sequence[Sequence[int]], chosen: Sequence[bool]) -> tuple[int, ...]:
    """What is not chosen and nothing that is not chosen waits for."""
    awaited = {dep for number, deps in enumerate(waits) if not chosen[number] for dep in deps}
    return tuple(number for number in range(len(waits)) if not chosen[number] and number not in awaited)
