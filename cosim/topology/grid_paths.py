"""Dimension-ordered paths on a grid, in closed form and by columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.topology.graph import I32, I64

Crossing = tuple[str, int, int]
"""A dimension: its kind, how many endpoints it has along it, and the number of its first link."""
_PORTION = 1 << 14
"""Paths that are computed at once: their columns stay in a processor's cache."""


def grid_paths(dimensions: Sequence[Crossing], num_endpoints: int, src: I32, dst: I32) -> tuple[I64, I32]:
    """Dimension-ordered paths on a grid, in closed form: (ptr int64[n + 1], links int32).

    The link numbers are those of :func:`cosim.topology.grid.grid_links`; dimension 0 comes first.
    """
    portions = [
        _portion(dimensions, num_endpoints, src[at : at + _PORTION], dst[at : at + _PORTION])
        for at in range(0, len(src), _PORTION)
    ]
    ptr = np.zeros(len(src) + 1, np.int64)
    for at, (hops, _) in zip(range(1, len(ptr), _PORTION), portions, strict=True):
        ptr[at : at + _PORTION] = hops
    ptr.cumsum(out=ptr)
    if len(portions) == 1:
        return ptr, portions[0][1]
    return ptr, np.concatenate([np.zeros(0, np.int32), *(links for _, links in portions)])


def _portion(dimensions: Sequence[Crossing], num_endpoints: int, src: I32, dst: I32) -> tuple[I64, I32]:
    """(Hops of each path, the links of all, one path after another)."""
    places, stride = [], 1
    here, there = np.asarray(src, np.int64), np.asarray(dst, np.int64)
    for _, size, _ in dimensions[:-1]:
        (here, mine), (there, other) = np.divmod(here, size), np.divmod(there, size)
        places.append((mine, other, stride))
        stride *= size
    places.append((here, there, stride))
    odd = None
    if any(kind == "Torus" for kind, _, _ in dimensions):
        odd = np.asarray(sum((one + other for one, other, _ in places), start=np.int64(0)))
    hops = [_hops(kind, size, *place[:2]) for (kind, size, _), place in zip(dimensions, places, strict=True)]
    total = sum(hops[1:], start=hops[0])
    last = total.cumsum()
    links = np.empty(int(last[-1]), np.int32)
    start, node = last - total, np.asarray(src, np.int64)
    for (kind, size, first), (here, there, stride), count in zip(dimensions, places, hops, strict=True):
        target = node + (there - here) * stride
        if kind in ("Ring", "Torus", "Line"):
            turn = _turns(kind, size, here, there, odd)
            _walk(kind, size, first, num_endpoints, (here, stride, turn), node, (start, count), links)
        else:
            ends = node, target
            _cross(kind, size, first, num_endpoints, (here, there), ends, start, links)
        start, node = start + count, target
    return total, links


def _hops(kind: str, size: int, here: I64, there: I64) -> I64:
    """How many links each path takes in a dimension."""
    if kind == "Line":
        return np.asarray(np.abs(there - here))
    if kind in ("Ring", "Torus"):
        clockwise = (there - here) % size
        return np.asarray(np.minimum(clockwise, size - clockwise))
    return np.asarray((here != there) * np.int64(1 if kind == "FullyConnected" else 2))


def _turns(kind: str, size: int, here: I64, there: I64, odd: I64 | None) -> I64:
    """1 where a path goes up, or clockwise; -1 where it goes down. ``odd`` is the sum of all coordinates."""
    if kind == "Line":
        return np.where(there > here, 1, -1)
    forward = (there - here) % size
    up = 2 * forward <= size  # half way round, either is shortest: clockwise
    if kind == "Torus" and odd is not None:
        # What the pair's other coordinates add up to is even for half of those that cross a link.
        up &= (2 * forward < size) | ((odd - there) % 2 == 0)
    return np.where(up, 1, -1)


def _walk(
    kind: str,
    size: int,
    first: int,
    num_endpoints: int,
    place: tuple[I64, int, I64],
    node: I64,
    where: tuple[I64, I64],
    links: I32,
) -> None:
    """Write the links of a ring or a line, whose first is ``first``, from ``where`` (start, hops) on."""
    (here, stride, turn), (start, hops) = place, where
    each = np.repeat(np.arange(len(hops)), hops)
    step = np.arange(len(each)) - np.repeat(np.cumsum(hops) - hops, hops)
    back = turn[each] < 0
    if kind == "Line":
        line = node // (stride * size) * stride + node % stride
        lower = here[each] + turn[each] * step - back  # a link is numbered by its lower end
        down = np.where(back, num_endpoints // size * (size - 1), 0)
        links[start[each] + step] = first + down + line[each] * (size - 1) + lower
        return
    passed = node[each] + ((here[each] + turn[each] * step) % size - here[each]) * stride
    # Two in a ring have one link each way, which is the clockwise one.
    links[start[each] + step] = first + passed + np.where(back & (size > 2), num_endpoints, 0)


def _cross(
    kind: str,
    size: int,
    first: int,
    num_endpoints: int,
    place: tuple[I64, I64],
    ends: tuple[I64, I64],
    start: I64,
    links: I32,
) -> None:
    """Write the links of one step across a dimension, whose first is ``first``, from ``start`` on."""
    (here, there), (node, target) = place, ends
    moves = here != there
    if not moves.all():
        node, target, start = node[moves], target[moves], start[moves]
    if kind == "Switch":
        links[start] = first + node
        links[start + 1] = first + num_endpoints + target
    else:
        # A node's links go to all but itself: past its own place, one number less.
        links[start] = first + node * (size - 1) + (there - (there > here))[moves]
