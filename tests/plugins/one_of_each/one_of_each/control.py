"""A congestion control: a packet more each round trip, half where anything was marked."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from cosim.plugins import Control


class Step(Control):
    """A packet more each round trip, a fraction less at any mark"""

    state: ClassVar[dict[str, float]] = {"marks": 0.0}

    cut: float = Field(0.5, gt=0, lt=1, description="of the window, at a mark")

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float]:
        return 20.0 * mtu_bytes, 20.0 * mtu_bytes, 1.0

    def update(self, c: Any) -> None:
        c.marks = c.marks + (c.marked > 0)
        c.window = np.maximum(np.where(c.marked > 0, c.window * (1 - self.cut), c.window + c.mss), c.mss)
