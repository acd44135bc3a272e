"""What links carried: bytes, and busy time in bins that become wider as a run goes on."""

from __future__ import annotations

import numpy as np

_FIRST_BITS = 16  # 65 ns
_CELLS = 1 << 22


class LinkUse:
    """``sent_bytes`` of each link, and ``busy_ps``, [bins, links], of 2^``bin_bits`` ps each."""

    def __init__(self, num_links: int) -> None:
        bins = 8
        while bins < 512 and 2 * bins * max(num_links, 1) <= _CELLS:
            bins *= 2
        self.sent_bytes = np.zeros(num_links, np.int64)
        self.busy_ps = np.zeros((bins, num_links), np.int64)
        self.bin_bits = _FIRST_BITS

    def add(self, link: int, start_ps: int, end_ps: int, fraction: float = 1.0) -> None:
        """A link was busy, or a fraction of it, from ``start_ps`` up to ``end_ps``."""
        while end_ps > len(self.busy_ps) << self.bin_bits:
            self._widen()
        counted, at = 0, start_ps
        while at < end_ps:
            number = at >> self.bin_bits
            at = min(end_ps, (number + 1) << self.bin_bits)
            # Rounded from the start on, not bin by bin, so that bins add up to the whole.
            total = at - start_ps if fraction == 1.0 else int((at - start_ps) * fraction + 0.5)
            self.busy_ps[number, link] += total - counted
            counted = total

    def _widen(self) -> None:
        half = self.busy_ps[::2] + self.busy_ps[1::2]
        self.busy_ps[:] = 0
        self.busy_ps[: len(half)] = half
        self.bin_bits += 1
