"""Whether the last rank does what the one that stands for it does: the same collectives, as much computation.

A collective that some ranks of a group call and others don't, or in another order, waits for ever on a
cluster: it is an error, with the line of the script. Other computation (uneven shards, what only rank 0 logs)
is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from cosim.errors import Location, WorkloadError
from cosim.profiler import axes
from cosim.workload.program import DeviceMesh

_Call = tuple[str, Any, str]


def counterpart(mesh: DeviceMesh, along: Sequence[str]) -> tuple[int, int]:
    """The last rank, and the one that stands for it; equal where every rank has a class of its own."""
    last = mesh.world_size - 1
    where = mesh.coordinates(last)
    return last, mesh.rank({axis: where[axis] if axis in along else 0 for axis in mesh.axes})


def compare(script: str, mesh: DeviceMesh, stands: dict[str, Any], last: dict[str, Any]) -> str:
    """What the last rank does otherwise; nothing if it does the same.

    Raises
    ------
    WorkloadError
        A collective that the two don't both call.
    """
    mine, theirs = (_calls(answer, mesh) for answer in (stands, last))
    for one, other in zip_longest(mine, theirs):
        if one is None or other is None or one[:2] != other[:2]:
            raise WorkloadError(
                f"ranks {stands['rank']} and {last['rank']} don't call the same collectives:"
                f" {_said(stands, one)}, {_said(last, other)}",
                location=Location(script),
                hint="on a cluster they would wait for each other for ever: every rank of a group has to call"
                " what the group does",
            )
    ours, others = _computed(stands), _computed(last)
    if ours == others:
        return ""
    return (
        f"rank {last['rank']}, profiled too, has {others[0]} kernels and {others[1]} FLOPs where rank"
        f" {stands['rank']}, which stands for it, has {ours[0]} and {ours[1]}"
    )


def _calls(answer: dict[str, Any], mesh: DeviceMesh) -> list[_Call]:
    """Kind, group as axes and line; messages apart, whose ends do different things."""
    return [
        (kind, axes.group_axes(mesh, ranks) or axes.positions(mesh, ranks), line)
        for kind, ranks, line in answer["called"]
        if kind not in ("send", "recv")
    ]


def _said(answer: dict[str, Any], call: _Call | None) -> str:
    if call is None:
        return f"rank {answer['rank']} has no further one"
    return f"rank {answer['rank']} calls {call[0]} at {call[2]}"


def _computed(answer: dict[str, Any]) -> tuple[int, int]:
    """Kernels and FLOPs."""
    rows = [row[3] for row in answer["operations"] if isinstance(row[3], int)]
    return len(rows), sum(answer["kernels"][row][3] for row in rows)
