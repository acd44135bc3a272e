"""Additive increase, multiplicative decrease, with settings."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from cosim.plugins import Control


class Aimd(Control):
    """A few packets more each round trip, a part of the window at any mark or loss"""

    state: ClassVar[dict[str, float]] = {"cut": 0.0}  # a column for each connection, with its first value
    settles: ClassVar[bool] = True  # an update that changed nothing changes nothing until a link queues

    packets: float = Field(1.0, gt=0, description="more each round trip")
    keep: float = Field(0.5, gt=0, lt=1, description="of the window after a mark or loss")

    def marking(self, rate_bps, mtu_bytes):
        return 65.0 * mtu_bytes, 65.0 * mtu_bytes, 1.0  # all packets from 65 in the queue on

    def update(self, c):
        hit = ((c.marked > 0) | (c.lost > 0)) & (c.cut == 0)  # not again for what the round under way met
        grown = c.window + self.packets * c.mss * c.limited
        c.window = np.where(hit, np.maximum(self.keep * c.window, c.mss), grown)
        c.cut = hit
