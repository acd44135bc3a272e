"""Random numbers that follow from the run's seed, who draws and when: the same however a run is cut.

A connection has a salt; its numbers are drawn from that and the time, in the kernel (balancing.c). Mixing is
splitmix64's (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014, doi
10.1145/2660193.2660195).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import I64


def salts(seed: int, ends: NDArray[Any]) -> I64:
    """What a connection's chances come from: the run's seed and who it is, not when it was first met."""
    found = np.full(len(ends), seed & 0xFFFFFFFFFFFFFFFF, np.uint64)
    for column in ends.astype(np.uint64).T:
        found = (found ^ column) * np.uint64(0x9E3779B97F4A7C15)
        found = (found ^ (found >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
        found ^= found >> np.uint64(29)
    return found.view(np.int64)
