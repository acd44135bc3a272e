"""What the kernel writes a job's programs from (``engine_tables.c``).

Where no operation looks back more than ``lag`` iterations, a rank has up to ``lag + 1`` of them open: one
begins when all but the ``lag`` before it have ended. What ends may let operations of iterations follow that
are to begin yet, up to ``lag`` further; so there are ``2 * lag + 1`` slots, and iteration i is in slot i
modulo that. A slot is reset when its iteration has ended, which is before anything of the next one there can
be let follow: what could, begins later. Without lags there is one slot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.engine.columns import NONE
from cosim.kernel import Columns, kernel
from cosim.network.flows import I32, I64
from cosim.workload.looked_up import once
from cosim.workload.operation import NO_STREAM, STORE, Operation, OpKind
from cosim.workload.table import OperationTable


@dataclass(frozen=True, slots=True)
class Slots:
    """A job has ``open`` iterations at once, in ``count`` slots."""

    open: int
    count: int


def slots_of(table: OperationTable) -> Slots:
    """What the longest lag of a job's operations needs."""
    lag = table.longest_lag
    return Slots(lag + 1, 2 * lag + 1)


_KIND = {OpKind.COLLECTIVE: kernel.OP_COLLECTIVE, OpKind.SEND: kernel.OP_SEND, OpKind.RECV: kernel.OP_RECV}
_ENDS = kernel.OP_SEND, kernel.OP_RECV, kernel.OP_REMOTE


class TableColumns(Columns):
    """A job's operations as its table has them, and what is found of them on the way."""


def source_of(table: OperationTable, *, over_fabric: bool, on_units: bool) -> TableColumns:
    """The operations of a table; with ``over_fabric`` accesses to remote memory are messages, with
    ``on_units`` computations are, whose size is their time.
    """
    known, how = _prototypes_of(table), (over_fabric, on_units)
    if how not in known:
        known[how] = _prototypes(table, over_fabric=over_fabric, on_units=on_units)
    of = known[how]
    most, streams = of.ends, of.streams
    return TableColumns(
        first=np.ascontiguousarray(table.first),
        like=np.ascontiguousarray(table.like),
        duration=np.ascontiguousarray(table.duration_ps),
        size=np.where(table.is_kind(OpKind.COMPUTE), table.duration_ps, table.size_bytes)
        if on_units
        else np.ascontiguousarray(table.size_bytes),
        peer=np.ascontiguousarray(table.peer),
        tag=np.ascontiguousarray(table.tag),
        dep_first=np.ascontiguousarray(table.dep_first),
        dep=np.ascontiguousarray(table.dep),
        lagged=_each_once(table.lagged),
        kind=of.kind,
        ahead=of.ahead,
        stream=of.stream,
        end=of.end,
        end_first=np.zeros(table.num_programs + 1, np.int32),
        end_row=np.empty(most, np.int32),
        hashes=room_to_hash(most),
        seen=np.zeros(len(table) if len(table.dep) else 0, np.int32),
        count=np.empty(streams + 1, np.int32),
        lane=np.empty(streams + 1, np.int32),
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Prototypes:
    """int32 of each prototype of a table; and how many rows are ends of messages, and streams there are."""

    kind: I32
    ahead: I32
    stream: I32
    end: I32
    ends: int
    streams: int


@once
def _prototypes_of(table: OperationTable) -> dict[tuple[bool, bool], _Prototypes]:  # noqa: ARG001 - whose
    """A table's, by what accesses and computations are."""
    return {}


def _prototypes(table: OperationTable, *, over_fabric: bool, on_units: bool) -> _Prototypes:
    prototypes = table.prototypes
    access = kernel.OP_REMOTE if over_fabric else kernel.OP_ACCESS
    compute = kernel.OP_REMOTE if on_units else kernel.OP_COMPUTE
    kinds = {**_KIND, OpKind.COMPUTE: compute}
    kind = [access if one.access else kinds.get(one.kind, kernel.OP_COMPUTE) for one in prototypes]
    streams = sorted({one.stream for one in prototypes} - {NO_STREAM})
    number = {name: k for k, name in enumerate(streams)}
    said: dict[object, int] = {}
    ends = [
        said.setdefault(_said(one), len(said)) if of in _ENDS else NONE
        for one, of in zip(prototypes, kind, strict=True)
    ]
    end = np.array(ends, np.int32)
    return _Prototypes(
        kind=np.array(kind, np.int32),
        ahead=np.array([one.ahead for one in prototypes], np.int32),
        stream=np.array([number.get(one.stream, len(streams)) for one in prototypes], np.int32),
        end=end,
        ends=int(np.count_nonzero(end[table.like] != NONE)) if said else 0,
        streams=len(streams),
    )


def room_to_hash(count: int) -> I32:
    """Where numbers of up to ``count`` rows are found by what is in these; no more than half full."""
    return np.full(2 << count.bit_length(), NONE, np.int32)


def _said(one: Operation) -> object:
    peer = None if one.peer is None else (one.peer.axis, one.peer.offset)
    return one.kind, peer, one.channel, one.access == STORE


def _each_once(lagged: I64) -> I64:
    return np.ascontiguousarray(np.unique(lagged, axis=0) if len(lagged) else lagged)


def most_rows(source: TableColumns, slots: Slots) -> dict[str, int]:
    """How many rows the kernel's ``write_programs`` adds at most."""
    rows, programs = len(source.like), len(source.first) - 1
    return {
        "ops": slots.count * rows,
        "successors": slots.count * (len(source.dep) + len(source.lagged)),
        "programs": programs,
        "lane_base": min(programs * len(source.lane), rows + programs),
        "roots": rows,
    }
