"""Bytes between endpoints over time: arrivals are listed as they come, and put into bins many at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.counters import add_to_bins
from cosim.network.flows import I64

_CELLS = 1 << 22  # of 8 bytes, all bins and pairs together
_MOST_BINS, _FEWEST_BINS = 64, 8
_FIRST_BIN_BITS = 16  # 65 ns; bins double as a run goes on
_FIRST_PAIRS = 64


class PairTraffic:
    """Bins of all pairs that have a number; made when the first arrivals are put into them, as it is known by
    then how wide they are.
    """

    def __init__(self) -> None:
        self._num_bins, self._pairs = _MOST_BINS, _FIRST_PAIRS
        self._bin_bits = _FIRST_BIN_BITS
        self._bins: I64 = np.zeros((0, 0), np.int64)

    def expect_pairs(self, count: int) -> None:
        """Have bins for so many pairs; where these are many, fewer and wider ones."""
        if count > self._pairs:
            # Doubled: pairs come a few at a time, and each time all would be copied.
            self._pairs = max(2 * self._pairs, count)
            while self._num_bins > _FEWEST_BINS and self._num_bins * self._pairs > _CELLS:
                self._num_bins //= 2
                self._widen()

    def bins(self, num_pairs: int) -> tuple[int, I64]:
        """How wide bins are, ps, and int64[bins, pairs]: the bytes in each."""
        return 1 << self._bin_bits, self._bins[:, :num_pairs]

    def put(self, arrived: NDArray[Any]) -> None:
        """Put arrivals, rows of :data:`~cosim.engine.state.ARRIVAL`, into bins."""
        last = int(np.maximum.reduce(arrived["time"], initial=0))
        # However long a run lasts it has this many bins: twice as wide, half of them are free again.
        while last >= self._num_bins << self._bin_bits:
            self._widen()
        shape = self._num_bins, self._pairs
        if self._bins.shape != shape:
            before, self._bins = self._bins, np.zeros(shape, np.int64)
            self._bins[: len(before), : before.shape[1]] = before
        add_to_bins(arrived, self._bins, self._bin_bits)

    def _widen(self) -> None:
        """Make bins twice as wide; as many as they were of them are left by :meth:`put`."""
        self._bin_bits += 1
        if len(self._bins) > 1:
            self._bins = self._bins[::2] + self._bins[1::2]
