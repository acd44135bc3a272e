"""Releasing flat flows when what they wait for is there: for a server whose network doesn't."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I64
from cosim.network.jit import compiled
from cosim.protocol.columns import FlatFlows

FLOW = np.dtype(
    [
        ("key_high", "i8"),
        ("key_low", "i8"),
        ("reaction", "i8"),
        ("delay", "i8"),
        ("ready", "i8"),
        ("start", "i8"),
        ("time", "i8"),
        ("waits", "i4"),
        ("handle", "i4"),
        ("first", "i8"),
    ]
)
"""A flow by id. ``start`` and ``time`` are -1 until known; ``first`` heads its list of edges, -1 for none."""
EDGE = np.dtype([("to", "i8"), ("next", "i8"), ("kind", "i8")])
NO = -1


@compiled
def _link(
    flows: Any, edges: Any, used: int, first_id: int, ptr: I64, ids: I64, kinds: NDArray[np.int8], out: I64
) -> tuple[int, int]:
    """Enter dependencies of flows from ``first_id`` on; (edges used, flows in ``out`` that wait no more)."""
    free = 0
    for k in range(len(ptr) - 1):
        flow = first_id + k
        for at in range(ptr[k], ptr[k + 1]):
            other = ids[at]
            known = flows[other].time if kinds[at] == 0 else flows[other].start
            if known >= 0:
                flows[flow].ready = max(flows[flow].ready, known)
            else:
                flows[flow].waits += 1
                edges[used].to = flow
                edges[used].kind = kinds[at]
                edges[used].next = flows[other].first
                flows[other].first = used
                used += 1
        if ptr[k + 1] > ptr[k] and flows[flow].waits == 0:
            out[free] = flow
            free += 1
    return used, free


@compiled
def _feed(flows: Any, edges: Any, ids: I64, times: I64, kind: int, out: I64) -> int:
    """Flows completed (kind 0) or started (1); how many in ``out`` wait no more."""
    free = 0
    for k in range(len(ids)):
        at = flows[ids[k]].first
        while at >= 0:
            if edges[at].kind == kind:
                to = edges[at].to
                flows[to].ready = max(flows[to].ready, times[k])
                flows[to].waits -= 1
                if flows[to].waits == 0:
                    out[free] = to
                    free += 1
            at = edges[at].next
    return free


class FlowBook:
    """Every flow of a session by its id, and who waits for whom. Grows with the flows ever given."""

    def __init__(self) -> None:
        self.flows: Any = np.zeros(1024, FLOW)
        self._edges: Any = np.zeros(1024, EDGE)
        self._edges_used = 0
        self._waiting = 0
        self.count = 0
        self.completed = 0

    def add(self, flows: FlatFlows) -> I64:
        """Enter flows; those that wait for nothing that isn't known yet, of those that have dependencies."""
        first, count = self.count, flows.count
        self.flows = _room(self.flows, first + count)
        rows = self.flows[first : first + count]
        for name in ("key_high", "key_low"):
            rows[name] = flows.columns[name]
        rows["reaction"], rows["delay"] = flows.columns["reaction_delay_ps"], flows.columns["delay_ps"]
        rows["start"] = rows["time"] = rows["first"] = NO
        self.count = first + count
        if not flows.has_dependencies:
            return np.empty(0, np.int64)
        self._edges = _room(self._edges, self._edges_used + len(flows.dependency_id))
        out = np.empty(count, np.int64)
        columns = flows.dependency_ptr, flows.dependency_id, flows.dependency_kind
        self._edges_used, free = _link(self.flows, self._edges, self._edges_used, first, *columns, out)
        self._waiting += int((np.diff(flows.dependency_ptr) > 0).sum()) - free
        return out[:free]

    def feed(self, ids: I64, times: I64, kind: int) -> I64:
        """Flows that wait no more now that these completed (0) or started (1)."""
        if not self._waiting:
            return np.empty(0, np.int64)
        out = np.empty(self._waiting, np.int64)
        free = _feed(self.flows, self._edges, ids, times, kind, out)
        self._waiting -= free
        return out[:free]


def _room(array: Any, need: int) -> Any:
    if need <= len(array):
        return array
    new = np.zeros(max(need, 2 * len(array)), array.dtype)
    new[: len(array)] = array
    return new
