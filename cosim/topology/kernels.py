"""Inner loops of the routings: numba, no fastmath, integers only.

Imported on first use, so that building a topology does not pay for numba. Compiling takes a second or two,
once on a machine; for little work (:func:`for_work`) the same loops run interpreted instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from cosim.topology.graph import I32, I64

RING, FULLY_CONNECTED, SWITCH = 0, 1, 2
"""Codes of a dimension's kind, as :func:`grid_paths` takes them."""

FIRST, HASHED, BY_DESTINATION = 0, 1, 2
"""Which of several cheapest ways :func:`walk` takes."""

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


@njit(cache=True)
def grid_paths(
    kind: I64, size: I64, first_link: I64, num_endpoints: int, src: I32, dst: I32
) -> tuple[I64, I32]:
    """Dimension-ordered paths on a grid, in closed form: (ptr int64[n + 1], links int32).

    The link numbers are those of :func:`cosim.topology.grid.grid_links`; dimension 0 comes first.
    """
    n = len(src)
    ptr = np.zeros(n + 1, np.int64)
    for i in range(n):
        a, b, hops = np.int64(src[i]), np.int64(dst[i]), np.int64(0)
        for d in range(len(size)):
            offset = b % size[d] - a % size[d]
            if offset != 0:
                if kind[d] == RING:
                    clockwise = offset % size[d]
                    hops += min(clockwise, size[d] - clockwise)
                elif kind[d] == FULLY_CONNECTED:
                    hops += 1
                else:
                    hops += 2
            a //= size[d]
            b //= size[d]
        ptr[i + 1] = ptr[i] + hops
    links = np.empty(ptr[n], np.int32)
    at = np.int64(0)
    for i in range(n):
        a, b = np.int64(src[i]), np.int64(dst[i])
        node = np.int64(src[i])
        stride = np.int64(1)
        for d in range(len(size)):
            here, there = a % size[d], b % size[d]
            target = node + (there - here) * stride
            if here != there:
                base = first_link[d]
                if kind[d] == RING:
                    clockwise = (there - here) % size[d]
                    forward = clockwise <= size[d] - clockwise
                    step = 1 if forward else -1
                    while node != target:
                        links[at] = base + node if forward else base + num_endpoints + node
                        at += 1
                        following = (here + step) % size[d]
                        node += (following - here) * stride
                        here = following
                elif kind[d] == FULLY_CONNECTED:
                    links[at] = base + node * (size[d] - 1) + (there if there < here else there - 1)
                    at += 1
                else:
                    links[at] = base + node
                    links[at + 1] = base + num_endpoints + target
                    at += 2
            node = target
            a //= size[d]
            b //= size[d]
            stride *= size[d]
    return ptr, links


@njit(cache=True)
def distances(
    roots: I64, column_of: I32, core: I64, in_ptr: I64, in_link: I32, link_src: I32, cost: I32, rows: Any
) -> None:
    """Cost of the cheapest way from each core node to each root, into ``rows`` int32[R, F].

    Column c is node ``core[c]``, ``column_of`` a node's column. ``in_ptr``/``in_link`` list, per node, the
    links into it from core nodes. Label-correcting with a FIFO queue, which is plain breadth-first search
    where every cost is 1.
    """
    width = rows.shape[1]
    queue = np.empty(width + 1, np.int64)
    queued = np.zeros(width, np.bool_)
    for r in range(len(roots)):
        for column in range(width):
            rows[r, column] = FAR
        head, tail = 0, 0
        node, far = np.int64(roots[r]), np.int32(0)
        if column_of[node] >= 0:
            rows[r, column_of[node]] = 0
        while True:
            for k in range(in_ptr[node], in_ptr[node + 1]):
                link = in_link[k]
                column = column_of[link_src[link]]
                d = far + cost[link]
                if d < rows[r, column]:
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


@register_jitable
def _mix(x: Any) -> Any:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014, doi:10.1145/2714064.2660195)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@register_jitable
def _ways_down(
    root: Any,
    goal: Any,
    in_ptr: I64,
    in_link: I32,
    link_src: I32,
    cost: I32,
    pool: I32,
    used: Any,
) -> Any:
    """How many links out of a root are on a cheapest way: into ``pool`` from ``used`` on, by number.

    Looked for from the destination's side, for a root may have hundreds of links.
    """
    best, ways = FAR, 0
    for k in range(in_ptr[goal], in_ptr[goal + 1]):
        link, d = in_link[k], cost[in_link[k]]
        near = link_src[link]
        if near != root:
            if in_ptr[near + 1] - in_ptr[near] != 1 or link_src[in_link[in_ptr[near]]] != root:
                continue
            link = in_link[in_ptr[near]]
            d += cost[link]
        if d > best:
            continue
        if d < best:
            best, ways = d, 0
        at = ways
        while at > 0 and pool[used + at - 1] > link:
            at -= 1
        if at > 0 and pool[used + at - 1] == link:
            continue
        for later in range(ways, at, -1):
            pool[used + later] = pool[used + later - 1]
        pool[used + at] = link
        ways += 1
    return ways


@register_jitable
def _is_near(node: Any, near_node: I32, begin: Any, end: Any) -> bool:
    for k in range(begin, end):  # noqa: SIM110 - compiled
        if near_node[k] == node:
            return True
    return False


_KNOWN = 1 << 12
"""Places of :func:`walk`'s memory; a power of two."""


@njit(cache=True)
def walk(
    src: I32,
    dst: I32,
    channel: I32,
    root_of: I32,
    offset_of: I32,
    near_ptr: I64,
    near_node: I32,
    near_cost: I32,
    last_link: I32,
    column_of: I32,
    stub_cost: I32,
    row_of: I32,
    rows: Any,
    out_ptr: I64,
    out_link: I32,
    in_ptr: I64,
    in_link: I32,
    link_src: I32,
    link_dst: I32,
    cost: I32,
    choice: int,
    seed: Any,
    place_of: I64,
) -> tuple[I64, I32, int]:
    """Follow the distance tables: (ptr, links, -1), or last the number of the first flow without a path.

    ``links`` may be longer than ``ptr`` says.

    At each node the candidates are the out-links on a cheapest way, in link order. ``choice`` says which is
    taken: the first; by a hash of (src, dst, channel, seed) and the node; or by the destination's place, of
    which each node with w candidates takes one digit in base w. On the way to a root the candidates are those
    of all who go there, and remembered.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    n = len(src)
    ptr = np.zeros(n + 1, np.int64)
    links = np.empty(max(16, 4 * n), np.int32)
    pool = np.empty(2 * len(out_link) + 16, np.int32)
    pool_used = 0
    known_node, known_root = np.full(_KNOWN, -1), np.full(_KNOWN, -1)
    known_at, known_ways = np.zeros(_KNOWN, np.int64), np.zeros(_KNOWN, np.int64)
    at = 0
    for i in range(n):
        node, goal = np.int64(src[i]), np.int64(dst[i])
        h = np.uint64(0)
        if choice == HASHED:
            h = _mix(_mix(_mix(np.uint64(seed) + golden) + np.uint64(node)) + np.uint64(goal))
            h = _mix(h + np.uint64(channel[i]))
        root = np.int64(root_of[goal])
        begin, end = near_ptr[goal], near_ptr[goal + 1]
        row, offset = max(row_of[root], 0), offset_of[goal]
        last = last_link[goal]
        digits = place_of[goal]
        while node != goal:
            if last >= 0 and link_src[last] == node:
                pick = last
            else:
                first, slot = pool_used, (node * 31 + root) & (_KNOWN - 1)
                is_core = column_of[node] >= 0 and stub_cost[node] == 0
                goes_to_root = is_core and not _is_near(node, near_node, begin, end)
                if node == root:
                    ways = _ways_down(root, goal, in_ptr, in_link, link_src, cost, pool, first)
                elif goes_to_root and known_node[slot] == node and known_root[slot] == root:
                    first, ways = known_at[slot], known_ways[slot]
                else:
                    if pool_used > len(out_link):
                        pool_used, first = 0, 0
                        for k in range(_KNOWN):
                            known_node[k] = -1
                    best, ways = FAR, 0
                    for k in range(out_ptr[node], out_ptr[node + 1]):
                        link = out_link[k]
                        to = link_dst[link]
                        column, left = column_of[to], FAR
                        if to == goal:
                            left = np.int32(0)
                        elif column >= 0:
                            left = rows[row, column] + stub_cost[to] + offset
                        for near in range(begin, end):
                            if near_node[near] == to:
                                left = min(left, near_cost[near])
                        d = cost[link] + left
                        if d < best:
                            best, ways = d, 0
                        if d == best and d < FAR:
                            pool[first + ways] = link
                            ways += 1
                    if goes_to_root:
                        known_node[slot], known_root[slot] = node, root
                        known_at[slot], known_ways[slot] = first, ways
                        pool_used += ways
                if ways == 0:
                    return ptr, links, i
                chosen = np.int64(0)
                if choice == HASHED:
                    x = _mix(h + np.uint64(node) * golden)
                    chosen = np.int64(((x >> np.uint64(32)) * np.uint64(ways)) >> np.uint64(32))
                elif choice == BY_DESTINATION:
                    chosen = digits % ways
                    digits //= ways
                pick = pool[first + chosen]
            if at == len(links):
                grown = np.empty(2 * len(links), np.int32)
                for k in range(at):  # a loop compiles far faster than an assigned slice
                    grown[k] = links[k]
                links = grown
            links[at] = pick
            at += 1
            node = np.int64(link_dst[pick])
        ptr[i + 1] = at
    return ptr, links, -1
