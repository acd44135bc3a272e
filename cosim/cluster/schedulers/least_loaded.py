"""Crux's inner loop: of equal paths the least loaded, pair after pair. Imported on first use, as numba is."""

from __future__ import annotations

from numba import njit

from cosim.topology.graph import F64, I32, I64


@njit(cache=True)
def least_loaded(
    count: I64, ptr: I64, links: I32, rate_bps: F64, sent_bps: F64, load: F64, mine: F64, chosen: I64
) -> None:
    """The row of the chosen path of each pair into ``chosen``, int64[P]: the one whose busiest link has least
    load, then that with least in all, then the first.

    ``count[p]`` rows of ``ptr`` and ``links`` are the paths of pair p, which sends ``sent_bps[p]``. ``load``
    and ``mine``, float64[links], are the shares of each link's time that others and these pairs take; the
    latter grows.
    """
    first = 0
    for pair in range(len(count)):
        least, together = -1.0, 0.0
        for row in range(first, first + count[pair]):
            highest, total = 0.0, 0.0
            for at in range(ptr[row], ptr[row + 1]):
                one = load[links[at]] + mine[links[at]]
                highest = max(highest, one)
                total += one
            if least < 0.0 or highest < least or (highest == least and total < together):
                least, together, chosen[pair] = highest, total, row
        first += count[pair]
        for at in range(ptr[chosen[pair]], ptr[chosen[pair] + 1]):
            mine[links[at]] += sent_bps[pair] / rate_bps[links[at]]
