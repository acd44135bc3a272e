"""Credits of links, hop by hop: UALink and scale-up Ethernet, where senders know what room there is.

The far end of a link has ``buffer`` bytes for each class of priority (a *virtual channel*). A packet is sent
only where there is room for it, and its room is free again, one latency later, when it has left. So

- nothing is dropped;
- a class gets no more of a link than min(rate, buffer / t), with t = 2 latencies + a packet's time: a packet
  is forwarded when all of it is there (a sliding window: L. Kleinrock, "On flow control in computer
  networks", ICC 1978);
- a link whose bytes wait in a queue behind it, ``buffer`` of them, stands still, whoever else would go that
  way (head-of-line blocking), in that class alone;
- links that wait for each other's room in a circle never go on.

A packet of n bits arrives wrong with p = 1 - (1 - bit_errors)^n, and the link itself sends it again,
``retry`` later (link level retry, which goes back N: nothing else is sent meanwhile). The mean counts: a
packet takes the link its time, and p / (1 - p) times that and a retry.

Sources: H. T. Kung, T. Blackwell, A. Chapman, "Credit-based flow control for ATM networks", SIGCOMM 1994,
doi 10.1145/190314.190324; Ultra Ethernet Specification 1.0, link layer (CBFC, LLR).

Not modelled: room that a link's bytes share in several queues of one switch, each of which holds ``buffer``
of them here; that credit on its way back is missing while a queue fills.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from cosim.fabric.changes import LinkChange, RouteChange
from cosim.network.flows import F64
from cosim.spec import SizeBytes, Spec, TimePs
from cosim.units import NEVER, format_size

_SELDOM = 1e-6


class Credits(Spec):
    """``flow_control: {kind: credits, buffer: 256KiB}``: a link sends what the other end has room for"""

    kind: Literal["credits"] = "credits"
    buffer: SizeBytes = Field(gt=0, description="room at each link's far end, for each class of priority")
    bit_errors: float = Field(0.0, ge=0, lt=1, description="bits that arrive wrong, of all that a link sends")
    retry: TimePs | None = Field(
        None, ge=0, description="time from the end of a packet that arrived wrong until it is sent again"
    )

    @model_validator(mode="after")
    def _have_both(self) -> Credits:
        if self.bit_errors > 0 and self.retry is None:
            raise ValueError("bit_errors without retry: say how long it takes until a packet is sent again")
        return self

    def check_packet(self, packet_bytes: int) -> None:
        """Refuse packets of a size (bytes on the wire) that never arrive.

        Raises
        ------
        ValueError
            There is no room for one; or there is hardly one without an error.
        """
        if self.buffer < packet_bytes:
            raise ValueError(
                f"flow_control.buffer: credits for {format_size(self.buffer)} are below a packet, which is "
                f"{packet_bytes} bytes with its headers, so that nothing would be sent; raise it, or lower "
                "mtu"
            )
        if _power(1.0 - self.bit_errors, packet_bytes * 8) < _SELDOM:
            raise ValueError(
                f"flow_control.bit_errors: {self.bit_errors:g} lets less than one packet of {packet_bytes} "
                "bytes in a million arrive as it was sent; lower it, or mtu"
            )

    def idle_settings(self) -> list[tuple[str, str]]:
        """A retry where there is nothing to send again."""
        if self.retry is not None and self.bit_errors == 0:
            return [("retry", "no bit arrives wrong: bit_errors is 0")]
        return []


@dataclass(frozen=True)
class Loops:
    """Credit loops with packets of ``packet_bytes`` on the wire."""

    credits: Credits
    packet_bytes: int

    def goodput_bps(self, rate_bps: F64) -> F64:
        """What is left of rates (bits/s) when packets that arrived wrong are sent again."""
        errors = self.credits.bit_errors
        if errors == 0:
            return rate_bps
        bits = self.packet_bytes * 8
        right = _power(1.0 - errors, bits)
        retry = float(self.credits.retry or 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            packet = bits * 1e12 / rate_bps
            found = bits * 1e12 / (packet + (1.0 - right) / right * (packet + retry))
        return np.where(rate_bps > 0, found, 0.0)

    def loop_bps(self, rate_bps: F64, latency_ps: NDArray[np.int64]) -> NDArray[np.int64]:
        """What credit lets through, whole bits/s; of links of a rate (bits/s) and a latency."""
        packet = self.packet_bytes * 8e12 / rate_bps
        found = np.floor(self.credits.buffer * 8e12 / (2.0 * latency_ps + packet))
        return np.minimum(found, float(NEVER // 2)).astype(np.int64)

    def changed(self, changes: Iterable[LinkChange | RouteChange]) -> Iterator[LinkChange | RouteChange]:
        """Changes with the rates that links have then."""
        for one in changes:
            if isinstance(one, LinkChange):
                (rate,) = self.goodput_bps(np.array([one.rate_bps])).tolist()
                yield one._replace(rate_bps=rate)
            else:
                yield one


def _power(base: float, exponent: int) -> float:
    """``base`` to a whole power by products alone, so that it is the same on any machine."""
    found = 1.0
    while exponent:
        if exponent & 1:
            found *= base
        base *= base
        exponent >>= 1
    return found
