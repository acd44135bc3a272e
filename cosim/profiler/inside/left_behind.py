"""Processes that a script has started and left: they end with its rank.

A process that adopts is told of all its descendants as its own children, also of those whose parents have
ended or that are of another session (Linux; elsewhere nothing is done).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Collection
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """Be the parent of what descendants leave behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end(besides: Collection[int] = ()) -> None:
    """End all children but ``besides``, and theirs, which are this process's once they are orphans."""
    seen = {*besides}
    while left := [child for child in _children() if child not in seen]:
        seen.update(left)  # one that can't be waited for is not tried again
        for child in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    found: list[int] = []
    for told in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            found += map(int, told.read_text().split())
    return found
