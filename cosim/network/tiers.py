"""Interpreted or compiled: which, and until when.

Compiling the loops of a run takes seconds, and many a run would be over in less. So what numba's cache on
disk doesn't have is interpreted at first (:mod:`cosim.network.twins`), and compiled when it was interpreted
for as long as is worth it, in the midst of a run if need be: the arrays are the same, and so are the results.
Runs one after another add up, each a process of its own: how long they interpreted lies beside the cache.
``COSIM_LOOPS`` in the environment says otherwise: ``compiled``, or ``interpreted``.
"""

from __future__ import annotations

import atexit
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher

from cosim.errors import InputError
from cosim.network import twins

MOST_S = 3.0
"""CPU-seconds that are interpreted before it is compiled: less than half of what compiling takes, so that who
interprets in vain pays half as much again."""
MOST_OPERATIONS = 20_000
"""Of a run; with more, that time is not enough."""
_MOST_ITEMS = 1 << 14
"""Of an array that a function is handed by itself; with more, it has much to do."""
_TURNS = 64
"""Of a loop, between two looks at the clock."""


class _Meter:
    """How long was interpreted, by this process and those before it."""

    def __init__(self) -> None:
        self._spent_s = 0.0
        self._began_s = 0.0
        self._turns = 0
        self._tally: Path | None = None

    @property
    def is_kept(self) -> bool:
        """Whether it is known where."""
        return self._tally is not None

    def keep_in(self, folder: Path) -> None:
        """Count what processes before this one left there, and leave the sum."""
        if self._tally is None:
            self._tally = folder / "interpreted_s.tally"
            with suppress(OSError, ValueError):
                self._spent_s += float(self._tally.read_text(encoding="ascii"))
            atexit.register(self._keep)

    def _keep(self) -> None:
        assert self._tally is not None
        left = self._spent_s if self._spent_s < MOST_S else 0.0  # it was compiled: from the beginning
        with suppress(OSError):
            self._tally.parent.mkdir(parents=True, exist_ok=True)
            self._tally.write_text(f"{left:.3f}\n", encoding="ascii")

    def begin(self) -> None:
        self._began_s = time.thread_time()

    def end(self) -> None:
        self._spent_s += max(time.thread_time() - self._began_s, 0.0)

    def spend(self) -> None:
        """Nothing more is to be interpreted."""
        self._spent_s = max(self._spent_s, MOST_S)

    def is_spent(self) -> bool:
        return self._spent_s >= MOST_S and _setting() != "interpreted"

    def is_due(self) -> bool:
        self._turns += 1
        if self._turns % _TURNS:
            return False
        self.end()
        self.begin()
        return self.is_spent()


_meter = _Meter()
is_spent = _meter.is_spent
"""Whether it was interpreted for long enough: what still is, is to be compiled."""
is_due = _meter.is_due
"""The same, asked by what is interpreted at each of its turns."""


_full = set[Any]()
"""Caches that have something: looked up once, for reading them takes as long as the loop of a small run."""


def _setting() -> str:
    found = os.environ.get("COSIM_LOOPS", "")
    if found not in ("", "compiled", "interpreted"):
        raise InputError(
            f"COSIM_LOOPS is {found!r} in the environment; it may be 'compiled' or 'interpreted'"
        )
    return found


def expect(operations: int) -> None:
    """Say how many operations a run has: one with many is not worth interpreting."""
    if operations > MOST_OPERATIONS:
        _meter.spend()


def _begins_interpreted(*, known: bool) -> bool:
    setting = _setting()
    return setting == "interpreted" or not (setting or known or _meter.is_spent())


def is_loop_interpreted(cache: Any) -> bool:
    """Whether a loop begins interpreted, of which this is numba's cache on disk."""
    if not _meter.is_kept:
        _meter.keep_in(Path(cache.cache_path))
    if cache not in _full and cache._cache_file._load_index():
        _full.add(cache)
    return _begins_interpreted(known=cache in _full)


def interpret(function: Any, *arguments: Any) -> Any:
    """What a compiled function does, by its twin."""
    _meter.begin()
    try:
        return twins.interpret(function, *arguments)
    finally:
        _meter.end()


def is_new(function: Any) -> bool:
    """Whether nothing of a compiled function is in this process or on disk yet, for any arguments."""
    return not function.overloads and not function._cache._cache_file._load_index()


class Tiered(CPUDispatcher):
    """A compiled function that is called from Python: interpreted until compiling it is worth it."""

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns."""
        if self._is_interpreted(arguments):
            return interpret(self, *arguments)
        plain: Any = self
        plain.__class__ = CPUDispatcher  # for good: numba's own way in is faster
        return plain(*arguments)

    def _is_interpreted(self, arguments: tuple[Any, ...]) -> bool:
        own = vars(self)
        if "known" not in own:  # it is read from disk
            own["known"] = not is_new(self)
        if not _begins_interpreted(known=bool(own["known"] or self.overloads)):
            return False
        much = any(isinstance(one, np.ndarray) and one.size > _MOST_ITEMS for one in arguments)
        return _setting() == "interpreted" or not much
