"""Slots of a switch that several jobs share by hash: who holds which of them when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.units import NEVER

_GOLDEN, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1


@dataclass(eq=False)
class Held:
    """Slots of a train of chunks: its first chunk has slot ``first``, each that follows the next one.

    Chunk k comes ``k * pace_ps`` after the first: from ``since_ps`` on it holds its slot, until the last
    rank's has come, ``until_ps`` for the first chunk; NEVER: that is not known yet.
    """

    first: int
    count: int
    pace_ps: int
    since_ps: int
    until_ps: int = NEVER


class SlotPool:
    """The slots of one switch."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._held: list[Held] = []

    def first_slot(self, owner: int, chunk: int) -> int:
        """The slot of a chunk: those of one owner follow each other, from where its hash says."""
        hashed = ((owner + 1) * _GOLDEN) & _MASK
        hashed = ((hashed ^ (hashed >> 31)) * _GOLDEN) & _MASK
        return int(((hashed >> 32) + chunk) % self.size)

    def free(self, wanted: Held) -> NDArray[np.bool_]:
        """Which chunks of a train find their slot free when they come: bool[count]."""
        self._held = [one for one in self._held if _end_ps(one) > wanted.since_ps]
        own = np.arange(wanted.count)
        comes = wanted.since_ps + own * wanted.pace_ps
        found = np.ones(wanted.count, np.bool_)
        for one in self._held:
            theirs = (wanted.first + own - one.first) % self.size
            there = theirs < one.count
            there &= comes >= one.since_ps + theirs * one.pace_ps
            if one.until_ps < NEVER:
                there &= comes < one.until_ps + theirs * one.pace_ps
            found &= ~there
        return found

    def hold(self, taken: Held) -> None:
        """Have a train hold its slots."""
        self._held.append(taken)


def _end_ps(held: Held) -> int:
    """When the last of a train's slots is free."""
    return NEVER if held.until_ps >= NEVER else held.until_ps + held.count * held.pace_ps
