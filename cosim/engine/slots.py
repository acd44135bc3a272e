"""How many iterations of a rank are open at once, and the slots that they go round in.

Where no operation looks back more than ``lag`` iterations, a rank has up to ``lag + 1`` of them open: one
begins when all but the ``lag`` before it have ended. What ends may let operations of iterations follow that
are to begin yet, up to ``lag`` further; so there are ``2 * lag + 1`` slots, and iteration i is in slot i
modulo that. A slot is reset when its iteration has ended, which is before anything of the next one there can
be let follow: what could, begins later. Without lags there is one slot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.network.flows import I32, I64
from cosim.workload.table import OperationTable


@dataclass(frozen=True, slots=True)
class Slots:
    """Of a job: ``open`` iterations at once, in ``count`` slots."""

    open: int
    count: int


def slots_of(table: OperationTable) -> Slots:
    """What the longest lag of a job's operations needs."""
    lag = table.longest_lag
    return Slots(lag + 1, 2 * lag + 1)


@dataclass(frozen=True, eq=False, slots=True)
class SlotRows:
    """Operations of programs once for each slot: rows go by program, slot and number.

    ``row`` is the table's row of each, ``first[p]`` a program's first; ``successor`` are numbers within the
    program, slots and all, those of a row from ``successor_first`` on. ``waits``: how many it waits for, one
    of them the beginning of its iteration where nothing of that comes before it; ``early``: those of them
    that lie before the first iteration, when that is in slot 0.
    """

    row: I64
    slot: I64
    first: I64
    successor_first: I64
    successor: I32
    waits: I64
    early: I64


def in_slots(table: OperationTable, before: I64, after: I64, job: Slots) -> SlotRows:
    """Turn dependencies round, for all slots: row ``after[k]`` of the table waits for ``before[k]`` of the
    same iteration, each pair once, in ascending order of (before, after).
    """
    count, slots = len(table), job.count
    base = table.first[table.program]
    number = np.arange(count) - base
    if slots == 1:  # nothing looks back: all is in order as it is
        waits = np.maximum(np.bincount(after, minlength=count), 1)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(before, minlength=count))])
        none = np.zeros(count, np.int64)
        return SlotRows(
            np.arange(count), none, table.first, ends, number[after].astype(np.int32), waits, none
        )
    length = np.diff(table.first)
    late, reached, lag = _lagged(table)
    of = table.program.astype(np.int64)
    place0 = slots * base + number  # of a row in slot 0
    waits = np.bincount(after, minlength=count)
    waits += waits == 0  # the iteration's beginning
    waits += np.bincount(late, minlength=count)
    row, slot = (part.reshape(-1) for part in np.meshgrid(np.arange(count), np.arange(slots), indexing="ij"))
    order = np.argsort(place0[row] + slot * length[of[row]], kind="stable")
    row, slot = row[order], slot[order]
    early = np.zeros(len(row), np.int64)
    sources, targets = [], []
    every = np.concatenate([before, reached]), np.concatenate([after, late]), np.concatenate([0 * after, lag])
    for at in range(slots):
        to = (at + every[2]) % slots
        sources.append(place0[every[0]] + at * length[of[every[0]]])
        targets.append(number[every[1]] + to * length[of[every[1]]])
        np.add.at(early, place0[late] + at * length[of[late]], lag > at)
    source, target = np.concatenate(sources), np.concatenate(targets)
    order = np.argsort(source, kind="stable")
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(source, minlength=len(row)))])
    return SlotRows(row, slot, slots * table.first, ends, target[order].astype(np.int32), waits[row], early)


def _lagged(table: OperationTable) -> tuple[I64, I64, I64]:
    """Rows that wait, rows that they wait for, and lags, each once."""
    row, dep, lag = np.unique(table.lagged, axis=0).T
    return row, table.first[table.program[row]] + dep, lag
