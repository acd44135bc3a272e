"""Processes that need the same loop, which is not in the cache on disk yet, take turns: one compiles it.

So the workers of a sweep, servers beside a run, and tests side by side do not all compile the same. Who holds
a turn and is stopped does not hold up others for ever: they compile for themselves.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock

from cosim.files.lock import try_lock
from cosim.network.held_signals import held_signals

_PATIENCE_S = 60.0
_GLANCE_S = 0.02


def in_turns(made: Any) -> Any:
    """Have what numba made of a function, with a cache on disk, compile only while no other process does."""
    index = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if index is None:
        return made
    alone = made.compile

    def compile_in_turn(*given: Any) -> Any:
        # Threads first, then processes: the other way round, two threads could wait for each other.
        with held_signals(), global_compiler_lock, _turn(Path(index._index_path).with_suffix(".lock")):
            return alone(*given)

    made.compile = compile_in_turn
    return made


@contextmanager
def _turn(place: Path) -> Iterator[None]:
    """Hold the lock of a file, if it can be had and written to."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:  # nothing can be kept there: everyone compiles
        yield
        return
    try:
        until = time.monotonic() + _PATIENCE_S
        while not try_lock(file) and time.monotonic() < until:
            time.sleep(_GLANCE_S)
        yield
    finally:
        os.close(file)
