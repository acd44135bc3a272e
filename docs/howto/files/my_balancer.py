"""A load balancer of your own: of two paths drawn at random and the last one, the one that fewest use."""

from typing import ClassVar

import numpy as np

from cosim.plugins import Balancer


class TwoAndTheLast(Balancer):
    """The path with the fewest connections, among two drawn at random and the last one"""

    looks: ClassVar[bool] = True
    one_by_one: ClassVar[bool] = True
    uses_chance: ClassVar[bool] = True

    keep: float = 0.5
    """How much better another path has to be, in connections"""

    def choose(self, c):
        rows = np.arange(len(c))
        last = np.maximum(c.path, 0).astype(int)
        best, least = last, c.path_flows[rows, last] - self.keep
        for lot in (c.chance, c.chance * 65536 % 1):
            path = np.floor(lot * c.paths).astype(int)
            flows = c.path_flows[rows, path]
            better = (c.path_alive[rows, path] == 1) & (
                (flows < least) | (c.first == 1) & (flows <= least + self.keep)
            )
            best, least = np.where(better, path, best), np.where(better, flows, least)
        c.path = best
