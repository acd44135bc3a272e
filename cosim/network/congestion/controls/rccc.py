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

from cosim.network.calendar import Records
from cosim.network.congestion.contract import Control
from cosim.network.flows import F64

_LESS, _MEAN, _RISES, _SINCE, _GOT, _MARKED, _LOST = 0, 1, 2, 3, 4, 5, 6
_INTERVAL = 1.5
_MOST_RISES = 20.0


def rccc(n: int, rows: Records, telemetry: Records, state: F64, p: F64) -> None:
    """``p``: share of the port, least factor (0: none), target, decrease, increase, gain."""
    for i in range(n):
        row = rows[i]
        if row.first != 0.0:
            row.rate = row.line
            continue
        c = row.conn
        if p[1] > 0.0:
            state[c, _SINCE] += row.elapsed
            state[c, _GOT] += row.acked
            state[c, _MARKED] += row.marked * row.acked
            state[c, _LOST] += row.lost_inside * row.mss
            if state[c, _SINCE] >= _INTERVAL * row.base_rtt:
                got = max(state[c, _GOT], row.mss)
                lost = min(state[c, _LOST] / got, 1.0)
                marked = min(state[c, _MARKED] / got, 1.0)
                factor = 1.0 - state[c, _LESS] - lost
                state[c, _MEAN] += p[5] * (marked - state[c, _MEAN])
                if state[c, _MEAN] > p[2]:
                    factor *= 1.0 - (state[c, _MEAN] - p[2]) * p[3]
                if lost > 0.0 or state[c, _MEAN] > p[2]:
                    state[c, _RISES] = 0.0
                else:
                    factor += p[4] * (2.0 ** state[c, _RISES] if marked == 0.0 else 1.0)
                    state[c, _RISES] = min(state[c, _RISES] + 1.0, _MOST_RISES)
                state[c, _LESS] = 1.0 - min(max(factor, p[1]), 1.0)
                for k in range(_SINCE, _LOST + 1):
                    state[c, k] = 0.0
        row.rate = row.granted * p[0] * (1.0 - state[c, _LESS])


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
    credits: ClassVar[bool] = True
    grows: ClassVar[bool] = False
    reordering = "none"
    kernel = rccc

    pull: float = Field(0.99, gt=0, le=1, description="share of its port's rate that a receiver grants")
    oversubscription: float = Field(
        1.0,
        ge=1,
        description="of the fabric; above 1 receivers lower their credit by its marks and trims, to 0.9 over "
        "it at least",
    )
    target: float = Field(0.3, ge=0, le=1, description="marked part in the mean from which credit falls")
    decrease: float = Field(0.5, ge=0, le=1, description="how steeply")
    increase: float = Field(0.01, gt=0, le=1, description="by which it rises, of the port's rate")
    gain: float = Field(0.5, gt=0, le=1, description="of the mean")

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float]:  # noqa: ARG002
        """As NSCC: from 0.2 to 0.8 of what a port sends in 12 us."""
        reference = rate_bps * 12e6 / 8e12
        return 0.2 * reference, 0.8 * reference, 1.0

    def parameters(self) -> list[float]:
        """See the kernel."""
        least = 0.9 / self.oversubscription if self.oversubscription > 1 else 0.0
        return [self.pull, least, self.target, self.decrease, self.increase, self.gain]
