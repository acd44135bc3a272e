"""Crux's inner loop: of equal paths the least loaded, pair after pair. Imported on first use, as numba is."""

from __future__ import annotations

import numpy as np

from cosim.topology.graph import F64, I32, I64
from cosim.topology.lean import kept


@kept
def least_loaded(
    pairs: I64, count: I64, ptr: I64, links: I32, rate_bps: F64, sent_bps: F64, share: F64, chosen: I64
) -> None:
    """The row of the chosen path of each pair into ``chosen``, int64[P], job after job: the one whose busiest
    link has least load, then that with least in all, then the first.

    The next ``pairs[j]`` pairs are those of job j, the next ``count[p]`` rows of ``ptr`` and ``links`` the
    paths of pair p, which sends ``sent_bps[p]``. ``share``, float64[jobs, links], zeros, is filled with the
    part of each link's time that each job takes.
    """
    load = np.zeros(share.shape[1])
    row, pair = 0, 0
    for job in range(len(pairs)):
        mine = share[job]
        for _ in range(pairs[job]):
            least, together = -1.0, 0.0
            for _ in range(count[pair]):
                highest, total = 0.0, 0.0
                for at in range(ptr[row], ptr[row + 1]):
                    one = load[links[at]] + mine[links[at]]
                    highest = max(highest, one)
                    total += one
                if least < 0.0 or highest < least or (highest == least and total < together):
                    least, together, chosen[pair] = highest, total, row
                row += 1
            for at in range(ptr[chosen[pair]], ptr[chosen[pair] + 1]):
                mine[links[at]] += sent_bps[pair] / rate_bps[links[at]]
            pair += 1
        load += mine
