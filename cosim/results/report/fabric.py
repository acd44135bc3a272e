"""A fabric as a map: where each node is drawn, few enough to be readable, and which links a drawn line is.

Endpoints stand in a row in the order of their numbers, switches in rows above by their distance from an
endpoint, each over the middle of what it is linked to. Endpoints that are linked to the same switches, and
then neighbours by number, share a box where there are too many. Endpoints linked to one another are a ring
or a grid, as their dimensions say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
MOST_IN_A_ROW = 64


@dataclass(frozen=True, eq=False)
class FabricMap:
    """Boxes and lines between them.

    Attributes
    ----------
    box
        int64[nodes]: the box that a node is drawn in.
    label, x, y
        Of each box; positions from 0 to 1, ``y`` downwards.
    room
        Of each box: from the middle of one to that of the next in its row, where they are nearest.
    size
        Nodes in each box.
    is_endpoint
        bool[boxes].
    line
        int64[links]: the line that a link is drawn as; -1 within a box.
    a, b
        int64[lines]: boxes; both directions are one line.
    bend
        float64[lines]: how far a line goes out of its way, of its length: where boxes of the same row or
        column lie between its ends.
    """

    box: I64
    label: tuple[str, ...]
    x: F64
    y: F64
    room: F64
    size: I64
    is_endpoint: NDArray[np.bool_]
    line: I64
    a: I64
    b: I64
    bend: F64


def draw_map(names: Sequence[str], endpoints: int, src: I64, dst: I64, dims: Sequence[int] = ()) -> FabricMap:
    """Where nodes are drawn; ``endpoints`` come first."""
    src, dst = src.astype(np.int64), dst.astype(np.int64)
    nodes = len(names)
    tier = _tiers(nodes, endpoints, src, dst)
    direct = bool(((src < endpoints) & (dst < endpoints)).any())
    box = _boxes(tier, src, dst, grid=direct)
    count = int(box.max(initial=-1)) + 1
    size = np.bincount(box, minlength=count)
    first = np.full(count, nodes, np.int64)
    np.minimum.at(first, box, np.arange(nodes))
    a, b = np.minimum(box[src], box[dst]), np.maximum(box[src], box[dst])
    between = a != b
    pairs, inverse = np.unique(np.column_stack([a[between], b[between]]), axis=0, return_inverse=True)
    line = np.full(len(src), -1, np.int64)
    line[between] = inverse.reshape(-1)
    pairs = pairs.reshape(-1, 2)
    if direct:
        x, y = _around(count, tier[first], dims)
    else:
        x, y = _in_rows(tier[first], pairs)
    label = tuple(_label(names, box, k, int(first[k]), int(size[k])) for k in range(count))
    bend = _bends(x, y, pairs)
    ends = first < endpoints
    return FabricMap(box, label, x, y, _room(x, y), size, ends, line, pairs[:, 0], pairs[:, 1], bend)


def _tiers(nodes: int, endpoints: int, src: I64, dst: I64) -> I64:
    """Links from the nearest endpoint; a switch that only endpoints know, beside others that lead on, is
    below. Where none leads on, and each endpoint has a switch of each dimension, each of these is a tier.
    """
    tier = np.full(nodes, nodes, np.int64)
    tier[:endpoints] = 0
    for level in range(1, nodes):
        reached = dst[(tier[src] == level - 1) & (tier[dst] > level)]
        if not len(reached):
            break
        tier[reached] = level
    tier[tier == nodes] = 1
    leads_on = np.zeros(nodes, np.bool_)
    leads_on[src[dst >= endpoints]] = True
    if leads_on[endpoints:].any():
        inside = (np.arange(nodes) >= endpoints) & ~leads_on & (tier == 1)
        tier[inside] = -1  # within a host: drawn below its GPUs
    else:
        switches, dimension = _dimensions(endpoints, src, dst)
        tier[switches] = np.where(dimension == 0, -1, dimension)
    return tier


def _dimensions(endpoints: int, src: I64, dst: I64) -> tuple[I64, I64]:
    """(Switches, the dimension of each): its place among those of each of its endpoints. None where there is
    but one dimension, or a switch has several places.
    """
    ups = np.unique(np.column_stack([src, dst])[(src < endpoints) & (dst >= endpoints)], axis=0)
    place = np.arange(len(ups)) - np.searchsorted(ups[:, 0], ups[:, 0])
    switches, which = np.unique(ups[:, 1], return_inverse=True)
    dimension = np.zeros(len(switches), np.int64)
    dimension[which.reshape(-1)] = place
    if not place.any() or (dimension[which.reshape(-1)] != place).any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return switches, dimension


def _boxes(tier: I64, src: I64, dst: I64, *, grid: bool) -> I64:
    """The box of each node, numbered as nodes are."""
    nodes = len(tier)
    box = np.arange(nodes)
    for level in np.unique(tier).tolist():
        here = np.flatnonzero(tier == level)
        if len(here) <= MOST_IN_A_ROW:
            continue
        mine = np.isin(src, here)
        neighbours: dict[int, list[int]] = {}
        for one, other in zip(src[mine].tolist(), dst[mine].tolist(), strict=True):
            neighbours.setdefault(one, []).append(int(box[other]) if tier[other] < level else other)
        kinds: dict[object, int] = {}
        of = [kinds.setdefault(tuple(sorted(set(neighbours.get(int(n), [])))), len(kinds)) for n in here]
        groups = np.array(of) if not grid and len(kinds) <= MOST_IN_A_ROW else np.arange(len(here))
        if len(np.unique(groups)) > MOST_IN_A_ROW or len(np.unique(groups)) == 1:
            each = 1 << max(0, math.ceil(math.log2(len(here) / MOST_IN_A_ROW)))
            groups = np.arange(len(here)) // each
        firsts = np.full(int(groups.max()) + 1, nodes, np.int64)
        np.minimum.at(firsts, groups, here)
        box[here] = firsts[groups]
    return np.unique(box, return_inverse=True)[1].reshape(-1)


def _in_rows(tier: I64, pairs: I64) -> tuple[F64, F64]:
    """Tiers from the lowest up; each row spread evenly, in the order of what it is linked to."""
    count = len(tier)
    x, y = np.zeros(count), np.zeros(count)
    levels = np.unique(tier).tolist()
    order = [0, *[level for level in levels if level > 0], *[level for level in levels if level < 0]]
    for level in [level for level in order if level in levels]:
        here = np.flatnonzero(tier == level)
        middle = np.arange(len(here), dtype=np.float64)
        if level != 0:
            total, links = np.zeros(count), np.zeros(count)
            nearer = tier == (level - 1 if level > 0 else 0)
            for one, other in ((pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])):
                used = nearer[other]
                np.add.at(total, one[used], x[other[used]])
                np.add.at(links, one[used], 1)
            middle = (total / np.maximum(links, 1))[here]
        place = np.empty(len(here))
        place[np.lexsort((here, np.round(middle, 9)))] = np.arange(len(here))
        x[here] = (place + 0.5) / len(here)
        y[here] = 1 - (levels.index(level) + 0.5) / len(levels)
    return x, y


def _around(count: int, tier: I64, dims: Sequence[int]) -> tuple[F64, F64]:
    """A ring for one dimension, a grid for two and more; switches of other dimensions beside it."""
    flat = np.flatnonzero(tier <= 0)
    x, y = np.full(count, 0.5), np.full(count, 0.5)
    wide = [d for d in dims if d > 1]
    if len(wide) < 2 or math.prod(wide) != len(flat):
        turn = 2 * np.pi * np.arange(len(flat)) / max(len(flat), 1) - np.pi / 2
        x[flat], y[flat] = 0.5 + 0.42 * np.cos(turn), 0.5 + 0.42 * np.sin(turn)
    else:
        across = wide[0] * (wide[2] if len(wide) > 2 else 1)
        gap = 1 + (np.arange(len(flat)) // (wide[0] * wide[1])) * 0.5 if len(wide) > 2 else 0.0
        column = np.arange(len(flat)) % wide[0] + (np.arange(len(flat)) // (wide[0] * wide[1])) * wide[0]
        row = np.arange(len(flat)) // wide[0] % wide[1]
        x[flat] = (column + 0.5 + gap) / (across + np.max(gap) + 1)
        y[flat] = (row + 0.5) / wide[1]
    switches = np.flatnonzero(tier > 0)
    x[switches] = (np.arange(len(switches)) + 0.5) / max(len(switches), 1)
    y[switches] = -0.08
    return x, (y - y.min()) / max(float(y.max() - y.min()), 1.0) if len(switches) else y


def _room(x: F64, y: F64) -> F64:
    room = np.ones(len(x))
    level = np.round(y, 6)
    for one in np.unique(level):
        places = np.unique(np.round(x[level == one], 6))
        room[level == one] = np.diff(places).min(initial=1.0)
    return room


def _bends(x: F64, y: F64, pairs: I64) -> F64:
    """How far lines along a row or a column bend past a box."""
    bend = np.zeros(len(pairs))
    for along, across in ((x, y), (y, x)):
        level, place = np.round(across, 6), np.round(along, 6)
        rows = {float(one): np.unique(place[level == one]) for one in np.unique(level)}
        for k, (a, b) in enumerate(pairs.tolist()):
            if level[a] == level[b] and a != b:
                ends = np.searchsorted(rows[float(level[a])], sorted((place[a], place[b])))
                if ends[1] - ends[0] > 1:
                    bend[k] = 0.14
    return bend


def _label(names: Sequence[str], box: I64, number: int, first: int, size: int) -> str:
    if size == 1:
        return names[first]
    last = int(np.flatnonzero(box == number)[-1])
    return f"{names[first]} ... {names[last]}"
