"""Channels: flows of one (job, source, destination, channel) go in order, one at a time.

Each such quadruple gets a small number when a table is first bound to endpoints; a hash table finds it again.
"""

from __future__ import annotations

import numpy as np

from cosim.kernel import Columns, kernel
from cosim.network.flows import I32, I64


class ChannelNumbers(Columns):
    """Numbers quadruples in the order in which they are first seen."""

    def __len__(self) -> int:
        return int(self.used)

    def number(self, job: int, src: I32, dst: I32, channel: I32) -> I32:
        """The number of each row's channel, int32[R]."""
        numbers = np.empty(len(src), np.int32)
        ends = (np.ascontiguousarray(one, np.int32) for one in (src, dst, channel))
        kernel.number_channels(self, job, len(src), *ends, numbers)
        return numbers

    def ends(self, numbers: I64) -> tuple[I32, I32, I32]:
        """Job, source and destination of channels."""
        name = self.names[numbers]
        high, low = name["high"], name["low"]
        ends = (high >> 32, low >> 32, low & 0x7FFFFFFF)
        return ends[0].astype(np.int32), ends[1].astype(np.int32), ends[2].astype(np.int32)
