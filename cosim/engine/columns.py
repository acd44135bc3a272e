"""The arrays of the engine's state, which grow here; compiled code sees them as a :class:`State`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine import state as s
from cosim.engine.state import State
from cosim.network.core import room_for_reports
from cosim.network.growing import ArrayLayout, GrowingArrays
from cosim.network.held_signals import held_signals

_ROWS: dict[str, np.dtype[Any]] = {
    "ops": s.OP,
    "successors": np.dtype(np.int32),
    "programs": s.PROGRAM,
    "roots": np.dtype(np.int32),
    "lane_base": np.dtype(np.int32),
    "jobs": s.JOB,
    "ranks": s.RANK,
    "slots": s.SLOT,
    "cells": s.CELL,
    "lanes": s.LANE,
    "pace": np.dtype(np.int64),
    "iteration_ends": np.dtype(np.int64),
    "traits": np.dtype(np.int32),
    "free_at": np.dtype(np.int64),
    "members": s.MEMBER,
    "ports": s.PORT,
    "comms": s.COMM,
    "comm_ranks": np.dtype(np.int32),
    "numbers": np.dtype(np.int32),
    "groups": s.GROUP,
    "plans": s.PLAN,
    "parts": s.PART,
    "where": s.WHERE,
    "subs": s.SUB,
    "positions": np.dtype(np.int32),
    "bindings": s.BINDING,
    "rendezvous": s.RENDEZVOUS,
    "words": np.dtype(np.int32),
    "channels": s.CHANNEL,
    "messages": s.MESSAGE,
    "handles": s.HANDLE,
    "agenda": s.EVENT,
    "ending": s.EVENT,
    "reactions": s.EVENT,
    "touched": s.EVENT,
    "begins": np.dtype(np.int32),
    "pumps": s.TASK,
    "enters": s.TASK,
    "dispatches": s.TASK,
    "opened": s.OPENED,
    "starts": s.START,
    "log": s.LOG,
    "collective_log": s.COLLECTIVE_LOG,
    "arrivals": s.ARRIVAL,
    "blocks": s.BLOCK,
    "info": np.dtype(np.int64),
}
"""What each array that grows is made of."""
_LEAST_ROWS = 1024
"""Of a table that has any: whenever one is replaced, the loop returns, and all of them are looked at."""
_MOST_ROWS = 1 << 15
_SPARE_ROWS = 1 << 9
"""Of lists that have room for all operations of a small run: up to so many, and so many more, in which what
one of them calls for finds room.
"""
_LOG_ROWS = 1 << 16
_USED = {
    "agenda": s.AGENDA_N,
    "ending": s.ENDING_N,
    "enters": s.ENTER_N,
    "pumps": s.PUMP_N,
    "dispatches": s.DISPATCH_N,
    "handles": s.HANDLE_TOP,
    "opened": s.OPENED_N,
    "starts": s.STARTS_N,
    "rendezvous": s.RENDEZVOUS_TOP,
    "messages": s.MESSAGE_TOP,
    "words": s.WORDS_TOP,
}
"""What the loop fills, and how far it is filled. (Logs are taken out when they are full.)"""
_TABLES = ("handles", "rendezvous", "words")
"""Of what the loop fills: rows that are looked at by number, whoever says it."""
_FIRST_TABLES = ArrayLayout({name: ((_LEAST_ROWS,), _ROWS[name]) for name in _TABLES})
_LISTS = (
    "agenda",
    "ending",
    "reactions",
    "enters",
    "pumps",
    "dispatches",
    "opened",
    "starts",
    "messages",
    "log",
    "collective_log",
    "arrivals",
)
"""And what is only looked at as far as it is filled, so that it need not be zeros."""
_NO_ROWS = ArrayLayout({name: ((0,), kind) for name, kind in _ROWS.items()}).zeros()
"""Nobody writes to these: they are every run's."""
_NO_ROOM: Mapping[str, int] = {}


class Columns:
    """Owns the arrays by name; ``meta`` has the loop's scalars."""

    def __init__(self, operations: int = 0) -> None:
        """``operations``: how many will end."""
        # Room from the start for what any run fills: the loop stops for each row that finds none. All
        # operations of a small one may be under way at once; a log is let go of when it is full.
        room = max(_LEAST_ROWS, min(operations + _SPARE_ROWS, _MOST_ROWS))
        logged = max(_LEAST_ROWS, min(operations + 1, _LOG_ROWS))
        rooms = dict.fromkeys(_LISTS, room) | {"log": logged, "collective_log": logged}
        lists = {name: np.empty(rows, _ROWS[name]) for name, rows in rooms.items()}
        self.arrays = GrowingArrays(_NO_ROWS | lists | _FIRST_TABLES.zeros())
        self.meta = self.arrays["meta"] = np.zeros(s.NUM_SCALARS, np.int64)
        for scalar in (s.HANDLE_FREE, s.RENDEZVOUS_FREE, s.MESSAGE_FREE, s.AT_RANK, s.AT_OP, s.START_AT):
            self.meta[scalar] = s.NONE
        self.meta[s.BURST] = 16
        self.arrays["digest"] = np.zeros(2, np.uint64)
        self.arrays["op_digest"] = np.zeros(2, np.uint64)
        self.arrays["plan_keys"] = np.full(64, s.NONE, np.int64)
        self.arrays["plan_values"] = np.zeros(64, np.int32)
        self.arrays["reported"] = room_for_reports(_LEAST_ROWS)
        self._used = dict.fromkeys(_ROWS, 0)
        self._view: State | None = None
        self._is_stale = False
        self._collectives: list[NDArray[Any]] = []
        self.on_operations: Callable[[NDArray[Any]], None] = _forget
        """Given operations that ended, in their order, now and then."""

    def view(self) -> State:
        """The arrays as they are now; stale after one was replaced."""
        if self._view is None:
            self._view = State(**self.arrays)
        elif self._is_stale:
            self._view.tell()
        self._is_stale = False
        return self._view

    def replace(self, name: str, array: Any) -> None:
        """Put another array in the place of one."""
        self.arrays[name] = array
        self._show(name)

    def reserve(self, name: str, need: int) -> None:
        """Have room for ``need`` rows."""
        if need > len(self.arrays[name]):
            self.arrays.reserve(name, max(need, _LEAST_ROWS))
            self._show(name)

    def _show(self, *names: str) -> None:
        """Have the view hold other arrays; at once, for it would keep those before alive."""
        if self._view is not None:
            self._view.hold(**{name: self.arrays[name] for name in names})
            self._is_stale = True

    def append(self, name: str, rows: NDArray[Any]) -> int:
        """Add rows to a table; the number of the first."""
        first, made = self.extend(name, len(rows))
        made[:] = rows
        return first

    def extend(self, name: str, count: int) -> tuple[int, NDArray[Any]]:
        """(Number of the first, view) of ``count`` more rows."""
        first = self._used[name]
        self._used[name] = first + count
        self.reserve(name, first + count)
        return first, self.arrays[name][first : first + count]

    def extend_all(self, counts: Mapping[str, int], room: Mapping[str, int] = _NO_ROOM) -> dict[str, int]:
        """The numbers of the first of so many more rows of each table, of which no more are expected; with
        ``room`` for so many more of others.
        """
        first = {name: self._used[name] for name in counts}
        for name, count in counts.items():
            self._used[name] += count
        needs = {name: self._used[name] for name in counts}
        needs |= {name: self._used[name] + count for name, count in room.items()}
        self._show(*self.arrays.reserve_all(needs))
        return first

    def used(self, name: str) -> int:
        """Rows of a table so far."""
        return self._used[name]

    def make_room(self) -> None:
        """Give the loop the room that it asked for."""
        meta = self.meta
        for name, scalar in _USED.items():
            need = int(meta[s.MOST_WORDS]) if name == "words" else int(meta[s.BURST])
            used = int(meta[scalar])
            if used + need > len(self.arrays[name]):
                self.reserve(name, 2 * (used + need))
        with held_signals():  # who is interrupted keeps whole rows, and each of them once
            if self._is_full("log", int(meta[s.LOG_N])):
                self.on_operations(self.last_operations())
            if self._is_full("collective_log", int(meta[s.COLLECTIVE_LOG_N])):
                self._collectives.append(self.arrays["collective_log"])
                self.replace("collective_log", np.zeros(_LOG_ROWS, s.COLLECTIVE_LOG))
                meta[s.COLLECTIVE_LOG_N] = 0

    def _is_full(self, name: str, used: int) -> bool:
        """Whether a log is full that is as long as one gets; a shorter one that is full grows."""
        room = len(self.arrays[name])
        if used < room:
            return False
        if room < _LOG_ROWS:
            self.reserve(name, 2 * room or _LEAST_ROWS)
        return room >= _LOG_ROWS

    def last_operations(self) -> NDArray[Any]:
        """Operations that ended and were not passed on; let go of here."""
        ended: NDArray[Any] = self.arrays["log"][: int(self.meta[s.LOG_N])]
        self.meta[s.LOG_N] = 0
        return ended

    def collectives(self) -> NDArray[Any]:
        """All rows of ``collective_log``, in the order in which they came; let go of here."""
        blocks = [*self._collectives, self.arrays["collective_log"][: int(self.meta[s.COLLECTIVE_LOG_N])]]
        self._collectives = []
        return np.concatenate(blocks)


def _forget(_: NDArray[Any]) -> None:
    """Nobody wants operations."""
