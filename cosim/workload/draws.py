"""Seeded draws that are the same on every machine: integers only, no logarithm, no generator's state. And
times that take longer or shorter by them: whole millionths, rounded down, exactly.

A draw is a hash of a seed and of numbers that say what is drawn, so it depends on nothing that happened
before. SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
doi:10.1145/2714064.2660195.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.workload.table import I64

U64 = NDArray[np.uint64]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
UNIT = 1 << 32
"""Draws are in units of 1 / UNIT."""


def mix(value: int) -> int:
    """SplitMix64's finalizer."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def draw(seed: int, *what: int) -> int:
    """An integer from 0 to 2**64 - 1, each as likely, that ``seed`` and ``what`` decide: the same everywhere.

    ``draw(seed, rank) % n`` is one of ``n``, ``draw(seed, rank) / 2**64`` a number from 0 to 1.
    """
    state = mix(seed + _GOLDEN & _MASK)
    for number in what:
        state = mix(state + number * _GOLDEN + _GOLDEN & _MASK)
    return state


def splitmix64(value: U64, seed: int) -> U64:
    """Output number ``value`` of SplitMix64 from a seed."""
    return _mixed((value + np.uint64(1)) * np.uint64(_GOLDEN) + np.uint64(seed % 2**64))


def _mixed(value: U64) -> U64:
    """:func:`mix` of each."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def normals(seed: int, what: tuple[int, ...], last: NDArray[np.int64]) -> NDArray[np.int64]:
    """About normal, mean 0 and deviation :data:`UNIT`, within 6 deviations: twelve uniform draws, added.

    One for each of ``last``, which ``seed``, ``what`` and it decide: halves of such draws.
    The Irwin-Hall sum of twelve has exactly that mean and deviation; only its tails, beyond three
    deviations, are lighter than a normal's.
    """
    golden = np.uint64(_GOLDEN)
    state = _mixed(last.astype(np.uint64) * golden + np.uint64(draw(seed, *what) + _GOLDEN & _MASK))
    total = np.zeros(len(last), np.uint64)
    for k in range(6):
        bits = _mixed(state + np.uint64(k * _GOLDEN + _GOLDEN & _MASK))
        total += (bits >> np.uint64(32)) + (bits & np.uint64(UNIT - 1))
    return total.astype(np.int64) - 6 * UNIT


def exponential(seed: int, *what: int) -> int:
    """An integer, exponential with mean 2**32 (:data:`UNIT`), by von Neumann's comparisons of uniform draws.

    J. von Neumann, "Various techniques used in connection with random digits", NBS Applied Mathematics
    Series 12 (1951): count how long uniforms fall; an odd run accepts the first, an even one adds a whole.
    """
    whole = tries = 0
    while True:
        first = last = draw(seed, *what, tries, 0) >> 32
        length = 1
        while (following := draw(seed, *what, tries, length) >> 32) < last:
            last = following
            length += 1
        if length % 2:
            return whole * UNIT + first
        whole += 1
        tries += 1


MILLION = 1_000_000


def scaled(duration_ps: I64, millionths: int) -> I64:
    """``duration_ps * millionths // 1_000_000`` of each, whose product need not fit int64.

    Raises
    ------
    OverflowError
        What comes out doesn't fit.
    """
    whole, rest = np.divmod(duration_ps, MILLION)
    if millionths < 1 << 42 and int(whole.max(initial=0)) * millionths < 1 << 62:
        return np.asarray(whole * millionths + rest * millionths // MILLION, np.int64)
    return np.array([one * millionths // MILLION for one in duration_ps.tolist()], np.int64)
