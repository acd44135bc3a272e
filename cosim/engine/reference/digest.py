"""What a run is known by: sums over all completions, and over all starts and ends of operations.

A sum, modulo 2^64 and twice with different mixing, of a hash of each: the same whatever the order they come
in, and however a run is cut. Hashes are built with splitmix64's finalizer (Steele, Lea, Flood 2014,
doi:10.1145/2660193.2660195).
"""

from __future__ import annotations

_GOLDEN = 0x9E3779B97F4A7C15
_64_BITS = (1 << 64) - 1


def _mix(value: int) -> int:
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _64_BITS
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _64_BITS
    return value ^ (value >> 31)


class RunDigest:
    """The two sums."""

    def __init__(self) -> None:
        self.sums = [0, 0]

    def add(self, *numbers: int) -> None:
        """Count one more: a completion's (key high, key low, time), or all that is known of an operation."""
        hashed = 0
        for number in numbers:
            hashed = _mix((hashed + number + _GOLDEN) & _64_BITS)
        self.sums[0] += hashed
        self.sums[1] += _mix(hashed ^ _GOLDEN)

    def __add__(self, other: RunDigest) -> str:
        """Both together, as it is printed."""
        return "".join(f"{(a + b) & _64_BITS:016x}" for a, b in zip(self.sums, other.sums, strict=True))
