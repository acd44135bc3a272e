"""All cheapest paths of pairs, a bounded number of each: what a load balancer chooses among.

A path is a number: at each node on the way the number's next digit, in base (ways there), says which of the
cheapest links is taken. So counting from 0 up finds every path once, one link of the first node after the
other. Where there are more paths than wanted, counting starts at a hash of the pair: nearby numbers differ at
the nodes near the source and, from pair to pair, everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from cosim.topology.graph import I32, I64
from cosim.topology.kernels import FAR, _mix

MOST_HOPS = 64
_TRIES = 4


@register_jitable
def _is_known(ptr: I64, links: I32, first: int, end: int, at: int, hops: int) -> bool:
    """Whether the links from ``at`` on are one of the paths from ``first`` to ``end``."""
    for p in range(first, end):
        same = ptr[p + 1] - ptr[p] == hops
        for k in range(hops):
            same = same and links[ptr[p] + k] == links[at + k]
        if same:
            return True
    return False


@njit(cache=True)
def equal_paths(
    src: I32,
    dst: I32,
    most: int,
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
    link_src: I32,
    link_dst: I32,
    cost: I32,
) -> tuple[I64, I64, I32, int]:
    """(count int64[n], ptr, links, -1), or last the number of the first pair without a path.

    ``ptr`` int64[paths + 1] and ``links`` have the paths of all pairs in a row; both may be longer than that.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    n = len(src)
    count = np.zeros(n, np.int64)
    ptr = np.zeros(4 * n + 2, np.int64)
    links = np.empty(16 * n + 16, np.int32)
    ways_out = np.empty(len(out_link), np.int32)
    paths = 0
    at = 0
    for i in range(n):
        goal = np.int64(dst[i])
        row, offset = max(row_of[root_of[goal]], 0), offset_of[goal]
        begin, end = near_ptr[goal], near_ptr[goal + 1]
        last = last_link[goal]
        number = np.int64(0)
        total = np.int64(1)
        start = np.int64(0)
        tries = 0
        while number < total and count[i] < most and tries < _TRIES * most:
            tries += 1
            digits = (start + number) % total
            number += 1
            product = np.int64(1)
            hops = 0
            node = np.int64(src[i])
            if at + MOST_HOPS > len(links):
                grown = np.empty(2 * len(links) + MOST_HOPS, np.int32)
                for k in range(at):
                    grown[k] = links[k]
                links = grown
            while node != goal:
                if last >= 0 and link_src[last] == node:
                    pick = last
                else:
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
                            ways_out[ways] = link
                            ways += 1
                    if ways == 0 or hops == MOST_HOPS:
                        return count, ptr, links, i
                    pick = ways_out[digits % ways]
                    digits //= ways
                    product = min(product * ways, np.int64(1) << 40)
                if hops == MOST_HOPS:
                    return count, ptr, links, i
                links[at + hops] = pick
                hops += 1
                node = np.int64(link_dst[pick])
            total = max(total, product)
            if tries == 1 and total > most:
                # More than are wanted: begin somewhere else for each pair.
                hashed = _mix(_mix(np.uint64(src[i]) + golden) + np.uint64(goal))
                start = np.int64(hashed >> np.uint64(24)) % total
                number = np.int64(0)
                continue
            if digits > 0 or (start > 0 and _is_known(ptr, links, paths - count[i], paths, at, hops)):
                continue  # another number of a path that there is
            at += hops
            paths += 1
            count[i] += 1
            if paths + 1 >= len(ptr):
                longer = np.zeros(2 * len(ptr), np.int64)
                for k in range(paths):
                    longer[k] = ptr[k]
                ptr = longer
            ptr[paths] = at
    return count, ptr, links, -1
