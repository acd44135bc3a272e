"""Valiant's load balancing: every message goes by way of a switch drawn at random, whatever is shorter.

Any traffic then looks like uniform traffic, at the price of paths of twice the length. Source: L. G. Valiant,
"A Scheme for Fast Parallel Communication", SIAM J. Comput. 11(2), 1982, doi:10.1137/0211027.
"""

from __future__ import annotations

from typing import ClassVar

from cosim.network.balancing.contract import Balancer


class Valiant(Balancer):
    """Every message by way of a switch drawn at random (Valiant, 1982)"""

    detours: ClassVar[bool] = True
    uses_chance: ClassVar[bool] = True
    kernel = "choose_valiant"
