"""TIMELY: the rate follows the gradient of the round-trip time.

Once a round trip: below t_low, or up to t_high while the smoothed gradient is not positive, the rate grows by
delta, five times that after five such updates; above t_high it is cut by beta (1 - t_high / rtt), between
them by beta times the gradient, in units of min_rtt.

Source: R. Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015,
doi:10.1145/2785956.2787510. Defaults are theirs, for 10 Gb/s: ewma 0.875, t_low 50 us, t_high 500 us, beta
0.8, delta 10 Mb/s, five updates, min_rtt 20 us. For faster links it is what the simulator of HPCC's authors
has (Y. Li et al., SIGCOMM 2019, doi:10.1145/3341302.3342085): delta in proportion to the port's rate, one
update a round trip, on what was sent after the update before, five-fold growth below t_low too, and a least
rate (min_rate, 1 % of the port's). The paper updates at each completion of a segment; at 100 Gb/s, with
segments of 16 KB, a queue that was cut already then goes on cutting while the packets in it come back.

``patched: true`` is the form of Y. Zhu et al., "ECN or Delay", CoNEXT 2016, doi:10.1145/2999572.2999593: from
t_low to t_high the rate grows by (1 - w) delta and is cut by beta w (rtt - t_low) / t_low, w going from 0 to
1 as the gradient goes from -1/4 to 1/4, beta 0.008. It settles where rtt = t_low (1 + delta / (beta rate)),
as long as that is not many round trips; as TIMELY was published there is no such point.

Starts at line rate, with PFC. A path whose bare round trip is above t_high is refused: TIMELY would cut down
to its least rate there. Not modelled: segments sent in bursts, NIC timestamps' noise.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cosim.network.congestion.contract import Control
from cosim.spec import RateBps, TimePs

_AT = 10e9
"""The line rate that the paper's number is for."""


class Timely(Control):
    """TIMELY (SIGCOMM 2015): the rate follows the gradient of the round-trip time"""

    gives = "rate"
    state: ClassVar[dict[str, float]] = {"before": 0.0, "gradient": 0.0, "rounds": 0.0}
    settles: ClassVar[bool] = True
    lossless: ClassVar[bool] = True
    reordering = "go-back-N"
    uses_marks: ClassVar[bool] = False
    uses_chance: ClassVar[bool] = True
    kernel = "update_timely"

    ewma: float = Field(0.875, gt=0, le=1, description="weight of the newest difference in the gradient")
    t_low: TimePs = Field(50_000_000, gt=0, description="round-trip time below which the rate just grows")
    t_high: TimePs = Field(500_000_000, gt=0, description="round-trip time above which it is just cut")
    beta: float = Field(0.8, gt=0, le=1, description="how steeply it cuts")
    delta: RateBps = Field(1e7, gt=0, description="additive increase at 10 Gb/s")
    rounds: int = Field(5, ge=1, description="updates without a rise until the increase is five-fold")
    min_rtt: TimePs = Field(20_000_000, gt=0, description="unit of the gradient")
    min_rate: RateBps = Field(1e8, gt=0, description="least rate, at 10 Gb/s")
    patched: bool = Field(False, description="the form with a fixed point (CoNEXT 2016)")
    patched_beta: float = Field(0.008, gt=0, le=1, description="its beta, from t_low to t_high")

    def longest_rtt_ps(self, hops: int) -> float:  # noqa: ARG002
        """Beyond ``t_high`` it only cuts."""
        return float(self.t_high)

    def parameters(self) -> list[float]:
        """See controls.c."""
        times = float(self.t_low), float(self.t_high)
        return [
            self.ewma,
            *times,
            self.beta,
            self.delta / _AT,
            float(self.rounds),
            float(self.min_rtt),
            self.min_rate / _AT,
            self.patched_beta if self.patched else 0.0,
        ]
