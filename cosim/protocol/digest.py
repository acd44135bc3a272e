"""The digest of a session: two order-free sums over (key, time) of every completion.

The definition, with values to test against, is in the protocol's README.md; the engine folds flows into a
run's digest by the same rule. Hashes are splitmix64's finalizer (Steele, Lea, Flood 2014,
doi:10.1145/2660193.2660195).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I64

_MASK = (1 << 64) - 1
_C1, _C2, _GOLDEN = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15
_N1, _N2, _NG = np.uint64(_C1), np.uint64(_C2), np.uint64(_GOLDEN)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_FEW = 6
"""Below, a Python loop is faster than numpy's calls."""


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * _C1) & _MASK
    x = ((x ^ (x >> 27)) * _C2) & _MASK
    return x ^ (x >> 31)


def _mix_column(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> _S30)) * _N1
    x = (x ^ (x >> _S27)) * _N2
    return x ^ (x >> _S31)


class Digest:
    """The sums so far."""

    __slots__ = ("a", "b")

    def __init__(self, a: int = 0, b: int = 0) -> None:
        self.a = a
        self.b = b

    def add(self, key_high: I64, key_low: I64, time_ps: I64) -> None:
        """Fold completions in, in any order."""
        if len(time_ps) < _FEW:
            for high, low, time in zip(key_high.tolist(), key_low.tolist(), time_ps.tolist(), strict=True):
                state = _mix((high + _GOLDEN) & _MASK)
                state = _mix((state + low + _GOLDEN) & _MASK)
                state = _mix((state + time + _GOLDEN) & _MASK)
                self.a = (self.a + state) & _MASK
                self.b = (self.b + _mix(state ^ _GOLDEN)) & _MASK
            return
        column = np.zeros(len(time_ps), np.uint64)
        for part in (key_high, key_low, time_ps):
            column = _mix_column(column + part.view(np.uint64) + _NG)
        self.a = (self.a + int(column.sum(dtype=np.uint64))) & _MASK
        self.b = (self.b + int(_mix_column(column ^ _NG).sum(dtype=np.uint64))) & _MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and (self.a, self.b) == (other.a, other.b)

    def __hash__(self) -> int:
        return hash((self.a, self.b))

    def __str__(self) -> str:
        return f"{self.a:016x}{self.b:016x}"
