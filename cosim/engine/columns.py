"""The engine's state in columns: programs, ranks, collectives and messages as rows, none a Python object.

Tables that describe (operations, plans, bindings) are written in Python, most of them before a run; those
that run (cells, rendezvous, flow groups, heaps) by the kernel's loop. What each one is, ``kernel.h`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.kernel import Columns, kernel, record
from cosim.units import NEVER

NONE: int = kernel.NONE
_MOST_LOGGED = 1 << 16
"""Operations that ended, before they are taken out of the log."""


class PairTraffic(Columns):
    """Pairs of endpoints, and the bytes between them over time."""

    container = "traffic"


class Repeats(Columns):
    """What is kept of an interval, to be repeated; in states that are the same but for time."""


class EngineColumns(Columns):
    """All of it; ``scalars`` is the one row of ``state``."""

    container = "engine"

    def __init__(self) -> None:
        super().__init__(traffic=PairTraffic(), fct=np.zeros(kernel.FCT_BINS, np.int64))
        self.scalars = self.state[0]
        self.state_words = memoryview(self.state.view(np.int64))
        """The same numbers, each at its :func:`place`: for who reads them at each instant, much faster."""
        free = "free_handle", "free_rendezvous", "free_message", "free_ticket", "free_op"
        for name in (*free, "at_rank", "at_op", "start_at", "hold"):
            self.scalars[name] = NONE
        self.scalars["most_log"], self.scalars["since"] = _MOST_LOGGED, NEVER
        self._used: dict[str, int] = {}
        self.on_operations: Callable[[NDArray[Any], int], int] = _forget
        """Given operations that ended, and the time before which there is no other, now and then. How many
        are left, at the beginning."""

    def used(self, name: str) -> int:
        """Rows of a table so far."""
        return self._used.get(name, 0)

    def extend(self, name: str, count: int) -> tuple[int, NDArray[Any]]:
        """(Number of the first, view) of ``count`` more rows."""
        first = self.used(name)
        self._used[name] = first + count
        return first, self.lengthen(name, first + count)[first : first + count]

    def append(self, name: str, rows: NDArray[Any]) -> int:
        """Add rows to a table; the number of the first."""
        first, made = self.extend(name, len(rows))
        made[:] = rows
        return first

    def extend_all(self, counts: Mapping[str, int]) -> dict[str, int]:
        """The numbers of the first of so many more rows of each table."""
        return {name: self.extend(name, count)[0] for name, count in counts.items()}

    def pass_on_operations(self) -> None:
        """Have operations taken that ended, where they are many."""
        scalars = self.scalars
        if scalars["num_log"] >= scalars["most_log"]:
            settled = min(int(scalars["now"]), int(scalars["since"]))
            left = self.on_operations(self.log[: int(scalars["num_log"])], settled)
            scalars["num_log"], scalars["most_log"] = left, max(_MOST_LOGGED, 2 * left)

    def last_operations(self) -> NDArray[Any]:
        """Operations that ended and were not passed on; let go of here."""
        ended: NDArray[Any] = self.log[: int(self.scalars["num_log"])]
        self.scalars["num_log"] = 0
        return ended

    def collectives(self) -> NDArray[Any]:
        """Collectives that ended, in the order in which they were written; good until the loop goes on."""
        ended: NDArray[Any] = self.collective_log[: int(self.scalars["num_collective_log"])]
        return ended


def place(name: str) -> int:
    """Where a number of ``scalars`` is in ``state_words``."""
    fields = record("engine_state").fields
    assert fields is not None
    return int(fields[name][1]) // 8


def _forget(_: NDArray[Any], __: int) -> int:
    """Nobody wants operations."""
    return 0
