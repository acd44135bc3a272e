"""RCCC: Ultra Ethernet's receiver-based control, by credit, for sprayed packets.

A connection begins at line rate, without credit, for the round trip in which its receiver hears of it. From
then on the receiver grants 0.99 of its port's rate, shared max-min among who has something to send; what was
trimmed is sent again on credit, too. Marks of the fabric go to the load balancer; ports to receivers have
none.

Where the fabric is oversubscribed, the receiver lowers its credit by what the fabric does: every 1.5 bare
round trips a factor f falls by the part of packets trimmed before the receiver's port, and to f (1 - md (g -
target)) where g, a mean of the marked part with a gain of a half, is over its target; where neither is so it
rises by 1 %, by twice as much each time while nothing is marked at all. It is 0.9 over the oversubscription
at least.

Source: Ultra Ethernet Specification 1.0 (2025), congestion management, with the constants and the order of
its reference simulator (github.com/ultraethernet/uet-htsim, ``uec.cpp`` and ``oversubscribed_cc.cpp``, 2025).
Not modelled: credit in steps of four packets, credit that idle senders keep, requests and timeouts; a
receiver counts marks and trims of all that it receives together, here of each connection.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.congestion.contract import Control

_DECREASE = 0.5
"""By which credit falls, of what is marked above the target."""


class Rccc(Control):
    """RCCC (Ultra Ethernet 1.0): credit that receivers grant, for sprayed packets"""

    gives = "rate"
    state: ClassVar[dict[str, float]] = {
        "less": 0.0,
        "mean": 0.0,
        "rises": 0.0,
        "since": 0.0,
        "got": 0.0,
        "marks": 0.0,
        "losses": 0.0,
    }
    trims: ClassVar[bool] = True
    header_bytes: ClassVar[int] = 46  # with the frame the 64 of its reference simulator
    credits: ClassVar[bool] = True
    grows: ClassVar[bool] = False
    reordering = "none"
    kernel = "update_rccc"

    pull: float = Field(0.99, gt=0, le=1, description="share of its port's rate that a receiver grants")
    oversubscription: float = Field(
        1.0,
        ge=1,
        description="of the fabric; above 1 receivers lower their credit by its marks and trims, to 0.9 over "
        "it at least",
    )
    target: float = Field(0.3, ge=0, le=1, description="marked part on average from which credit falls")
    increase: float = Field(0.01, gt=0, le=1, description="by which it rises, of the port's rate")
    gain: float = Field(0.5, gt=0, le=1, description="of the mean")

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float]:  # noqa: ARG002
        """As NSCC: from 0.2 to 0.8 of what a port sends in 12 us."""
        reference = rate_bps * 12e6 / 8e12
        return 0.2 * reference, 0.8 * reference, 1.0

    def parameters(self) -> list[float]:
        """See controls.c."""
        least = 0.9 / self.oversubscription if self.oversubscription > 1 else 0.0
        return [self.pull, least, self.target, _DECREASE, self.increase, self.gain]
