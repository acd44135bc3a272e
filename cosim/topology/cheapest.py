"""The links out of a node that are on a cheapest way, read from distance tables; compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cosim.topology.graph import I32, I64
from cosim.topology.kernels import FAR, part


class Distances(NamedTuple):
    """A topology and its :class:`~cosim.topology.hop_tables.HopTables`, as compiled loops take them.

    ``rows`` int32[rows, C] has at least one row, so that a loop that needs none has something to index.
    """

    link_src: I32
    link_dst: I32
    cost: I32
    least: int
    out_ptr: I64
    out_link: I32
    in_ptr: I64
    in_link: I32
    root_of: I32
    offset_of: I32
    near_ptr: I64
    near_node: I32
    near_cost: I32
    last_link: I32
    column_of: I32
    stub_cost: I32
    core_ptr: I64
    core_link: I32
    row_of: I32
    rows: Any


@part
def cheapest_links(to: Distances, node: Any, goal: Any, found: I32, at: Any) -> Any:
    """How many links out of a node are on a cheapest way to a goal: into ``found`` from ``at``, by number."""
    begin, end = to.near_ptr[goal], to.near_ptr[goal + 1]
    row, offset = max(to.row_of[to.root_of[goal]], 0), to.offset_of[goal]
    best, ways = FAR, 0
    for k in range(to.out_ptr[node], to.out_ptr[node + 1]):
        link = to.out_link[k]
        following = to.link_dst[link]
        column, left = to.column_of[following], FAR
        if following == goal:
            left = np.int32(0)
        elif column >= 0:
            left = to.rows[row, column] + to.stub_cost[following] + offset
        # A near node's own way may be shorter than the way round by the root that its row would give.
        for near in range(begin, end):
            if to.near_node[near] == following:
                left = min(left, to.near_cost[near])
        d = to.cost[link] + left
        if d < best:
            best, ways = d, 0
        if d == best and d < FAR:
            found[at + ways] = link
            ways += 1
    return ways
