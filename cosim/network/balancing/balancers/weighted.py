"""Weighted ECMP: a connection keeps one path, drawn by a hash in proportion to the paths' slowest links.

Source: J. Zhou et al., "WCMP: Weighted Cost Multipathing for Improved Fairness in Data Centers", EuroSys
2014, doi:10.1145/2592798.2592803.
"""

from __future__ import annotations

from typing import Any, ClassVar

from cosim.network.balancing.contract import Balancer
from cosim.network.calendar import Records
from cosim.network.flows import F64


def weighted(n: int, rows: Records, paths: Records, state: F64, p: F64) -> None:
    """Takes no parameters."""
    for i in range(n):
        row: Any = rows[i]
        count = int(row.paths)
        if row.path >= 0.0 and paths[i, int(row.path)].alive != 0.0:
            continue
        total = 0.0
        for k in range(count):
            path: Any = paths[i, k]
            total += path.rate * path.alive
        left = row.hash * total
        row.path = max(row.path, 0.0)
        for k in range(count):
            path = paths[i, k]
            if path.alive != 0.0:
                row.path = float(k)
                left -= path.rate
                if left < 0.0:
                    break


class Weighted(Balancer):
    """A hash draws among paths in proportion to their rates (WCMP, EuroSys 2014)"""

    uses_chance: ClassVar[bool] = True
    kernel = weighted
