"""How long paths are, and how an all-to-all loads the links, by a topology's routing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.topology.graph import I64, Topology

_PAIRS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False, slots=True)
class PathLengths:
    """Lengths of all ordered pairs among ``endpoints`` endpoints.

    ``most`` and ``mean`` are links of a path; ``load`` int64[L] is how many pairs' paths take each link, so
    that an all-to-all of s bytes a pair brings it ``load`` times s.
    """

    endpoints: int
    most: int
    mean: float
    load: I64

    @property
    def busiest(self) -> int:
        """The first of the links that most pairs take."""
        return int(self.load.argmax())


def path_lengths(topology: Topology, endpoints: int) -> PathLengths:
    """Among the first ``endpoints`` endpoints, two at least, on channel 0.

    Raises
    ------
    UnreachableError
        A pair has no path.
    """
    load = np.zeros(topology.num_links, np.int64)
    most = total = 0
    each = max(1, _PAIRS_AT_ONCE // endpoints)
    for first in range(0, endpoints, each):
        some = np.arange(first, min(first + each, endpoints), dtype=np.int32)
        dst, src = np.repeat(some, endpoints), np.tile(np.arange(endpoints, dtype=np.int32), len(some))
        ptr, links = topology.paths(src, dst, np.zeros(len(src), np.int32))
        load += np.bincount(links, minlength=topology.num_links)
        most, total = max(most, int(np.diff(ptr).max(initial=0))), total + len(links)
    return PathLengths(endpoints, most, total / (endpoints * (endpoints - 1)), load)
