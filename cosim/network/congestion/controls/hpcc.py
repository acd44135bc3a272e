"""HPCC: the window follows the most loaded link of the path, as in-network telemetry reports it.

Once a round trip: U = max over hops of queue / (B T) + tx / B, with T the bare round-trip time. Where U >=
eta, or after max_stage rounds below it, w <- w' eta / U + w_ai; else w <- w' + w_ai: w' is the window that
telemetry is about, a round trip ago. Windows are paced.

Source: Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, doi:10.1145/3341302.3342085.
Defaults are theirs: eta = 0.95, max_stage = 5, w_ai = 80 bytes, a first window of a bandwidth-delay product.
Telemetry takes 42 bytes of each packet, room for five hops, as in their simulator. Not modelled: reaction to
each acknowledgement between two round trips.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.congestion.contract import Control
from cosim.spec import SizeBytes


class Hpcc(Control):
    """HPCC (SIGCOMM 2019): the window follows in-network telemetry of the most loaded link"""

    state: ClassVar[dict[str, float]] = {"before": 0.0, "stage": 0.0}
    telemetry: ClassVar[bool] = True
    telemetry_bytes: ClassVar[int] = 42  # 2, and 8 for each of five hops
    paced: ClassVar[bool] = True
    lossless: ClassVar[bool] = True
    reordering = "go-back-N"
    scales_itself: ClassVar[bool] = True
    uses_marks: ClassVar[bool] = False
    kernel = "update_hpcc"

    eta: float = Field(0.95, gt=0, le=1, description="utilisation aimed at")
    max_stage: int = Field(5, ge=0, description="additive rounds before the next multiplicative one")
    w_ai: SizeBytes = Field(80, gt=0, description="additive increase, bytes")

    def parameters(self) -> list[float]:
        """See controls.c."""
        return [self.eta, float(self.max_stage), float(self.w_ai)]
