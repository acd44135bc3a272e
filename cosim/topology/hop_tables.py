"""Distance tables for routing on any graph: found per destination, when it is first asked for.

Most destinations share a table. Say that d is reached through *near* nodes, each with one link into it at
most from nodes that forward (a GPU's NVSwitch and its NIC), and these from one *root* (the leaf switch). Then
whoever is not near d reaches it through the root, at the root's distance plus the rest, an *offset*. So
16,384 GPUs behind 512 leaf switches need 512 rows. A destination with several such roots has its own row.

Nor need a row have all nodes. A *stub* (that NIC) leads to one node that forwards and no other leads to it,
so that nobody passes through it: it is as far as that node and one link. Rows are of the others, the *core*.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from cosim.kernel import Columns, kernel
from cosim.topology.graph import I32, I64, Topology

_TABLE_BYTES = 128 << 20
"""Rows kept at once; past it they are computed again, which changes no path."""


class HopTables(Columns):
    """Adjacency of one topology, and the distance rows found so far.

    Who looks for paths holds ``lock``: sessions of a server share a topology.

    Attributes
    ----------
    link_src, link_dst
        The topology's.
    cost, least
        int32[L], and the lowest of it.
    out_ptr, out_link
        CSR: links out of each node, by number.
    in_ptr, in_link
        CSR: links into each node from nodes that forward.
    root_of, offset_of
        int32 per endpoint: the node whose row it uses, and the cost from there; itself and 0 if its own.
    near_ptr, near_node, near_cost
        CSR per endpoint: near nodes and their cost to it.
    last_link
        int32 per endpoint: the only link into it, or -1.
    core, column_of, stub_cost
        int64[C]: the nodes of the core. int32 per node: its number there, or that of the node that a stub
        leads to, at this cost (0 in the core); -1 where there is none.
    core_ptr, core_link
        CSR: links into each node from the core.
    row_of, rows
        int32 per node (-1: none yet), int32[rows, C]; ``used`` rows are filled.
    place_of
        int64 per endpoint: its digits, where a destination's choose among equal ways.
    """

    def __init__(self, **columns: Any) -> None:
        super().__init__(**columns)
        self.lock = Lock()

    @classmethod
    def of(
        cls, topology: Topology, endpoints_forward: bool, link_cost: I32 | None, *, to_switches: bool = False
    ) -> HopTables:
        """Tables of a topology, without any row yet. ``to_switches``: nodes that forward are destinations,
        too, each with a row of its own; what is said below of an endpoint, is of all nodes then.
        """
        nodes, n = topology.num_nodes, topology.num_endpoints
        goals = nodes if to_switches else n
        tail, head = topology.link_src, topology.link_dst
        first = 0 if endpoints_forward else n
        cost = link_cost if link_cost is not None else np.ones(topology.num_links, np.int32)
        by_head = np.argsort(head, kind="stable").astype(np.int32)
        in_link = by_head[tail[by_head] >= first]
        in_ptr = pointer(np.bincount(head[in_link], minlength=nodes))
        all_in = pointer(np.bincount(head, minlength=nodes))
        single = np.flatnonzero(np.diff(all_in)[:n] == 1)
        last_link = np.full(goals, -1, np.int32)
        last_link[single] = by_head[all_in[single]]
        root, offset, near = np.arange(n), np.zeros(n, np.int64), np.empty((0, 3), np.int64)
        if not endpoints_forward:
            root, offset, near = _roots(topology, cost, in_ptr, in_link)
        root = np.concatenate([root, np.arange(n, goals)])
        offset = np.concatenate([offset, np.zeros(goals - n, np.int64)])
        stub_of, stub_cost = _stubs(topology, cost, first, root, in_link)
        is_core = stub_of == np.arange(nodes)
        core = np.flatnonzero(is_core)
        column_of = np.where(stub_of >= 0, np.cumsum(is_core)[stub_of] - 1, -1).astype(np.int32)
        core_link = in_link[is_core[tail[in_link]]]
        return cls(
            link_src=np.ascontiguousarray(tail, np.int32),
            link_dst=np.ascontiguousarray(head, np.int32),
            cost=np.ascontiguousarray(cost, np.int32),
            least=int(cost.min(initial=1)),
            out_ptr=pointer(np.bincount(tail, minlength=nodes)),
            out_link=np.argsort(tail, kind="stable").astype(np.int32),
            in_ptr=in_ptr,
            in_link=in_link,
            root_of=root.astype(np.int32),
            offset_of=offset.astype(np.int32),
            near_ptr=pointer(np.bincount(near[:, 0], minlength=goals)),
            near_node=near[:, 1].astype(np.int32),
            near_cost=near[:, 2].astype(np.int32),
            last_link=last_link,
            core=core,
            column_of=column_of,
            stub_cost=stub_cost,
            core_ptr=pointer(np.bincount(head[core_link], minlength=nodes)),
            core_link=core_link,
            row_of=np.full(nodes, -1, np.int32),
            rows=np.empty((0, max(1, len(core))), np.int32),
        )

    def has(self, roots: I32) -> bool:
        """Whether each root has its row."""
        return bool(np.minimum.reduce(self.row_of[roots], initial=0) == 0)

    def batches(self, roots: I64) -> list[I64]:
        """Roots in portions whose rows fit the memory; one portion where all do."""
        return [roots[i : i + self._limit] for i in range(0, len(roots), self._limit)]

    def fill(self, roots: I64) -> None:
        """Make sure that each root of a portion has its row."""
        missing = roots[self.row_of[roots] < 0]
        if not len(missing):
            return
        if self.used + len(missing) > self._limit:
            self.row_of[:] = -1
            self.put(used=0)
            missing = roots
        end = self.used + len(missing)
        if end > len(self.rows):
            grown = np.empty((min(self._limit, max(end, 2 * self.used)), self.rows.shape[1]), np.int32)
            grown[: self.used] = self.rows[: self.used]
            self.put(rows=grown)
        kernel.fill_rows(self, len(missing), np.ascontiguousarray(missing))

    @property
    def _limit(self) -> int:
        return max(1, _TABLE_BYTES // (4 * int(self.rows.shape[1])))


def _roots(topology: Topology, cost: I32, in_ptr: I64, in_link: I32) -> tuple[I64, I64, I64]:
    """Root and offset of each endpoint, and rows (endpoint, near node, cost) sorted by endpoint."""
    nodes, n, tail = topology.num_nodes, topology.num_endpoints, topology.link_src
    degree = np.diff(in_ptr)
    enter = in_link[: in_ptr[n]]
    goal = np.repeat(np.arange(n), degree[:n])
    node, left = tail[enter].astype(np.int64), cost[enter].astype(np.int64)
    is_near = degree[node] <= 1
    behind = degree[node] == 1
    link = in_link[in_ptr[node[behind]]]
    # Ways in: straight from a node that is not near, or from the one behind a near node.
    way_goal = np.concatenate([goal[~is_near], goal[behind]])
    way_node = np.concatenate([node[~is_near], tail[link]]).astype(np.int64)
    way_left = np.concatenate([left[~is_near], left[behind] + cost[link]])
    low, high = np.full(n, nodes), np.full(n, -1)
    offset = np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(low, way_goal, way_node)
    np.maximum.at(high, way_goal, way_node)
    np.minimum.at(offset, way_goal, way_left)
    # A root that is near itself has no link from a node that forwards, so that its row is right as well.
    shared = low == high
    root = np.where(shared, low, np.arange(n))
    keep = is_near & shared[goal]
    near = np.stack([goal[keep], node[keep], left[keep]], axis=1)
    return root, np.where(shared, offset, 0), near


def _stubs(topology: Topology, cost: I32, first: int, root: I64, in_link: I32) -> tuple[I32, I32]:
    """The core node that each leads to (itself in the core, -1 where there is none), and the cost to there.

    Roots, and what leads straight to a destination with a row of its own, are of the core.
    """
    nodes, tail, head = topology.num_nodes, topology.link_src, topology.link_dst
    inner = np.flatnonzero((tail >= first) & (head >= first))
    ahead = np.full(nodes, -1, np.int64)
    ahead[tail[inner]] = head[inner]
    price = np.zeros(nodes, np.int64)
    price[tail[inner]] = cost[inner]
    ways = np.bincount(tail[inner], minlength=nodes)
    is_stub = (ways <= 1) & (np.arange(nodes) >= first)
    is_stub[head[inner][tail[inner] != ahead[head[inner]]]] = False
    is_stub[root] = False
    has_own = np.zeros(nodes, np.bool_)
    has_own[np.flatnonzero(root == np.arange(len(root)))] = True
    is_stub[tail[in_link[has_own[head[in_link]]]]] = False
    is_stub[is_stub & (ahead >= 0) & is_stub[ahead]] = False
    itself = np.where(np.arange(nodes) >= first, np.arange(nodes), -1)
    of = np.where(is_stub, ahead, itself)
    return of.astype(np.int32), np.where(is_stub & (ahead >= 0), price, 0).astype(np.int32)


def pointer(counts: Any) -> I64:
    """CSR offsets from counts: int64[n + 1]."""
    ptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ptr[1:])
    return ptr
