"""Ends of messages of programs, as columns: alike ones of a program once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.state import NONE
from cosim.network.flows import I32, I64
from cosim.workload.operation import STORE
from cosim.workload.program import DeviceMesh, OpKind
from cosim.workload.table import OperationTable


@dataclass(frozen=True, eq=False, slots=True)
class Ports:
    """``count[p]`` ends of program p, after those of programs before; ``like`` are positions in the table's
    prototypes, ``fixed`` ranks at the other end, NONE where the prototype says an axis and an offset.
    """

    count: I64
    sends: NDArray[np.bool_]
    like: I32
    fixed: I64
    tag: I64
    size_bytes: I64
    channel: I64
    table: OperationTable

    def peers(self, mesh: DeviceMesh, world: int, port: I64, rank: I64) -> I64:
        """int64[rows]: who is at the other end of ports of ranks, NONE where there is nobody."""
        prototypes, axes = self.table.prototypes, list(mesh.axes)
        stride, size, offset = (np.zeros(len(prototypes), np.int64) for _ in range(3))
        for k in np.unique(self.like[self.fixed < 0]).tolist():
            peer = prototypes[k].peer
            if peer is not None and peer.axis is not None and peer.axis in mesh.axes:
                after = axes[axes.index(peer.axis) + 1 :]
                stride[k] = int(np.prod([mesh.axes[name] for name in after], dtype=np.int64))
                size[k], offset[k] = mesh.axes[peer.axis], peer.offset
        like = self.like[port]
        place = rank // np.maximum(stride[like], 1) % np.maximum(size[like], 1) + offset[like]
        inside = (stride[like] > 0) & (place >= 0) & (place < size[like])
        found = np.where(inside, rank + offset[like] * stride[like], self.fixed[port])
        return np.where((found >= 0) & (found < world) & (found != rank), found, NONE)


def ports_of(table: OperationTable, *, accesses: bool = False) -> tuple[Ports, I64]:
    """The ends of messages of a table's programs, and int64[rows]: each one's number within its program, 0
    for what is no end. With ``accesses`` those to memory nodes are such ends, too, without a peer.
    """
    is_end = table.is_kind(OpKind.SEND, OpKind.RECV)
    row = np.flatnonzero(is_end | table.is_access if accesses else is_end)
    stores = np.array([one.access == STORE for one in table.prototypes], np.int64)[table.like[row]]
    channel = np.array([one.channel for one in table.prototypes], np.int64)[table.like[row]]
    kind, alike = table.kind[row], _alike(table)[table.like[row]]
    columns = (
        table.program[row],
        kind,
        table.peer[row],
        alike,
        table.tag[row],
        table.size_bytes[row],
        channel,
        stores,
    )
    one, number = unique_rows(*columns)
    mine = row[one]
    count = np.bincount(table.program[mine], minlength=table.num_programs)
    ref = np.zeros(len(table), np.int64)
    ref[row] = number - (np.cumsum(count) - count)[table.program[row]]
    sends = table.is_kind(OpKind.SEND)[mine]
    fixed, like = table.peer[mine], table.like[mine]
    return Ports(count, sends, like, fixed, table.tag[mine], table.size_bytes[mine], channel[one], table), ref


def _alike(table: OperationTable) -> I64:
    """int64[prototypes]: prototypes have the same number whose peers are said alike."""
    numbers: dict[object, int] = {}
    said = (None if one.peer is None else (one.peer.axis, one.peer.offset) for one in table.prototypes)
    return np.array([numbers.setdefault(one, len(numbers)) for one in said], np.int64)


def unique_rows(*columns: NDArray[Any]) -> tuple[I64, I64]:
    """(Positions of one row of each kind, in ascending order of kinds; int64[rows]: the kind of each row)."""
    keys = _packed(columns)
    order = np.lexsort(keys[::-1])
    fresh = np.ones(len(order), np.bool_)
    if len(order):
        fresh[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    kind = np.empty(len(order), np.int64)
    kind[order] = np.cumsum(fresh) - 1
    return order[fresh], kind


def _packed(columns: Sequence[NDArray[Any]]) -> list[I64]:
    """Columns of which rows are equal, and in order, where those of ``columns`` are: as few as hold them,
    since it is sorted by each.
    """
    keys: list[I64] = []
    values = _ROOM  # of the last key
    for column in columns:
        mine = column.astype(np.int64)
        low = int(mine.min(initial=_ROOM))
        width = int(mine.max(initial=low)) - low + 1
        if values * width < _ROOM:
            keys[-1] = keys[-1] * width + (mine - low)
            values *= width
        else:
            keys.append(mine if width >= _ROOM else mine - low)
            values = width
    return keys


_ROOM = 1 << 62
"""Fewer values than this are an int64."""
