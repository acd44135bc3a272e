"""What an algorithm's steps cost beside the network: endpoint delay, reduction, rounding of sizes.

The form is ASTRA-sim's (``PacketBundle.cc``, ``MemBus.cc``): before each send and after each receive an
endpoint takes ``endpoint_delay``; a receive that is reduced takes two reads and a write of the message at
the local memory's bandwidth besides, each truncated to a nanosecond. Reductions don't share that bandwidth
with anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from cosim.units import PS_PER_NS


@dataclass(frozen=True, slots=True)
class Costs:
    """Delays and rounding of one configuration.

    Attributes
    ----------
    endpoint_delay_ps
        e: from the last dependency of a send to the send.
    reduction_rate_bps
        Local memory bandwidth in bit/s; ``None``: reductions take no time.
    floor
        Sizes are divided as integers, remainders dropped (ASTRA-sim); else a share is rounded up.
    link_latency_ps
        Of the network from a GPU to another of its host: for algorithms whose measured steps include it.
    """

    endpoint_delay_ps: int = 0
    reduction_rate_bps: float | None = None
    floor: bool = False
    link_latency_ps: int = 0

    def share(self, size_bytes: int, parts: int) -> int:
        """Bytes of one of ``parts`` equal shares: rounded up, or down in ``floor`` sizing."""
        return size_bytes // parts if self.floor else -(-size_bytes // parts)

    def reduction_ps(self, size_bytes: int) -> int:
        """Picoseconds to reduce a received message: two reads and a write, each whole nanoseconds."""
        if self.reduction_rate_bps is None:
            return 0
        # The order of operations is ASTRA-sim's, so that truncation falls on the same nanosecond.
        return 3 * PS_PER_NS * int(size_bytes / (self.reduction_rate_bps / 8) * 1e9)

    def receive_ps(self, size_bytes: int, *, reduced: bool) -> int:
        """Picoseconds from a receive to what follows it."""
        return self.endpoint_delay_ps + (self.reduction_ps(size_bytes) if reduced else 0)
