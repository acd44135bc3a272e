"""A congestion control of your own: DCTCP's window, cut less the more of its iteration a job has sent."""

from typing import ClassVar

import numpy as np

from cosim.plugins import Control


class FinishFirst(Control):
    """Who has less left to send of its iteration gives way less"""

    state: ClassVar[dict[str, float]] = {"alpha": 1.0, "cut": 0.0}

    gain: float = 0.0625
    """Weight of the newest round in alpha"""
    least: float = 0.2
    """How much of DCTCP's cut is left at the end of an iteration"""

    def marking(self, rate_bps, mtu_bytes):
        return 65.0 * mtu_bytes, 65.0 * mtu_bytes, 1.0  # a step

    def update(self, c):
        c.alpha = (1 - self.gain) * c.alpha + self.gain * c.marked
        done = c.coflow_sent / np.maximum(c.coflow_size, 1)
        share = 1 - (1 - self.least) * done
        cut = (c.marked > 0) & (c.cut == 0)  # not again for what the round under way met
        grown = np.where(c.limited == 1, c.window + c.mss, c.window)
        c.window = np.where(cut, np.maximum(c.window * (1 - share * c.alpha / 2), c.mss), grown)
        c.cut = cut
