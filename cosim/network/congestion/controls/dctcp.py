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

from cosim.network.congestion.contract import TCP_HEADER_BYTES, Control
from cosim.spec import SizeBytes

_NO_THRESHOLD = 1e18  # bytes: more than any window


class Dctcp(Control):
    """DCTCP (SIGCOMM 2010, RFC 8257): cuts the window by the fraction of bytes marked"""

    state: ClassVar[dict[str, float]] = {"alpha": 1.0, "threshold": _NO_THRESHOLD, "cut": 0.0}
    settles: ClassVar[bool] = True
    acks_wait: ClassVar[bool] = True
    header_bytes: ClassVar[int] = TCP_HEADER_BYTES
    kernel = "update_dctcp"

    g: float = Field(1.0 / 16.0, gt=0, le=1, description="weight of the newest round in alpha")
    initial_window: float = Field(10.0, gt=0, description="first window, packets")
    threshold: SizeBytes | None = Field(None, gt=0, description="K, where ports mark; omitted: 65 packets")

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float]:  # noqa: ARG002
        """A step at K."""
        k = float(self.threshold or 65 * mtu_bytes)
        return k, k, 1.0

    def parameters(self) -> list[float]:
        """See controls.c."""
        return [self.g, self.initial_window]
