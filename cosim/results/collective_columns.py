"""Collectives of a run as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.collective_records import CollectiveRecords
from cosim.engine.records import CollectiveRecord
from cosim.results.table import Labels, labels

I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CollectiveColumns:
    """int64 columns, as in :class:`~cosim.engine.records.CollectiveRecord`, in its order.

    ``group[i]`` is the number in ``groups`` of the ranks of collective i.
    """

    job: I64
    iteration: I64
    op: I64
    name: Labels
    collective: Labels
    algorithm: Labels
    group: I64
    groups: tuple[I64, ...]
    group_size: I64
    size_bytes: I64
    messages: I64
    start_ps: I64
    ready_ps: I64
    end_ps: I64
    copies: I64

    def __len__(self) -> int:
        return len(self.job)

    def ranks(self, rows: I64) -> tuple[I64, I64]:
        """Ranks of some collectives, one after the other, and how many each has."""
        sizes = np.array([len(group) for group in self.groups], np.int64)[self.group[rows]]
        parts = [self.groups[number] for number in self.group[rows]]
        return np.concatenate([np.zeros(0, np.int64), *parts]), sizes


def collective_columns(records: Sequence[CollectiveRecord]) -> CollectiveColumns:
    """The columns of a run's collectives."""
    if not isinstance(records, CollectiveRecords):
        return _columns(records)
    # Rows share their groups, plans and operations: what is of those is found once.
    columns: dict[str, Any] = {name: records.column(column) for name, column in _OF_ROWS.items()}
    for key, names in _SHARED.items():
        rows, kind = records.kinds(*key)
        shared = _columns([records[at] for at in rows.tolist()])
        for name in names:
            one = getattr(shared, name)
            columns[name] = Labels(one.codes[kind], one.names) if isinstance(one, Labels) else one[kind]
        if "group" in names:
            columns["groups"] = shared.groups
    rows, kind = records.kinds("program", "op")
    operations = records.operations(rows)
    for name in ("name", "collective"):
        texts = labels([getattr(one, name) for one in operations])
        columns[name] = Labels(texts.codes[kind], texts.names)
    columns["size_bytes"] = np.array([one.size_bytes for one in operations], np.int64)[kind]
    return CollectiveColumns(**columns)


_OF_ROWS = {
    "iteration": "iteration",
    "op": "number",
    "start_ps": "start",
    "ready_ps": "ready",
    "end_ps": "end",
}
_SHARED = {
    ("comm",): ("job", "group", "group_size", "copies"),
    ("plan",): ("algorithm", "messages"),
}
"""What rows have of their own, and what those of one group or plan share."""


def _columns(records: Sequence[CollectiveRecord]) -> CollectiveColumns:
    named = dict(zip(CollectiveRecord._fields, zip(*records, strict=True), strict=False))
    numbers = {
        name: np.array(named.get(name, ()), np.int64)
        for name in ("job", "iteration", "op", "size_bytes", "messages", "start_ps", "ready_ps", "end_ps")
    }
    ranks: tuple[tuple[int, ...], ...] = named.get("ranks", ())
    # A group's ranks are one tuple in all its collectives, and long ones take long to hash.
    found = {id(one): one for one in ranks}
    place = {identity: number for number, identity in enumerate(found)}
    group = np.array([place[id(one)] for one in ranks], np.int64)
    groups = tuple(np.array(one, np.int64) for one in found.values())
    sizes = np.array([len(one) for one in groups], np.int64)
    return CollectiveColumns(
        name=labels(named.get("name", ())),
        collective=labels(named.get("collective", ())),
        algorithm=labels(named.get("algorithm", ())),
        group=group,
        groups=groups,
        group_size=sizes[group] * np.array(named.get("folded", ()), np.int64),
        copies=np.array(named.get("copies", ()), np.int64),
        **numbers,
    )
