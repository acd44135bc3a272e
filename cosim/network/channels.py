"""Channels: flows of one (job, source, destination, channel) go in order, one at a time.

Each such quadruple gets a small number when a table is first bound to endpoints; a hash table in columns
finds it again.
"""

from __future__ import annotations

import numpy as np

from cosim.network.calendar import Records
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled, inlined

CHANNEL = np.dtype([("head", "i4"), ("tail", "i4"), ("seen", "i8")])
"""Its flow under way and the last one that waits behind it (slots, or -1); the last instant with a start."""

_NAME = np.dtype([("high", "i8"), ("low", "i8")])
_NONE = -1
_LOW = (1 << 32) - 1
_LEAST = 64


@inlined
def pair_hash(high: int, low: int) -> np.int64:
    """Where a table begins to look for two numbers: 32 bits, of which it takes the lowest."""
    mixed = np.uint64(high) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(low)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(mixed >> np.uint64(32))


@inlined
def _place(names: Records, hashes: I32, high: int, low: int) -> int:
    """Where in ``hashes`` the number of (high, low) is, or is to be."""
    mask = len(hashes) - 1
    slot = pair_hash(high, low) & mask
    one = hashes[slot]
    while one != _NONE and (names[one].high != high or names[one].low != low):
        slot = (slot + 1) & mask
        one = hashes[slot]
    return int(slot)


@compiled
def _number(
    names: Records, hashes: I32, used: int, job: int, src: I32, dst: I32, channel: I32, numbers: I32
) -> int:
    """Number each (job, source, destination, channel); how many there are now."""
    for k in range(len(src)):
        high = (job << 32) | (int(channel[k]) & _LOW)
        low = (int(src[k]) << 32) | int(dst[k])
        slot = _place(names, hashes, high, low)
        one = hashes[slot]
        if one == _NONE:
            one = used
            used += 1
            hashes[slot] = one
            names[one].high = high
            names[one].low = low
        numbers[k] = one
    return used


@compiled
def _fill_hashes(names: Records, hashes: I32) -> None:
    """Have a table that is empty find these names."""
    for one in range(len(names)):
        hashes[_place(names, hashes, names[one].high, names[one].low)] = one


class ChannelNumbers:
    """Numbers quadruples in the order in which they are first seen."""

    def __init__(self) -> None:
        self._names = np.empty(0, _NAME)
        self._hashes = np.empty(0, np.int32)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def number(self, job: int, src: I32, dst: I32, channel: I32) -> I32:
        """The number of each row's channel, int32[R]."""
        self._make_room(len(src))
        numbers = np.empty(len(src), np.int32)
        self._used = _number(self._names, self._hashes, self._used, job, src, dst, channel, numbers)
        return numbers

    def ends(self, numbers: I64) -> tuple[I32, I32, I32]:
        """Job, source and destination of channels."""
        name = self._names[numbers]
        high, low = name["high"], name["low"]
        ends = (high >> 32, low >> 32, low & 0x7FFFFFFF)
        return ends[0].astype(np.int32), ends[1].astype(np.int32), ends[2].astype(np.int32)

    def _make_room(self, more: int) -> None:
        need = self._used + more
        if need <= len(self._names):
            return
        size = max(_LEAST, 1 << need.bit_length())
        old, self._names = self._names, np.empty(size, _NAME)
        self._hashes = np.empty(2 * size, np.int32)
        self._hashes.fill(_NONE)
        if self._used:
            self._names[: self._used] = old[: self._used]
            _fill_hashes(self._names[: self._used], self._hashes)
