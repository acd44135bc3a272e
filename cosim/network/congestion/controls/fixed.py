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

from cosim.network.congestion.contract import Control


class Fixed(Control):
    """Fixed windows, in proportion to jobs' weights: shares links by weight, controls nothing"""

    paced: ClassVar[bool] = True
    settles: ClassVar[bool] = True
    lossless: ClassVar[bool] = True
    reordering = "none"
    uses_weight: ClassVar[bool] = True
    grows: ClassVar[bool] = False
    uses_marks: ClassVar[bool] = False
    kernel = "update_fixed"

    bdp: float = Field(1.0, gt=0, description="window of weight 1, in bandwidth-delay products of its path")

    def parameters(self) -> list[float]:
        """See controls.c."""
        return [self.bdp]
