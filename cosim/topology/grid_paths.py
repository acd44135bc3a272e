"""Dimension-ordered paths on a grid, in closed form; compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from cosim.topology.graph import I32, I64
from cosim.topology.kernels import part

RING, FULLY_CONNECTED, SWITCH = 0, 1, 2
"""Codes of a dimension's kind, as :func:`grid_paths` takes them."""


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
        ptr[i + 1] = ptr[i] + _num_hops(kind, size, np.int64(src[i]), np.int64(dst[i]))
    links = np.empty(ptr[n], np.int32)
    for i in range(n):
        _follow(kind, size, first_link, num_endpoints, np.int64(src[i]), np.int64(dst[i]), links, ptr[i])
    return ptr, links


@part
def _num_hops(kind: I64, size: I64, a: np.int64, b: np.int64) -> np.int64:
    hops = np.int64(0)
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
    return hops


@part
def _follow(
    kind: I64,
    size: I64,
    first_link: I64,
    num_endpoints: int,
    src: np.int64,
    dst: np.int64,
    links: I32,
    at: np.int64,
) -> None:
    """Write the links of one path into ``links`` from ``at`` on."""
    a, b, node = src, dst, src
    stride = np.int64(1)
    for d in range(len(size)):
        here, there = a % size[d], b % size[d]
        target = node + (there - here) * stride
        if here != there:
            base = first_link[d]
            if kind[d] == RING:
                clockwise = (there - here) % size[d]
                forward = clockwise <= size[d] - clockwise  # half way round, either is shortest: clockwise
                step = 1 if forward else -1
                while node != target:
                    links[at] = base + node if forward else base + num_endpoints + node
                    at += 1
                    following = (here + step) % size[d]
                    node += (following - here) * stride
                    here = following
            elif kind[d] == FULLY_CONNECTED:
                # A node's links go to all but itself: past its own place, one number less.
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
