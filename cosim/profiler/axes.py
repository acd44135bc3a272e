"""A mesh of named axes from what ranks do: the groups they talk in and the device meshes they made.

Groups that torch makes of a mesh are arithmetic: ranks ``first + stride * k``, or a grid of several strides.
Every stride and extent is a boundary between axes; names come from the script's own ``DeviceMesh``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from cosim.errors import WorkloadError
from cosim.workload.program import DeviceMesh


@dataclass(frozen=True)
class NamedDim:
    """A dimension of a device mesh: ``size`` ranks, ``stride`` apart."""

    name: str
    stride: int
    size: int


def grid(ranks: Sequence[int]) -> list[tuple[int, int]] | None:
    """(stride, size) of each dimension of a group's ranks, outermost first; None where they are no grid."""
    dims: list[tuple[int, int]] = []
    rest = sorted(ranks)
    while len(rest) > 1:
        stride = rest[1] - rest[0]
        size = 1
        while size < len(rest) and rest[size] == rest[0] + size * stride:
            size += 1
        if len(rest) % size:
            return None
        rows = [rest[k : k + size] for k in range(0, len(rest), size)]
        if any([r - row[0] for r in row] != [k * stride for k in range(size)] for row in rows):
            return None
        dims.append((stride, size))
        rest = [row[0] for row in rows]
    return dims[::-1]


def named_dims(meshes: Iterable[Mapping[str, object]]) -> list[NamedDim]:
    """Dimensions of the device meshes of a trace that have a name and are arithmetic."""
    found: list[NamedDim] = []
    for mesh in meshes:
        names, shape, ranks = mesh["names"], mesh["shape"], mesh["ranks"]
        assert isinstance(names, list)
        assert isinstance(shape, list)
        assert isinstance(ranks, list)
        if not ranks or len(names) != len(shape):
            continue
        for place, name in enumerate(names):
            inner = prod(shape[place + 1 :])
            if shape[place] > 1:
                dim = NamedDim(str(name), ranks[inner] - ranks[0], shape[place])
                if dim.stride > 0 and dim not in found:
                    found.append(dim)
    return found


def infer_mesh(world_size: int, groups: Iterable[tuple[int, ...]], dims: Sequence[NamedDim]) -> DeviceMesh:
    """Axes such that every arithmetic group is a product of some of them.

    Raises
    ------
    WorkloadError
        Groups that cut the ranks in ways that do not nest.
    """
    edges = {1, world_size}
    for group in sorted(set(groups)):
        for stride, size in grid(group) or ():
            if world_size % stride == 0 and world_size % (stride * size) == 0:
                edges |= {stride, stride * size}
    for dim in dims:
        if world_size % dim.stride == 0 and world_size % (dim.stride * dim.size) == 0:
            edges |= {dim.stride, dim.stride * dim.size}
    ordered = sorted(edges)
    for low, high in pairwise(ordered):
        if high % low:
            raise WorkloadError(
                f"groups of ranks that do not nest: blocks of {low} and of {high} ranks",
                hint="groups are bound to the axes of one mesh: make them from one DeviceMesh",
            )
    axes: dict[str, int] = {}
    for low, high in reversed(list(pairwise(ordered))):
        axes[_name(low, high // low, dims, axes, alone=len(ordered) == 2)] = high // low
    return DeviceMesh(axes or {"dp": 1})


def _name(stride: int, size: int, dims: Sequence[NamedDim], taken: Mapping[str, int], *, alone: bool) -> str:
    for dim in dims:
        if (dim.stride, dim.size) == (stride, size) and dim.name not in taken:
            return dim.name
    for dim in dims:  # a part of a dimension of the script's
        if stride % dim.stride == 0 and stride * size <= dim.stride * dim.size:
            name = f"{dim.name}_{stride // dim.stride}"
            if name not in taken:
                return name
    if alone:
        return "dp"
    return f"axis{stride}"


def group_axes(mesh: DeviceMesh, ranks: Sequence[int]) -> tuple[str, ...] | None:
    """The axes whose product a group is; None where it is no such product."""
    dims = grid(ranks)
    if dims is None:
        return None
    wanted = dict(dims)
    found: list[str] = []
    stride = 1
    covered = 1
    for name, size in reversed(list(mesh.axes.items())):
        for first, length in wanted.items():
            if first <= stride and stride * size <= first * length and size > 1:
                found.append(name)
                covered *= size
                break
        stride *= size
    axes = tuple(name for name in mesh.axes if name in found)
    if covered != len(ranks) or mesh.group(ranks[0], axes) != tuple(sorted(ranks)):
        return None
    return axes


def positions(mesh: DeviceMesh, ranks: Sequence[int]) -> tuple[str, tuple[int, ...]] | None:
    """An axis and places on it, where a group's ranks differ along one axis only but are not all of it."""
    where = [mesh.coordinates(rank) for rank in ranks]
    differ = [name for name in mesh.axes if len({w[name] for w in where}) > 1]
    if len(differ) != 1:
        return None
    return differ[0], tuple(w[differ[0]] for w in where)


def offset(mesh: DeviceMesh, rank: int, peer: int) -> tuple[str, int] | None:
    """The axis along which ``peer`` lies from ``rank``, and how far; None where there is no such axis."""
    here, there = mesh.coordinates(rank), mesh.coordinates(peer)
    differ = [name for name in mesh.axes if here[name] != there[name]]
    return (differ[0], there[differ[0]] - here[differ[0]]) if len(differ) == 1 else None
