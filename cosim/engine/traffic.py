"""Bytes between endpoints over time: arrivals are listed as they come, and put into bins many at once."""

from __future__ import annotations

import numpy as np

from cosim.engine.columns import Columns
from cosim.engine.counters import add_to_bins
from cosim.engine.state import ARRIVALS_N
from cosim.network.flows import I64
from cosim.network.held_signals import held_signals

_CELLS = 1 << 22  # of 8 bytes, all bins and pairs together
_MOST_LISTED = 1 << 15  # of 16 bytes: what is in them is in a cache when it is put into bins
_MOST_BINS, _FEWEST_BINS = 64, 8
_FIRST_BIN_PS = 1 << 16  # 65 ns; bins double as a run goes on
_FIRST_PAIRS = 64


class PairTraffic:
    """Bins of all pairs that have a number; made when there are more arrivals than are listed, or at the
    end, when it is known how wide they are.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._num_bins, self._pairs = _MOST_BINS, _FIRST_PAIRS
        self._bin_ps = _FIRST_BIN_PS
        self._bins: I64 = np.zeros((0, 0), np.int64)

    def expect_pairs(self, count: int) -> None:
        """Have bins for so many pairs; where these are many, fewer and wider ones."""
        if count > self._pairs:
            # Doubled: pairs come a few at a time, and each time all would be copied.
            self._pairs = max(2 * self._pairs, count)
            while self._num_bins > _FEWEST_BINS and self._num_bins * self._pairs > _CELLS:
                self._num_bins //= 2
                self._widen()

    def expect(self, count: int) -> None:
        """Have room for so many more arrivals."""
        columns = self._columns
        listed = int(columns.meta[ARRIVALS_N])
        if listed + count <= len(columns.arrays["arrivals"]):
            return
        if listed + count > _MOST_LISTED:
            with held_signals():
                self._put_into_bins()
            listed = 0
        columns.reserve("arrivals", listed + count)

    def bins(self, num_pairs: int) -> tuple[int, I64]:
        """How wide bins are, ps, and int64[bins, pairs]: the bytes in each."""
        self._put_into_bins()
        return self._bin_ps, self._bins[:, :num_pairs]

    def _put_into_bins(self) -> None:
        meta = self._columns.meta
        arrived = self._columns.arrays["arrivals"][: int(meta[ARRIVALS_N])]
        last = int(arrived["time"].max(initial=0))
        # However long a run lasts it has this many bins: twice as wide, half of them are free again.
        while last >= self._num_bins * self._bin_ps:
            self._widen()
        shape = self._num_bins, self._pairs
        if self._bins.shape != shape:
            before, self._bins = self._bins, np.zeros(shape, np.int64)
            self._bins[: len(before), : before.shape[1]] = before
        add_to_bins(arrived, self._bins, self._bin_ps)
        meta[ARRIVALS_N] = 0

    def _widen(self) -> None:
        """Make bins twice as wide; as many as they were of them are left by :meth:`_put_into_bins`."""
        self._bin_ps *= 2
        if len(self._bins) > 1:
            self._bins = self._bins[::2] + self._bins[1::2]
