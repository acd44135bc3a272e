"""Flows as flat columns, and the same as protobuf messages.

A flat flow has no group: repeats are unrolled, participants are endpoints, dependencies are ids. On the wire
a column that is the same for all flows is one entry, and none where that is the default.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import ProtocolError
from cosim.network.flows import I8, I64
from cosim.protocol.v1 import network_simulator_pb2 as pb

LATER = -1
"""A start that is not given yet."""

DEFAULTS: dict[str, tuple[type[Any], int]] = {
    "key_high": (np.int64, 0),
    "key_low": (np.int64, 0),
    "src": (np.int32, 0),
    "dst": (np.int32, 0),
    "size_bytes": (np.int64, 0),
    "channel": (np.int32, 0),
    "start_ps": (np.int64, LATER),
    "cause_ps": (np.int64, LATER),
    "priority": (np.int32, 0),
    "weight": (np.float64, 1),
    "job": (np.int32, 0),
    "coflow": (np.int64, 0),
    "coflow_bytes": (np.int64, 0),
    "reaction_delay_ps": (np.int64, 0),
    "delay_ps": (np.int64, 0),
}
"""Each column's type and default. A cause of :data:`LATER` is the start's time."""

_ALL_DEFAULT = {name: np.array([default], dtype) for name, (dtype, default) in DEFAULTS.items()}
for _column in _ALL_DEFAULT.values():
    _column.flags.writeable = False

TRAITS = ("job", "coflow", "coflow_bytes", "priority", "weight")
"""Columns that belong to a group of flows, on the side of the seam."""


@dataclass(eq=False)
class FlatFlows:
    """Columns of flows ``first_id``, ``first_id + 1`` ...; ``columns`` has every name of :data:`DEFAULTS`,
    each of length n, or 1 where all flows share the value.

    ``dependency_ptr`` int64[n + 1], ``dependency_id`` int64[E], ``dependency_kind`` int8[E] as in
    :mod:`cosim.network.flows`.
    """

    first_id: int
    count: int
    columns: dict[str, NDArray[Any]]
    dependency_ptr: I64 = field(default_factory=lambda: np.zeros(1, np.int64))
    dependency_id: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    dependency_kind: I8 = field(default_factory=lambda: np.empty(0, np.int8))

    def column(self, name: str) -> NDArray[Any]:
        """A column at its full length."""
        values = self.columns[name]
        return values if len(values) == self.count else np.repeat(values, self.count)

    @property
    def has_dependencies(self) -> bool:
        """Whether any flow waits for another."""
        return len(self.dependency_id) > 0

    @property
    def pointers(self) -> I64:
        """``dependency_ptr``, also where no flow waits."""
        return self.dependency_ptr if self.has_dependencies else np.zeros(self.count + 1, np.int64)

    def runs(self) -> list[tuple[int, int]]:
        """(low, high) of flows that one group can hold: successive keys, and the same :data:`TRAITS`."""
        # A group's keys follow its flows: where they don't go up by one, or a trait differs, another group
        # begins.
        breaks = np.diff(self.column("key_low")) != 1
        for name in ("key_high", *TRAITS):
            if len(self.columns[name]) > 1:
                breaks |= np.diff(self.columns[name]) != 0
        cuts = [0, *(np.flatnonzero(breaks) + 1).tolist(), self.count]
        return list(itertools.pairwise(cuts)) if self.count else []

    def part(self, low: int, high: int) -> FlatFlows:
        """Flows ``low`` to ``high`` - 1 of these."""
        if low == 0 and high == self.count:
            return self
        columns = {k: v if len(v) == 1 < self.count else v[low:high] for k, v in self.columns.items()}
        if not self.has_dependencies:
            return FlatFlows(self.first_id + low, high - low, columns)
        first, last = int(self.dependency_ptr[low]), int(self.dependency_ptr[high])
        return FlatFlows(
            self.first_id + low,
            high - low,
            columns,
            self.dependency_ptr[low : high + 1] - first,
            self.dependency_id[first:last],
            self.dependency_kind[first:last],
        )


def join(parts: Iterable[FlatFlows]) -> FlatFlows:
    """Batches of successive ids as one."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([p.column(name) for p in parts]) for name in DEFAULTS}
    degree = [np.diff(p.pointers) for p in parts]
    ptr = np.zeros(sum(p.count for p in parts) + 1, np.int64)
    np.cumsum(np.concatenate(degree), out=ptr[1:])
    return FlatFlows(
        parts[0].first_id,
        len(ptr) - 1,
        columns,
        ptr,
        np.concatenate([p.dependency_id for p in parts]),
        np.concatenate([p.dependency_kind for p in parts]),
    )


def make(first_id: int, count: int, **columns: Any) -> FlatFlows:
    """Flows without dependencies from columns, scalars or nothing."""
    full = {}
    for name, (dtype, default) in DEFAULTS.items():
        # A value that all flows share stays one value, here as on the wire.
        full[name] = np.atleast_1d(np.asarray(columns.pop(name, default), dtype))
    if columns:
        raise TypeError(f"no columns {sorted(columns)}")
    return FlatFlows(first_id, count, full)


def decode(message: pb.Flows) -> FlatFlows:
    """Read flows from a message.

    Raises
    ------
    ProtocolError
        A column of another length than ``count``, 1 or 0.
    """
    count = message.count
    columns = {}
    for name, (dtype, _) in DEFAULTS.items():
        values = getattr(message, name)
        if len(values) not in (0, 1, count):
            raise ProtocolError(f"column {name} has {len(values)} entries; {count}, 1 or 0 would be right")
        columns[name] = array(values, dtype) if len(values) else _ALL_DEFAULT[name]
    ends = message.dependency_end
    if not len(ends):
        if len(message.dependency_id):
            raise ProtocolError("dependency_id without dependency_end")
        return FlatFlows(message.first_id, count, columns)
    ptr = np.zeros(len(ends) + 1, np.int64)
    ptr[1:] = array(ends, np.int64)
    ids = array(message.dependency_id, np.int64)
    kinds = array(message.dependency_kind, np.int8) - 1 if message.dependency_kind else np.zeros(len(ids))
    if len(ends) != count or (np.diff(ptr) < 0).any() or ptr[-1] != len(ids) or len(kinds) != len(ids):
        raise ProtocolError("dependency_end must rise to the number of dependencies, one entry for each flow")
    if len(kinds) and not 0 <= kinds.min() <= kinds.max() <= 1:
        raise ProtocolError("an unknown dependency_kind")
    return FlatFlows(message.first_id, count, columns, ptr, ids, kinds.astype(np.int8))


def array(values: Any, dtype: type[Any]) -> NDArray[Any]:
    """A packed field as a column.

    Raises
    ------
    ProtocolError
        A number that is none of this library's times or ids: they are below 2**63.
    """
    try:
        return np.fromiter(values, dtype, count=len(values))
    except OverflowError:
        raise ProtocolError(f"{max(values)} is more than a time or an id can be (2**63 - 1)") from None


def batches(count: int, most: int) -> Iterator[tuple[int, int]]:
    """[0, count) cut into runs of at most ``most``; one empty run for nothing."""
    low = 0
    while True:
        high = min(low + most, count)
        yield low, high
        if high == count:
            return
        low = high
