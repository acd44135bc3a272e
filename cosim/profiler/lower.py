"""A rank's trace as a program: kernels merged where nothing comes between, groups as mesh axes.

Kernels of a stream that follow each other without another stream waiting for one of them, and without one of
them waiting for another stream, become one operation: nothing outside can tell them apart. Phases stay apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cosim.errors import WorkloadError
from cosim.profiler import axes as mesh_axes
from cosim.workload.program import DeviceMesh

KernelRow = tuple[str, str, str, int, int, int, int, int, int]
"""Operator, kind, number type, FLOPs, bytes, and batch, rows, inner, columns of a matrix product."""


@dataclass(frozen=True)
class ProfiledOperation:
    """An operation of a profile: ``kernels`` (number, times) or a communication of ``size_bytes``.

    ``group`` is a list of axes, or an axis and places on it; ``peer`` an axis and an offset. ``graphed``: a
    CUDA graph launches it.
    """

    phase: str
    stream: str
    deps: tuple[int, ...]
    kernels: tuple[tuple[int, int], ...] = ()
    kind: str = "compute"
    group: tuple[str, ...] | tuple[str, tuple[int, ...]] = ()
    size_bytes: int = 0
    root: int = 0
    peer: tuple[str, int] | None = None
    tag: int = 0
    graphed: bool = False


def unmerged(
    answer: dict[str, Any], mesh: DeviceMesh, table: dict[KernelRow, int]
) -> tuple[ProfiledOperation, ...]:
    """Steps of one rank, each kernel its own. ``table`` numbers kernels across programs and grows.

    Raises
    ------
    WorkloadError
        A group or peer that is not on the mesh.
    """
    numbers = []
    for name, kind, dtype, flops, moved, shape in answer["kernels"]:
        numbers.append(table.setdefault((name, kind, dtype, flops, moved, *shape), len(table)))
    steps = []
    for stream, phase, deps, what, graphed in answer["operations"]:
        if isinstance(what, int):
            steps.append(
                ProfiledOperation(phase, stream, tuple(deps), ((numbers[what], 1),), graphed=graphed)
            )
        elif what is None:
            steps.append(ProfiledOperation(phase, stream, tuple(deps)))
        else:
            made = _communication(answer["rank"], phase, tuple(deps), what, mesh)
            steps.append(replace(made, graphed=graphed))
    return tuple(steps)


def merged(steps: Sequence[ProfiledOperation]) -> tuple[ProfiledOperation, ...]:
    """The same work in as few operations as can't be told apart."""
    segments = _segments(steps)
    home = {row: place for place, members in enumerate(segments) for row in members}
    made = []
    for place, members in enumerate(segments):
        first = steps[members[0]]
        counts: dict[int, int] = {}
        for member in members:
            for kernel, times in steps[member].kernels:
                counts[kernel] = counts.get(kernel, 0) + times
        deps = tuple(sorted({home[d] for m in members for d in steps[m].deps} - {place}))
        made.append(replace(first, deps=deps, kernels=tuple(sorted(counts.items()))))
    return tuple(made)


def _segments(steps: Sequence[ProfiledOperation]) -> list[list[int]]:
    """Numbers of the steps of each operation, in the order of their first ones."""
    watched = [False] * len(steps)  # somebody outside the step's stream waits for it
    for step in steps:
        for other in step.deps:
            if steps[other].stream != step.stream or step.kind != "compute":
                watched[other] = True
    segments: list[list[int]] = []
    open_at: dict[str, int] = {}
    for number, step in enumerate(steps):
        at = open_at.get(step.stream)
        if step.kind == "compute" and at is not None:
            last = segments[at][-1]
            alone = all(steps[d].stream == step.stream for d in step.deps)
            like = steps[last].phase == step.phase and steps[last].graphed == step.graphed
            if alone and like and not watched[last]:
                segments[at].append(number)
                continue
        segments.append([number])
        if step.kind == "compute":
            open_at[step.stream] = len(segments) - 1
    return segments


def _communication(
    rank: int, phase: str, deps: tuple[int, ...], what: Any, mesh: DeviceMesh
) -> ProfiledOperation:
    kind, ranks, size, root, peer, tag = what
    if kind in ("send", "recv"):
        where = mesh_axes.offset(mesh, rank, peer)
        if where is None:
            raise WorkloadError(
                f"rank {rank}: a {kind} with rank {peer}, which no axis of {dict(mesh.axes)} leads to"
            )
        stream = f"{kind} {where[0]}" if kind == "send" else ""
        return ProfiledOperation(phase, stream, deps, kind=kind, size_bytes=size, peer=where, tag=tag)
    axes: tuple[str, ...] | tuple[str, tuple[int, ...]] | None
    if len(ranks) == mesh.world_size:
        axes = tuple(mesh.axes)
    else:
        axes = mesh_axes.group_axes(mesh, ranks) or mesh_axes.positions(mesh, ranks)
    if axes is None:
        raise WorkloadError(
            f"rank {rank}: a {kind} in the group {ranks[:8]}, which is no part of the mesh {dict(mesh.axes)}",
            hint="groups should be rows, planes ... of one mesh of ranks",
        )
    if kind == "shift" and (len(axes) != 1):
        kind = "all_to_all"  # a ring through several axes: as much data, to everybody
    place = axes[0] if len(axes) == 2 and isinstance(axes[1], tuple) else " ".join(str(a) for a in axes)
    return ProfiledOperation(phase, f"comm {place}", deps, kind=kind, group=axes, size_bytes=size, root=root)
