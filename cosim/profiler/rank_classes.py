"""Which ranks do the same: the mesh that their groups are made of, and who sends messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cosim.errors import WorkloadError
from cosim.profiler import axes as mesh_axes
from cosim.workload.program import DeviceMesh

MOST_CLASSES = 64


def mesh_of(world_size: int, answers: Any) -> DeviceMesh:
    """The axes that groups are made of.

    Two ranks that talk within a larger group are no axis: the group says what that is. All ranks together say
    nothing of the groups within, but of messages.
    """
    answers = list(answers)
    dims = mesh_axes.named_dims(mesh for answer in answers for mesh in answer["meshes"])
    groups, messages = _talk(answers)
    larger = [group for group in groups if len(group) > 2 and mesh_axes.grid(group) is not None]
    parts = [group for group in larger if len(group) < world_size]
    found = {group for group in groups if len(group) > 2 or not _is_within(group, parts)}
    found |= {pair for pair in messages if not _is_within(pair, larger)}
    return mesh_axes.infer_mesh(world_size, found, dims)


def _talk(answers: Any) -> tuple[set[tuple[int, ...]], set[tuple[int, ...]]]:
    """Groups that call collectives, or send messages, in them; pairs of ranks that send messages."""
    groups: set[tuple[int, ...]] = set()
    messages: set[tuple[int, ...]] = set()
    for answer in answers:
        for row in answer["operations"]:
            if isinstance(row[3], list):
                ranks, peer = tuple(row[3][1]), row[3][4]
                if peer < 0 or len(ranks) > 2:
                    groups.add(ranks)
                if peer >= 0:
                    messages.add(tuple(sorted((answer["rank"], peer))))
    return groups, messages


def _is_within(pair: tuple[int, ...], groups: Sequence[tuple[int, ...]]) -> bool:
    return any(set(pair) <= set(group) for group in groups)


def class_axes(answers: Any, mesh: DeviceMesh) -> list[str]:
    """Axes at each place of which ranks do something else, as the mesh has them."""
    return sorted(_message_axes(answers, mesh), key=list(mesh.axes).index)


def _message_axes(answers: Any, mesh: DeviceMesh) -> set[str]:
    """Axes along which ranks send messages: there every place is a class of its own."""
    found = set()
    for answer in answers:
        for row in answer["operations"]:
            if isinstance(row[3], list) and row[3][4] >= 0:
                where = mesh_axes.offset(mesh, answer["rank"], row[3][4])
                if where is not None:
                    found.add(where[0])
            elif isinstance(row[3], list) and len(row[3][1]) < mesh.world_size:
                part = mesh_axes.positions(mesh, row[3][1])
                if part is not None and len(part[1]) < mesh.axes[part[0]]:
                    found.add(part[0])
    return found


def representatives(mesh: DeviceMesh, along: Sequence[str]) -> list[int]:
    """The first rank at each place of some axes.

    Raises
    ------
    WorkloadError
        There are too many.
    """
    places: list[dict[str, int]] = [dict.fromkeys(mesh.axes, 0)]
    for axis in along:
        places = [{**where, axis: p} for where in places for p in range(mesh.axes[axis])]
    if len(places) > MOST_CLASSES:
        raise WorkloadError(
            f"ranks send messages along {', '.join(along)}: {len(places)} classes of ranks to profile"
            f" (at most {MOST_CLASSES})",
            hint="send within process groups of one DeviceMesh, so that the pipeline's axis is known",
        )
    return [mesh.rank(where) for where in places]
