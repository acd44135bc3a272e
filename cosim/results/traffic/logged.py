"""Collectives that ranks logged: how long each kind took, and which rank or communicator is slow.

A rank's time runs from its own arrival, so the last to arrive has the shortest: what the collective itself
took. A rank is slow where it is the last in three of five of its collectives, by over a 20th of what the
next had to wait. A communicator is slow where its collectives take 1.2 times as long as the median of three
or more others of the same kind, size and ranks. Where there is one, the slow link or NIC is that of its rank
that is late elsewhere, or else of the rank that all such communicators share.

Not told: a rank that is late by design, as the last stage of a pipeline may be, from one that is slow; which
of several slow links a communicator has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.captures.traffic import I64, LoggedCollectives

_FEWEST = 5
_OFTEN = 0.6
_LATE = 0.05
_SLOW = 1.2
_OTHERS = 3


@dataclass(frozen=True)
class LoggedKind:
    """Collectives of one kind, size and number of ranks; times are those of the last rank to arrive."""

    kind: str
    size_bytes: int
    num_ranks: int
    count: int
    mean_ps: int
    wait_ps: int
    """Mean over collectives of what the first to arrive waited for the last."""


@dataclass(frozen=True)
class SlowRank:
    """A process that others wait for: in which share of its collectives, and how long, on average."""

    process: str
    share: float
    wait_ps: int


@dataclass(frozen=True)
class SlowGroup:
    """A communicator whose collectives take ``ratio`` times as long as others' of the same kind."""

    group: str
    processes: tuple[str, ...]
    kind: str
    ratio: float


@dataclass(frozen=True, eq=False)
class LoggedAnalysis:
    """What logs of collectives say; ``incomplete`` are collectives that not all ranks logged."""

    kinds: tuple[LoggedKind, ...]
    incomplete: int
    slow_ranks: tuple[SlowRank, ...]
    slow_groups: tuple[SlowGroup, ...]

    @property
    def slow_nic(self) -> str:
        """The process whose link or NIC is slow: of the slowest communicator, the one that is late elsewhere,
        or else the one that all slow ones have; empty: there is none, or it can't be told.
        """
        if not self.slow_groups:
            return ""
        late = [one for one in self.slow_ranks if one.process in self.slow_groups[0].processes]
        if late:
            return max(late, key=lambda one: one.wait_ps).process
        shared = set.intersection(*(set(one.processes) for one in self.slow_groups))
        return shared.pop() if len(shared) == 1 else ""


@dataclass(frozen=True, eq=False)
class _Whole:
    """Collectives that all ranks logged; a row each, but ``of``: the collective of each logged row."""

    group: I64
    kind: I64
    size: I64
    ranks: I64
    shortest: I64
    longest: I64
    second: I64
    last_process: I64


def analyse_logged(logged: LoggedCollectives) -> LoggedAnalysis:
    """Say of logged collectives how long they took, and what is slow."""
    collective = logged.peer < 0
    whole, incomplete = _whole(logged, collective)
    worst: dict[str, SlowGroup] = {}
    for one in sorted(_slow_groups(logged, whole), key=lambda one: -one.ratio):
        worst.setdefault(one.group, one)
    return LoggedAnalysis(
        tuple(_kinds(logged, whole)),
        incomplete,
        tuple(_slow_ranks(logged, collective, whole)),
        tuple(worst.values()),
    )


def _whole(logged: LoggedCollectives, collective: NDArray[np.bool_]) -> tuple[_Whole, int]:
    rows = np.flatnonzero(collective)
    order = rows[np.lexsort((logged.duration_ps[rows], logged.number[rows], logged.group[rows]))]
    group, number = logged.group[order], logged.number[order]
    fresh = np.append(True, (np.diff(group) != 0) | (np.diff(number) != 0))[: len(order)]
    first = np.flatnonzero(fresh)
    count = np.diff(np.append(first, len(order)))
    ranks = logged.num_ranks[order][first]
    whole = count == ranks
    at, last = first[whole], (first + count - 1)[whole]
    took = logged.duration_ps[order]
    return _Whole(
        group[at].astype(np.int64),
        logged.kind[order][at].astype(np.int64),
        logged.size_bytes[order][at],
        ranks[whole].astype(np.int64),
        took[at],
        took[last],
        took[np.minimum(at + 1, last)],
        logged.process[order][at].astype(np.int64),
    ), int((~whole).sum())


def _kinds(logged: LoggedCollectives, whole: _Whole) -> Iterator[LoggedKind]:
    keys = np.stack([whole.kind, whole.size, whole.ranks], axis=1)
    kinds, place = np.unique(keys, axis=0, return_inverse=True)
    count = np.bincount(place.ravel(), minlength=len(kinds))
    took = np.bincount(place.ravel(), whole.shortest, minlength=len(kinds))
    wait = np.bincount(place.ravel(), whole.longest - whole.shortest, minlength=len(kinds))
    for at in np.argsort(-took, kind="stable").tolist():
        kind, size, ranks = kinds[at].tolist()
        times = int(count[at])
        yield LoggedKind(
            logged.kinds[kind], size, ranks, times, round(took[at] / times), round(wait[at] / times)
        )


def _slow_ranks(
    logged: LoggedCollectives, collective: NDArray[np.bool_], whole: _Whole
) -> Iterator[SlowRank]:
    several = whole.ranks > 1
    late = several & (whole.second - whole.shortest > _LATE * whole.second)
    processes = len(logged.processes)
    last = np.bincount(whole.last_process[late], minlength=processes)
    waited = np.bincount(whole.last_process[late], (whole.second - whole.shortest)[late], minlength=processes)
    took_part = np.bincount(logged.process[collective & (logged.num_ranks > 1)], minlength=processes)
    share = last / np.maximum(took_part, 1)
    for at in np.flatnonzero((share >= _OFTEN) & (last >= _FEWEST)).tolist():
        yield SlowRank(logged.processes[at], float(share[at]), round(waited[at] / last[at]))


def _slow_groups(logged: LoggedCollectives, whole: _Whole) -> Iterator[SlowGroup]:
    keys = np.stack([whole.kind, whole.size, whole.ranks], axis=1)
    for key in np.unique(keys, axis=0):
        mine = (keys == key).all(axis=1)
        groups = np.unique(whole.group[mine])
        if len(groups) <= _OTHERS:
            continue
        took = np.array([np.median(whole.shortest[mine & (whole.group == one)]) for one in groups])
        middle = float(np.median(took))
        for at in np.flatnonzero(took > _SLOW * middle).tolist():
            members = np.unique(logged.process[logged.group == groups[at]])
            names = tuple(logged.processes[one] for one in members.tolist())
            ratio = float(took[at] / middle) if middle else float("inf")
            yield SlowGroup(logged.groups[groups[at]], names, logged.kinds[int(key[0])], ratio)
