"""Weighted ECMP: a connection keeps one path, drawn by a hash in proportion to the paths' slowest links.

Source: J. Zhou et al., "WCMP: Weighted Cost Multipathing for Improved Fairness in Data Centers", EuroSys
2014, doi:10.1145/2592798.2592803.
"""

from __future__ import annotations

from typing import ClassVar

from cosim.network.balancing.contract import Balancer


class Weighted(Balancer):
    """A hash draws among paths in proportion to their rates (WCMP, EuroSys 2014)"""

    uses_chance: ClassVar[bool] = True
    kernel = "choose_weighted"
