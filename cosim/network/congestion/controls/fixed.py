"""Fixed windows: no control at all; links are shared as windows are, so as weights are.

Each connection keeps a window of ``bdp`` bandwidth-delay products times its job's weight. On a shared link,
flows get it in proportion to their windows (first in, first out), and the rest of the windows waits in its
queue.

Source: the unfair sharing of S. Rajasekaran et al., "Congestion Control in Machine Learning Clusters",
HotNets 2022, doi:10.1145/3563766.3564115, with exact weights. Lossless.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.calendar import Records
from cosim.network.congestion.contract import Control
from cosim.network.flows import F64


def fixed(n: int, rows: Records, telemetry: Records, state: F64, p: F64) -> None:
    """``p``: bandwidth-delay products."""
    for i in range(n):
        row = rows[i]
        row.window = p[0] * row.weight * row.line * row.base_rtt / 8e12


class Fixed(Control):
    """Fixed windows, in proportion to jobs' weights: shares links by weight, controls nothing"""

    paced: ClassVar[bool] = True
    settles: ClassVar[bool] = True
    lossless: ClassVar[bool] = True
    reordering = "none"
    uses_weight: ClassVar[bool] = True
    grows: ClassVar[bool] = False
    uses_marks: ClassVar[bool] = False
    kernel = fixed

    bdp: float = Field(1.0, gt=0, description="window of weight 1, in bandwidth-delay products of its path")

    def parameters(self) -> list[float]:
        """See the kernel."""
        return [self.bdp]
