"""Iterations of a workload one after another in one: for who can't say that an operation waits for another
iteration's, and to check who can.
"""

from __future__ import annotations

from dataclasses import replace

from cosim.workload.program import Operation, Program, Workload


def unrolled(workload: Workload, iterations: int) -> Workload:
    """A workload of which one iteration is ``iterations`` of another: operation o of iteration i is number
    ``i * n + o`` of n.

    What waits for nothing of its own iteration waits for all operations of those that have to end before that
    begins, as far as what began with the last of them hasn't waited for them, too.
    """
    lag = workload.table.longest_lag
    programs = tuple(_unrolled(program, iterations, lag + 1) for program in workload.programs)
    return replace(workload, programs=programs)


def _unrolled(program: Program, iterations: int, opened: int) -> Program:
    count = len(program.operations)
    return Program(
        program.name,
        tuple(
            _at(operation, iteration, count, opened)
            for iteration in range(iterations)
            for operation in program.operations
        ),
    )


def _at(operation: Operation, iteration: int, count: int, opened: int) -> Operation:
    deps = {iteration * count + dep for dep in operation.deps}
    if not deps and iteration >= opened:  # the iteration's beginning
        deps = set(range(max(0, iteration - 2 * opened + 1) * count, (iteration - opened + 1) * count))
    deps |= {(iteration - lag) * count + dep for dep, lag in operation.lagged if lag <= iteration}
    return replace(operation, deps=tuple(sorted(deps)), lagged=())
