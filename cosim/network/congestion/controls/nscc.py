"""NSCC: Ultra Ethernet's sender-based control, by marks and delay together.

With q the round trip beyond the bare one and q* its target (0.75 bare round trips where switches trim, one
where they drop), bytes acknowledged without a mark make the window grow: by ``alpha`` (q* - q) of them over
the window where q < q*, by ``fi`` over the window where not; while q is under a microsecond for a whole
window, by ``fi_scale`` of them. A mark where q >= q* cuts, at most once in a bare round trip, to
max(1 - gamma (avg - q*) / avg, 1/2), avg being the mean of q with a gain of 0.0125 a packet. A trimmed (lost)
packet takes its bytes off the window. *Quick adapt*: once in q* and a bare round trip, if a packet was
trimmed or q > 4 q*, and less than an eighth of the largest window came through, the window becomes what did.
All constants scale with the bandwidth-delay product over that of 100 Gb/s and 12 us.

Source: Ultra Ethernet Specification 1.0 (2025), section 3.6.13, with the constants and the order of its
reference simulator (github.com/ultraethernet/uet-htsim, ``uec.cpp``, 2025), whose first and largest window is
1.5 bandwidth-delay products. Marks begin at 0.2 and are certain at 0.8 of 12 us at the port's rate, as there.
Not modelled: acknowledgements one by one (a round's are taken together, the cut after the growth), bytes that
are ignored after a quick adapt beyond a round, probes and timeouts.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.congestion.contract import Control
from cosim.spec import TimePs

_REFERENCE_RTT = 12e6


class Nscc(Control):
    """NSCC (Ultra Ethernet 1.0): the sender's window, by marks and delay together, for sprayed packets"""

    state: ClassVar[dict[str, float]] = {"average": 0.0, "fast": 0.0, "done": 0.0, "since": 0.0}
    trims: ClassVar[bool] = True
    header_bytes: ClassVar[int] = 46  # with the frame the 64 of its reference simulator
    reordering = "none"
    kernel = "update_nscc"

    target: TimePs | None = Field(
        None, gt=0, description="delay by queues aimed at; omitted: 0.75 bare round trips"
    )
    gamma: float = Field(0.8, gt=0, le=1, description="how steeply the excess over the target cuts")
    alpha: float = Field(4.0, gt=0, description="proportional increase, packets at the reference network")
    fi: float = Field(5.0, gt=0, description="fair increase, packets at the reference network")
    fi_scale: float = Field(0.25, gt=0, description="fast increase, of the bytes acknowledged")
    eta: float = Field(0.15, ge=0, description="added each round trip, packets at the reference network")
    initial_window: float = Field(1.5, gt=0, description="first window, bandwidth-delay products")

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float]:  # noqa: ARG002
        """From 0.2 to 0.8 of what a port sends in the reference round trip."""
        reference = rate_bps * _REFERENCE_RTT / 8e12
        return 0.2 * reference, 0.8 * reference, 1.0

    def parameters(self) -> list[float]:
        """See controls.c."""
        return [
            float(self.target or 0),
            self.gamma,
            self.alpha,
            self.fi,
            self.fi_scale,
            self.eta,
            self.initial_window,
        ]
