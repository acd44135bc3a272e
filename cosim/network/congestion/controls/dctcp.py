"""DCTCP: the window is cut in proportion to the fraction of bytes marked.

Once a round trip: alpha <- (1 - g) alpha + g F with F the fraction marked; a round with marks cuts the
window by alpha / 2, the next one not again unless the port marks at its end still, one without adds a
packet. Slow start doubles the window each round trip, up to twice what is on its way, and ends with the
first mark. Ports mark everything above K.

Source: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, doi:10.1145/1851182.1851192; RFC 8257.
Defaults are theirs: g = 1/16, K = 65 packets; a first window of 10 packets (RFC 6928). As in Linux, an alpha
below 2^-10 is 0. Losses halve the window, and are known of as in
:mod:`~cosim.network.congestion.controls.newreno`. Not modelled: delayed acknowledgements, and what
:mod:`~cosim.network.congestion.controls.newreno` leaves out.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.calendar import Records
from cosim.network.congestion.contract import Control
from cosim.network.flows import F64
from cosim.spec import SizeBytes

_ALPHA, _THRESHOLD, _CUT = range(3)
_LEAST_ALPHA = 2.0**-10
_NO_THRESHOLD = 1e18  # bytes: more than any window


def dctcp(n: int, rows: Records, telemetry: Records, state: F64, p: F64) -> None:
    """``p``: g, first window in packets."""
    for i in range(n):
        row = rows[i]
        c = row.conn
        if row.first != 0.0:
            row.window = p[1] * row.mss
            state[c, _ALPHA] = 1.0
            state[c, _THRESHOLD] = _NO_THRESHOLD
            state[c, _CUT] = 0.0
            continue
        alpha = (1.0 - p[0]) * state[c, _ALPHA] + p[0] * row.marked
        if alpha < _LEAST_ALPHA:
            alpha = 0.0
        state[c, _ALPHA] = alpha
        window = row.window
        if row.timeout != 0.0:
            state[c, _THRESHOLD] = max(0.5 * window, 2.0 * row.mss)
            state[c, _CUT] = 0.0
            row.window = row.mss
            continue
        met = row.lost > 0.0 or row.marked > 0.0
        if met and (state[c, _CUT] == 0.0 or row.again != 0.0):
            window *= 0.5 if row.lost > 0.0 else 1.0 - 0.5 * alpha
            window = max(window, 2.0 * row.mss)
            state[c, _THRESHOLD] = window
            state[c, _CUT] = 1.0
        else:
            grows = state[c, _CUT] == 0.0
            state[c, _CUT] = 0.0
            if grows and window < state[c, _THRESHOLD]:
                if window < 2.0 * row.flight:
                    window = min(window + row.acked, state[c, _THRESHOLD])
                    row.slow_start = 1.0
            elif grows and row.limited != 0.0:
                window += row.mss * min(row.acked / window, 1.0)
        row.window = window


class Dctcp(Control):
    """DCTCP (SIGCOMM 2010, RFC 8257): cuts the window by the fraction of bytes marked"""

    state: ClassVar[dict[str, float]] = {"alpha": 1.0, "threshold": _NO_THRESHOLD, "cut": 0.0}
    settles: ClassVar[bool] = True
    acks_wait: ClassVar[bool] = True
    kernel = dctcp

    g: float = Field(1.0 / 16.0, gt=0, le=1, description="weight of the newest round in alpha")
    initial_window: float = Field(10.0, gt=0, description="first window, packets")
    threshold: SizeBytes | None = Field(None, gt=0, description="K, where ports mark; omitted: 65 packets")

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float]:  # noqa: ARG002
        """A step at K."""
        k = float(self.threshold or 65 * mtu_bytes)
        return k, k, 1.0

    def parameters(self) -> list[float]:
        """See the kernel."""
        return [self.g, self.initial_window]
