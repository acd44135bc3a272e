"""Inner loops of the routings: numba, no fastmath, integers only.

Imported on first use, so that building a topology does not pay for numba. Compiling takes a second or two,
once on a machine; for little work (:func:`for_work`) the same loops run interpreted instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numba.extending import register_jitable

from cosim.topology.graph import I32, I64
from cosim.topology.lean import kept

_F = TypeVar("_F", bound=Callable[..., Any])

FAR = np.int32(1 << 30)
"""Distance of a node from which the destination can't be reached."""

LITTLE_WORK = 4_000
"""Steps of a loop that take less time to interpret than to compile."""

_INTERPRETED: dict[Any, int] = {}
"""Steps that loops were asked for in this process."""


def for_work(loop: Any, steps: int) -> Callable[..., Any]:
    """The compiled loop, or the same interpreted where it has few steps to do, now and so far."""
    _INTERPRETED[loop] = _INTERPRETED.get(loop, 0) + steps
    if loop.overloads or steps > LITTLE_WORK or _INTERPRETED[loop] > 64 * LITTLE_WORK:
        compiled: Callable[..., Any] = loop
        return compiled

    def interpreted(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # hashes wrap round
            return loop.py_func(*arguments)

    return interpreted


@kept
def distances(
    roots: I64,
    column_of: I32,
    core: I64,
    in_ptr: I64,
    in_link: I32,
    link_src: I32,
    cost: I32,
    least: int,
    rows: Any,
) -> None:
    """Cost of the cheapest way from each core node to each root, into ``rows`` int32[R, F].

    Column c is node ``core[c]``, ``column_of`` a node's column. ``in_ptr``/``in_link`` list, per node, the
    links into it from core nodes; no link costs less than ``least``. Label-correcting with a FIFO queue,
    which is plain breadth-first search where every cost is 1. A node that is as far as all others, but for
    one link at most, brings none of them nearer, and is passed by: of a tree's leaves no link is looked at.
    """
    width = rows.shape[1]
    queue = np.empty(width + 1, np.int64)
    queued = np.zeros(width, np.bool_)
    for r in range(len(roots)):
        for column in range(width):
            rows[r, column] = FAR
        head, tail = 0, 0
        to_reach, farthest = width, np.int32(0)
        node, far = np.int64(roots[r]), np.int32(0)
        if column_of[node] >= 0:
            rows[r, column_of[node]] = 0
            to_reach -= 1
        while True:
            end = in_ptr[node + 1] if to_reach > 0 or far + least < farthest else in_ptr[node]
            for k in range(in_ptr[node], end):
                link = in_link[k]
                column = column_of[link_src[link]]
                d = far + cost[link]
                if d < rows[r, column]:
                    if rows[r, column] == FAR:
                        to_reach -= 1
                    farthest = max(farthest, d)
                    rows[r, column] = d
                    if not queued[column]:
                        queued[column] = True
                        queue[tail] = column
                        tail = tail + 1 if tail < width else 0
            if head == tail:
                break
            column = queue[head]
            head = head + 1 if head < width else 0
            queued[column] = False
            node, far = core[column], rows[r, column]


loop: Callable[[_F], _F] = partial(kept, _nrt=False)
"""Compile a loop over arrays that Python keeps alive: it allocates nothing, so that references need not be
counted, which for a named tuple of arrays takes longer than what is done with them."""

part: Callable[[_F], _F] = cast("Any", register_jitable)(_nrt=False, forceinline=True)
"""The same for a function that loops call; interpreted, it is as it stands."""


@part
def mix(x: Any) -> Any:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014, doi:10.1145/2714064.2660195)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
