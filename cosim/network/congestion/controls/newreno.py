"""NewReno: a packet more for each window acknowledged, half of what is on its way at a loss or a mark.

Slow start grows by a packet for each acknowledgement, and with one for every second packet (RFC 5681,
sections 3.1 and 4.2) by half a round trip's worth; congestion avoidance by half a packet a round trip.
Windows grow while they limit the sender, in slow start up to twice what is on its way (RFC 7661, and Linux's
rule), and not in the round trip after a cut (RFC 6582's recovery; RFC 3168 for marks). A loss is known of a
round trip after the packet was sent; where packets sent again are lost again, the sender is silent until its
timeout and begins with one packet.

Source: RFC 5681, RFC 6582; first window of 10 packets (RFC 6928). Ports drop unless the scenario has them
mark. Not modelled: which flow's packets a full queue drops (each loses in proportion to what it sends),
timeouts of packets that nothing follows, a timeout's doubling.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.congestion.contract import TCP_HEADER_BYTES, Control

_NO_THRESHOLD = 1e18  # bytes: more than any window


class NewReno(Control):
    """TCP NewReno (RFC 6582): a packet more each round trip, half the window at a loss or mark"""

    state: ClassVar[dict[str, float]] = {"threshold": _NO_THRESHOLD, "cut": 0.0}
    settles: ClassVar[bool] = True
    acks_wait: ClassVar[bool] = True
    header_bytes: ClassVar[int] = TCP_HEADER_BYTES
    kernel = "update_newreno"

    beta: float = Field(0.5, gt=0, lt=1, description="what a loss or mark leaves of the window")
    initial_window: float = Field(10.0, gt=0, description="first window, packets")
    ack_every: float = Field(
        2.0, ge=1, description="packets that an acknowledgement is for; each grows as one"
    )

    def parameters(self) -> list[float]:
        """See controls.c."""
        return [self.beta, self.initial_window, self.ack_every]
