"""A rank's trace as a program: kernels merged where nothing comes between, groups as mesh axes.

Kernels of a stream that follow each other without another stream waiting for one of them, and without one of
them waiting for another stream, become one operation: nothing outside can tell them apart. Phases stay apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cosim.errors import WorkloadError
from cosim.workload.profiler import axes as mesh_axes
from cosim.workload.program import DeviceMesh

Kernel = tuple[str, str, str, int, int, int, int, int, int]
"""Operator, kind, number type, FLOPs, bytes, and batch, rows, inner, columns of a matrix product."""


@dataclass(frozen=True)
class Step:
    """An operation of a profile: ``kernels`` (number, times) or a communication of ``size_bytes``.

    ``group`` is a list of axes, or an axis and places on it; ``peer`` an axis and an offset.
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


def lower(
    answer: dict[str, Any], mesh: DeviceMesh, table: dict[Kernel, int], *, keep_all: bool = False
) -> tuple[Step, ...]:
    """Steps of one rank. ``table`` numbers kernels across programs and grows.

    Raises
    ------
    WorkloadError
        A group or peer that is not on the mesh.
    """
    rows: list[Any] = answer["operations"]
    numbers = []
    for name, kind, dtype, flops, moved, shape in answer["kernels"]:
        numbers.append(table.setdefault((name, kind, dtype, flops, moved, *shape), len(table)))
    segments = _segments(rows, keep_all=keep_all)
    home = {row: place for place, members in enumerate(segments) for row in members}
    steps = []
    for place, members in enumerate(segments):
        stream, phase, _, what = rows[members[0]]
        deps = tuple(sorted({home[d] for m in members for d in rows[m][2]} - {place}))
        if isinstance(what, int):
            counts: dict[int, int] = {}
            for member in members:
                kernel = numbers[rows[member][3]]
                counts[kernel] = counts.get(kernel, 0) + 1
            steps.append(Step(phase, stream, deps, tuple(sorted(counts.items()))))
        else:
            steps.append(_communication(answer["rank"], stream, phase, deps, what, mesh))
    return tuple(steps)


def _segments(rows: Sequence[Any], *, keep_all: bool) -> list[list[int]]:
    """Numbers of the rows of each operation, in the order of their first rows."""
    watched = [False] * len(rows)  # somebody outside the row's stream waits for it
    for row in rows:
        for other in row[2]:
            if rows[other][0] != row[0] or not isinstance(row[3], int):
                watched[other] = True
    segments: list[list[int]] = []
    open_at: dict[str, int] = {}
    for number, (stream, phase, deps, what) in enumerate(rows):
        waits = any(rows[d][0] != stream for d in deps)
        at = open_at.get(stream)
        if isinstance(what, int) and at is not None and not waits and not keep_all:
            last = segments[at][-1]
            if rows[last][1] == phase and not watched[last] and isinstance(rows[last][3], int):
                segments[at].append(number)
                continue
        segments.append([number])
        open_at[stream] = len(segments) - 1
    return segments


def _communication(
    rank: int, stream: str, phase: str, deps: tuple[int, ...], what: Any, mesh: DeviceMesh
) -> Step:
    kind, ranks, size, root, peer, tag = what
    if kind in ("send", "recv"):
        where = mesh_axes.offset(mesh, rank, peer)
        if where is None:
            raise WorkloadError(f"rank {rank}: a {kind} with rank {peer}, which no axis of {dict(mesh.axes)} leads to")
        return Step(phase, f"{kind} {where[0]}" if kind == "send" else "", deps, kind=kind, size_bytes=size,
                    peer=where, tag=tag)  # fmt: skip
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
    place = axes[0] if len(axes) == 2 and isinstance(axes[1], tuple) else " ".join(str(a) for a in axes)
    del stream
    return Step(phase, f"comm {place}", deps, kind=kind, group=axes, size_bytes=size, root=root)
