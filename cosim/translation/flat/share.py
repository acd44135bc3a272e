"""One rank's share of a template: its sends, its receives, and what they wait for.

A flow that waits for something else of its own sender, or for what arrived there, becomes a SEND of that rank
with dependencies on its own nodes. A delay before a flow becomes a computation before the SEND. That a flow
waits for the *start* of an earlier one of its rank (a receive is posted when the send of that step is issued)
is said by posting the receive with that send, where all that wait for the receive wait for that start too;
elsewhere by a node of no duration before the earlier send. Both give the flow's exact start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.errors import AlgorithmError
from cosim.network.flows import I8, I32, I64, ON_COMPLETION, ON_START
from cosim.pattern.template import Template
from cosim.translation.flat.nodes import COMPUTE, ENTRY, RECV, SEND

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PlaceNodes:
    """Nodes of one place in a template. ``peer`` is a place, ``sequence`` counts the messages of a pair;
    dependencies are numbered within the share, or :data:`~cosim.translation.flat.nodes.ENTRY`; ``ends`` are
    what the rank's exit waits for.
    """

    kind: I8
    peer: I32
    size_bytes: I64
    duration_ps: I64
    sequence: I64
    channel: I32
    dep_ptr: I64
    dep: I64
    ends: I64


class TemplateIndex:
    """Rows of a template by the ranks that send or receive them."""

    def __init__(self, template: Template) -> None:
        t = self.template = template
        rows = np.arange(len(t.src), dtype=np.int64)
        # A rank's flow to itself is seen by it once, not as a send and a receive.
        between = t.src != t.dst
        rank = np.concatenate([t.src, t.dst[between]])
        row = np.concatenate([rows, rows[between]])
        order = np.lexsort((row, rank))
        self._row = row[order]
        self._ptr = np.searchsorted(rank[order], np.arange(t.num_ranks + 1))
        self.span = self._span(between)

    def _span(self, between: Mask) -> int:
        """Most messages from one rank to another."""
        t = self.template
        if not between.any():
            return 1
        pair = t.src[between].astype(np.int64) * t.num_ranks + t.dst[between]
        repeat = np.repeat(t.block_repeat, np.diff(t.block_row))[between]
        _, at = np.unique(pair, return_inverse=True)
        return int(np.bincount(at, repeat).max())

    def flows(self, place: int) -> tuple[I64, I64]:
        """Flows that a rank sends or receives, ascending, and the row of each."""
        t = self.template
        rows = self._row[self._ptr[place] : self._ptr[place + 1]]
        cuts = np.searchsorted(rows, t.block_row)
        flows, found = [], []
        for block in range(len(t.block_repeat)):
            mine = rows[cuts[block] : cuts[block + 1]]
            if len(mine):
                count = int(t.block_row[block + 1] - t.block_row[block])
                repeat = np.arange(int(t.block_repeat[block]), dtype=np.int64)
                first = t.block_base[block] + mine - t.block_row[block]
                flows.append((first[None, :] + (repeat * count)[:, None]).ravel())
                found.append(np.tile(mine, len(repeat)))
        return np.concatenate(flows), np.concatenate(found)


def share_of(index: TemplateIndex, place: int) -> PlaceNodes:
    """The share of one place."""
    return _TemplateShare(index, place).share()


class _TemplateShare:
    def __init__(self, index: TemplateIndex, place: int) -> None:
        t = self.t = index.template
        self.place = place
        self.flow, self.row = index.flows(place)
        self.n = len(self.flow)
        self.own: Mask = t.src[self.row] == place
        self.is_recv = ~self.own
        self.is_send: Mask = self.own & (t.dst[self.row] != place)
        self.is_entry: Mask = self.flow < t.num_ranks
        self.is_exit: Mask = self.flow >= t.exit_base
        self.delay = np.where(self.own, t.delay_ps[self.row], 0)
        self._edges()
        self._post_receives()
        mark = self.own & ~self.is_send & ~self.is_entry & ~self.is_exit
        self.has_ready: Mask = self.own & ~self.is_entry & ((self.delay > 0) | mark)
        self.has_ready[self.to[self.on_start]] = True

    def _edges(self) -> None:
        """What own flows wait for, as columns: ``of`` waits for ``to`` (numbers in ``flow``)."""
        t = self.t
        own = np.flatnonzero(self.own)
        rows = self.row[own]
        degree = t.dep_ptr[rows + 1] - t.dep_ptr[rows]
        first = np.repeat(t.dep_ptr[rows], degree)
        place = np.arange(int(degree.sum())) - np.repeat(np.cumsum(degree) - degree, degree)
        at = first + place
        self.of = np.repeat(own, degree)
        wanted = self.flow[self.of] - t.dep_distance[at]
        self.to = np.minimum(np.searchsorted(self.flow, wanted), self.n - 1)
        if not np.array_equal(self.flow[self.to], wanted):
            raise AlgorithmError(f"{t.name}: rank {self.place} waits for a message that it doesn't see")
        self.on_start: Mask = (t.dep_kind[at] == ON_START) & ~self.is_entry[self.to]
        assert ON_COMPLETION != ON_START

    def _post_receives(self) -> None:
        """Turn waits for a start into the posting of a receive, where that says the same."""
        self.posted = np.full(self.n, -1, np.int64)
        start = np.flatnonzero(self.on_start)
        start = start[start > 0]
        before = start - 1
        good = (self.of[before] == self.of[start]) & ~self.on_start[before] & self.is_recv[self.to[before]]
        start, before = start[good], before[good]
        if not len(start):
            return
        receive, sent = self.to[before], self.to[start]
        key = receive * self.n + sent
        _, at, counts = np.unique(key, return_inverse=True, return_counts=True)
        waiters = np.bincount(self.to[~self.on_start], minlength=self.n)
        said = counts[at] == waiters[receive]
        self.posted[receive[said]] = sent[said]
        keep = np.ones(len(self.of), bool)
        keep[start[said]] = False
        self.of, self.to, self.on_start = self.of[keep], self.to[keep], self.on_start[keep]

    def share(self) -> PlaceNodes:
        n, t = self.n, self.t
        # Nodes before sorting: ready of flow f is f, its send or receive n + f.
        ready = np.flatnonzero(self.has_ready)
        moved = np.flatnonzero(self.is_send | self.is_recv)
        key_moved = np.maximum(moved, self.posted[moved]) * 3 + np.where(self.is_recv[moved], 2, 1)
        order = np.argsort(np.concatenate([ready * 3, key_moved]), kind="stable")
        raw = np.concatenate([ready, n + moved])[order]
        number = np.full(2 * n, ENTRY, np.int64)
        number[raw] = np.arange(len(raw))
        # What a flow's completion is: its message's end, or for a mark its start.
        completion = np.where(self.is_send | self.is_recv, number[n:], number[:n])
        to = np.where(self.on_start, number[self.to], completion[self.to])
        start_node = np.where(self.has_ready, number[:n], np.where(self.is_send, number[n:], ENTRY))
        leaves = self.is_exit[self.of] & ~self.has_ready[self.of]
        ends = to[leaves]
        of, to = self.of[~leaves], to[~leaves]
        edges_of, edges_to = [start_node[of]], [to]
        both = np.flatnonzero(self.has_ready & self.is_send)
        edges_of.append(number[n + both])
        edges_to.append(number[both])
        self._posted_edges(number, of, to, edges_of, edges_to)
        exit_ready = np.flatnonzero(self.is_exit & self.has_ready)
        ends = np.concatenate([ends, number[exit_ready]])
        node, dep = np.concatenate(edges_of), np.concatenate(edges_to)
        by = np.lexsort((dep, node))
        node, dep = node[by], dep[by]
        is_first = np.ones(len(node), bool)
        is_first[1:] = (node[1:] != node[:-1]) | (dep[1:] != dep[:-1])
        node, dep = node[is_first], dep[is_first]
        ptr = np.searchsorted(node, np.arange(len(raw) + 1))
        flow = raw % n
        is_ready = raw < n
        row = self.row[flow]
        recv = self.is_recv[flow] & ~is_ready
        kind = np.where(is_ready, COMPUTE, np.where(recv, RECV, SEND)).astype(np.int8)
        peer = np.where(is_ready, -1, np.where(recv, t.src[row], t.dst[row])).astype(np.int32)
        return PlaceNodes(
            kind=kind,
            peer=peer,
            size_bytes=np.where(is_ready, 0, t.bytes[row]),
            duration_ps=np.where(is_ready, self.delay[flow], 0),
            sequence=np.where(is_ready, 0, self._sequence()[flow]),
            channel=np.where(kind == SEND, t.channel[row], 0).astype(np.int32),
            dep_ptr=ptr.astype(np.int64),
            dep=dep,
            ends=np.unique(ends),
        )

    def _posted_edges(self, number: I64, of: I64, to: I64, edges_of: list[I64], edges_to: list[I64]) -> None:
        """A receive that is posted with a send waits for what the send's start waits for."""
        n = self.n
        receives = np.flatnonzero(self.posted >= 0)
        sends = self.posted[receives]
        plain = self.has_ready[sends]
        edges_of.append(number[n + receives[plain]])
        edges_to.append(number[sends[plain]])
        receives, sends = receives[~plain], sends[~plain]
        if not len(receives):
            return
        # ``of`` is ascending: the edges of a send are a run.
        low, high = np.searchsorted(of, sends), np.searchsorted(of, sends, side="right")
        count = high - low
        at = np.repeat(low, count) + np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        edges_of.append(np.repeat(number[n + receives], count))
        edges_to.append(to[at])

    def _sequence(self) -> I64:
        """The number of each message among those of its pair, in its direction."""
        t = self.t
        other = np.where(self.is_recv, t.src[self.row], t.dst[self.row]).astype(np.int64) * 2 + self.is_recv
        order = np.argsort(other, kind="stable")
        grouped = other[order]
        first = np.searchsorted(grouped, grouped)
        sequence = np.empty(self.n, np.int64)
        sequence[order] = np.arange(self.n) - first
        return sequence
