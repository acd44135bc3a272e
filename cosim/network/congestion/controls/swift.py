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

from typing import ClassVar

from pydantic import Field

from cosim.network.congestion.contract import Control
from cosim.spec import TimePs


class Swift(Control):
    """Swift (SIGCOMM 2020): the window follows the round-trip time towards a target"""

    state: ClassVar[dict[str, float]] = {"cut": 0.0}
    settles: ClassVar[bool] = True
    uses_marks: ClassVar[bool] = False
    kernel = "update_swift"

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
        """See controls.c."""
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
