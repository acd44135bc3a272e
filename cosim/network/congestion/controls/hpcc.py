"""HPCC: the window follows the most loaded link of the path, as in-network telemetry reports it.

Once a round trip: U = max over hops of queue / (B T) + tx / B, with T the bare round-trip time. Where U >=
eta, or after max_stage rounds below it, w <- w' eta / U + w_ai; else w <- w' + w_ai: w' is the window that
telemetry is about, a round trip ago. Windows are paced.

Source: Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, doi:10.1145/3341302.3342085.
Defaults are theirs: eta = 0.95, max_stage = 5, w_ai = 80 bytes, a first window of a bandwidth-delay product.
Not modelled: the bytes that telemetry takes; reaction to each acknowledgement between two round trips.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.calendar import Records
from cosim.network.congestion.contract import Control
from cosim.network.flows import F64
from cosim.spec import SizeBytes

_BEFORE, _STAGE = 0, 1


def hpcc(n: int, rows: Records, telemetry: Records, state: F64, p: F64) -> None:
    """``p``: eta, max_stage, w_ai in bytes."""
    for i in range(n):
        row = rows[i]
        c = row.conn
        if row.first != 0.0:
            row.window = row.line * row.base_rtt / 8e12
            state[c, _BEFORE] = row.window
            state[c, _STAGE] = 0.0
            continue
        load = 0.0
        for k in range(telemetry.shape[1]):
            hop = telemetry[i, k]
            if hop.capacity > 0.0:
                load = max(load, hop.queue * 8e12 / (hop.capacity * row.base_rtt) + hop.tx / hop.capacity)
        window = state[c, _BEFORE]
        state[c, _BEFORE] = row.window
        if load >= p[0] or (state[c, _STAGE] >= p[1] and load > 0.0):
            window = window * p[0] / load + row.gain * p[2]
            state[c, _STAGE] = 0.0
        else:
            window += row.gain * p[2]
            state[c, _STAGE] += 1.0
        row.window = min(max(window, p[2]), row.line * row.base_rtt / 8e12)


class Hpcc(Control):
    """HPCC (SIGCOMM 2019): the window follows in-network telemetry of the most loaded link"""

    state: ClassVar[dict[str, float]] = {"before": 0.0, "stage": 0.0}
    telemetry: ClassVar[bool] = True
    paced: ClassVar[bool] = True
    lossless: ClassVar[bool] = True
    reordering = "go-back-N"
    scales_itself: ClassVar[bool] = True
    uses_marks: ClassVar[bool] = False
    kernel = hpcc

    eta: float = Field(0.95, gt=0, le=1, description="utilisation aimed at")
    max_stage: int = Field(5, ge=0, description="additive rounds before the next multiplicative one")
    w_ai: SizeBytes = Field(80, gt=0, description="additive increase, bytes")

    def parameters(self) -> list[float]:
        """See the kernel."""
        return [self.eta, float(self.max_stage), float(self.w_ai)]
