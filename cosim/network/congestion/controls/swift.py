"""Swift: the window follows the delay towards a target, which grows with hops and for small windows.

target = base_target + hops h + max(0, min(a / sqrt(w) + b, fs_range)) with a, b such that the last term is
fs_range at w = fs_min and 0 at fs_max packets. Below the target the window grows by ``ai`` packets a round
trip; above it, at most once a round trip, it is multiplied by max(1 - beta (delay - target) / delay, 1 -
max_mdf).

Source: G. Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
SIGCOMM 2020, doi:10.1145/3387514.3406591; where it gives no number (fs_range = 5 base_target, h = base_target
/ 6.55, fs_min = 0.1, fs_max = 100), those of htsim's Swift. The first window is a bandwidth-delay product.
A path whose bare round trip is longer than any target is refused: as published, Swift would cut down to its
least window there.
Not modelled: the host's own delay and its window, retransmission timeouts.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pydantic import Field

from cosim.network.calendar import Records
from cosim.network.congestion.contract import Control
from cosim.network.flows import F64
from cosim.spec import TimePs

_CUT = 0
_LEAST = 1e-3  # packets of a window: one in a thousand round trips


def swift(n: int, rows: Records, telemetry: Records, state: F64, p: F64) -> None:
    """``p``: base target (ps), per hop (ps), ai, beta, max_mdf, fs_range (ps), fs_min, fs_max."""
    scale = p[5] / (1.0 / math.sqrt(p[6]) - 1.0 / math.sqrt(p[7]))
    offset = -scale / math.sqrt(p[7])
    for i in range(n):
        row = rows[i]
        c = row.conn
        if row.first != 0.0:
            row.window = max(row.line * row.base_rtt / 8e12, row.mss)
            state[c, _CUT] = 0.0
            continue
        packets = row.window / row.mss
        flows = max(0.0, min(scale / math.sqrt(packets) + offset, p[5]))
        target = p[0] + row.hops * p[1] + flows
        if row.lost > 0.0 and state[c, _CUT] == 0.0:
            packets *= 1.0 - p[4]
            state[c, _CUT] = 1.0
        elif row.rtt > target:
            if state[c, _CUT] == 0.0:
                packets *= max(1.0 - p[3] * (row.rtt - target) / row.rtt, 1.0 - p[4])
                state[c, _CUT] = 1.0
            else:
                state[c, _CUT] = 0.0
        else:
            state[c, _CUT] = 0.0
            if row.limited != 0.0:
                packets += p[2] * min(row.acked / row.window, 1.0)
        row.window = max(packets, _LEAST) * row.mss


class Swift(Control):
    """Swift (SIGCOMM 2020): the window follows the round-trip time towards a target"""

    state: ClassVar[dict[str, float]] = {"cut": 0.0}
    settles: ClassVar[bool] = True
    uses_marks: ClassVar[bool] = False
    kernel = swift

    base_target: TimePs = Field(
        25_000_000, gt=0, description="round-trip time aimed at, before what is added"
    )
    per_hop: TimePs | None = Field(None, ge=0, description="added for each hop; omitted: base_target / 6.55")
    ai: float = Field(1.0, gt=0, description="packets more in a round trip below the target")
    beta: float = Field(0.8, gt=0, description="how steeply the excess over the target cuts")
    max_mdf: float = Field(0.5, gt=0, lt=1, description="the most that a cut takes")
    fs_range: TimePs | None = Field(
        None, ge=0, description="the most that small windows add; omitted: 5 base_target"
    )
    fs_min: float = Field(0.1, gt=0, description="window that gets all of it, packets")
    fs_max: float = Field(100.0, gt=0, description="window that gets none of it, packets")

    def longest_rtt_ps(self, hops: int) -> float:
        """The target of the smallest window."""
        target, per_hop, *_, most, _, _ = self.parameters()
        return target + hops * per_hop + most

    def parameters(self) -> list[float]:
        """See the kernel."""
        hop = self.base_target / 6.55 if self.per_hop is None else float(self.per_hop)
        most = 5.0 * self.base_target if self.fs_range is None else float(self.fs_range)
        return [
            float(self.base_target),
            hop,
            self.ai,
            self.beta,
            self.max_mdf,
            most,
            self.fs_min,
            self.fs_max,
        ]
