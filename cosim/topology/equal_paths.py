"""All cheapest paths of pairs, a bounded number of each: what a load balancer chooses among.

A path is a number: at each node on the way the number's next digit, in base (ways there), says which of the
cheapest links is taken. So counting from 0 up finds every path once, one link of the first node after the
other. Where there are more paths than wanted, counting starts at a hash of the pair: nearby numbers differ at
the nodes near the source and, from pair to pair, everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cosim.topology.cheapest import Distances, cheapest_links
from cosim.topology.graph import I32, I64
from cosim.topology.kernels import loop, mix, part

MOST_HOPS = 64
_TRIES = 4
_MANY = np.int64(1) << 40
"""More paths than anybody asks for; a product is counted no further, so that it can't overflow."""


@part
def _is_known(ptr: I64, links: I32, first: int, end: int, at: int, hops: int) -> bool:
    """Whether the links from ``at`` on are one of the paths from ``first`` to ``end``."""
    for p in range(first, end):
        same = ptr[p + 1] - ptr[p] == hops
        for k in range(hops):
            same = same and links[ptr[p] + k] == links[at + k]
        if same:
            return True
    return False


def equal_paths(to: Distances, src: I32, dst: I32, most: int) -> tuple[I64, I64, I32, int]:
    """(count int64[n], ptr, links, -1), or last the number of the first pair without a path.

    ``ptr`` int64[paths + 1] and ``links`` have the paths of all pairs in a row; both may be longer than that.
    """
    n = len(src)
    count = np.zeros(n, np.int64)
    ptr = np.zeros(4 * n + most + 2, np.int64)
    links = np.empty(16 * n + (most + 1) * MOST_HOPS, np.int32)
    ways_out = np.empty(len(to.out_link), np.int32)
    pair, has_path = _find(to, src, dst, most, count, ptr, links, ways_out, 0)
    while has_path and pair < n:
        ptr = np.concatenate([ptr, np.zeros_like(ptr)])
        links = np.concatenate([links, np.empty_like(links)])
        pair, has_path = _find(to, src, dst, most, count, ptr, links, ways_out, pair)
    return count, ptr, links, -1 if has_path else pair


@loop
def _find(
    to: Distances, src: I32, dst: I32, most: int, count: I64, ptr: I64, links: I32, ways_out: I32, first: int
) -> tuple[int, bool]:
    """Write the paths of the pairs from ``first`` on: (where it stopped, whether that pair has a path).

    It stops at the end, at a pair without one, and where there may be too little room for a pair's paths.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    paths = count[:first].sum()
    for i in range(first, len(src)):
        if paths + most >= len(ptr) or ptr[paths] + (most + 1) * MOST_HOPS > len(links):
            return i, True
        number, total, start = np.int64(0), np.int64(1), np.int64(0)
        tries = 0
        # How many numbers there are is known only by following some: the greatest product of ways so far.
        while number < total and count[i] < most and tries < _TRIES * most:
            tries += 1
            at = ptr[paths]
            digits = (start + number) % total
            number += 1
            hops, product, rest = _follow(to, np.int64(src[i]), np.int64(dst[i]), digits, ways_out, links, at)
            if hops < 0:
                return i, False
            total = max(total, product)
            if tries == 1 and total > most:
                # More than are wanted: begin somewhere else for each pair.
                hashed = mix(mix(np.uint64(src[i]) + golden) + np.uint64(dst[i]))
                start = np.int64(hashed >> np.uint64(24)) % total
                number = np.int64(0)
                continue
            if rest > 0 or (start > 0 and _is_known(ptr, links, paths - count[i], paths, at, hops)):
                continue  # another number of a path that there is
            paths += 1
            count[i] += 1
            ptr[paths] = at + hops
    return len(src), True


@part
def _follow(
    to: Distances, node: Any, goal: Any, digits: Any, ways_out: I32, links: I32, at: Any
) -> tuple[Any, Any, Any]:
    """Write the path of a number into ``links`` from ``at``: (hops, product of the ways, digits left over).

    Hops are -1 where there is no path, or only a longer one than there is room for.
    """
    product, hops = np.int64(1), np.int64(0)
    last = to.last_link[goal]
    while node != goal:
        if hops == MOST_HOPS:
            return np.int64(-1), product, digits
        if last >= 0 and to.link_src[last] == node:
            pick = last
        else:
            ways = cheapest_links(to, node, goal, ways_out, 0)
            if ways == 0:
                return np.int64(-1), product, digits
            pick = ways_out[digits % ways]
            digits //= ways
            product = min(product * ways, _MANY)
        links[at + hops] = pick
        hops += 1
        node = np.int64(to.link_dst[pick])
    return hops, product, digits
