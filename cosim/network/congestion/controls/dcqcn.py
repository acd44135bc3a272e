"""DCQCN: rates cut by congestion notifications, and recovered by a timer and a byte counter.

A receiver that got a marked packet sends one notification in cnp_interval: at once, or at its end if one is
marked meanwhile. It has the sender set its target to its rate, cut the rate by alpha / 2, and raise alpha by
g (1 - alpha); without one, alpha falls by g alpha each alpha_timer. Each expiry of the timer, and each
byte_counter bytes, halve the distance to the target; after f such stages of either the target grows by r_ai,
after f of both by r_hai. Whether n packets of which the share p is marked bring a notification is drawn with
its chance, 1 - (1 - p)^n, from the run's seed: equal senders do not move in step, as they don't on a wire,
and the last of a few gets through later than the mean.

Source: Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015,
doi:10.1145/2785956.2787484. Defaults are theirs, for 40 Gb/s: g = 1/256, timer 55 us, byte counter 10 MB, f
= 5, r_ai = 40 Mb/s, cnp_interval 50 us, RED from 5 KB to 200 KB with 1 %; r_hai is 10 r_ai and min_rate 10
Mb/s, as in QCN. ``preset: connectx`` is how NVIDIA ships its NICs (networking documentation, "DCQCN CC
Parameters": timer 300 us, notifications 4 us apart, alpha each 1 us, f = 1), with the increases and
thresholds (100 and 400 KB, 20 %, at 25 Gb/s) of the simulator of HPCC's authors (Y. Li et al., SIGCOMM 2019,
doi:10.1145/3341302.3342085). Increases and thresholds scale with a port's rate, as they do there.

The paper's equation 1 sets the target at every notification. QCN (IEEE 802.1Qau), those NICs
(CLAMP_TGT_RATE off) and that simulator leave it where the rate was not increased since the notification
before, so that a burst of them is forgotten in a stage or two: that is the default here, ``clamp_target:
true`` is the equation, which gives half the goodput where a burst meets an incast.

Starts at line rate, with PFC. A job's weight divides its timer: how aggressive it is. Not modelled:
notifications' own way and losses; a sender's timers stand still while it has nothing to send.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from cosim.network.congestion.contract import Control
from cosim.spec import RateBps, SizeBytes, TimePs

_AT = 40e9
"""The line rate that the paper's numbers are for."""
_CONNECTX = {
    "timer": "300us",
    "cnp_interval": "4us",
    "alpha_timer": "1us",
    "f": 1,
    "r_ai": "8Mbps",
    "r_hai": "80Mbps",
    "k_min": "160kB",
    "k_max": "640kB",
    "p_max": 0.2,
}


class Dcqcn(Control):
    """DCQCN (SIGCOMM 2015): rates cut by congestion notifications, recovered by timer and byte counter"""

    gives = "rate"
    state: ClassVar[dict[str, float]] = {
        "alpha": 1.0,
        "target": 0.0,
        "timer_ps": 0.0,
        "bytes": 0.0,
        "times": 0.0,
        "counts": 0.0,
        "since": 0.0,
        "alpha_ps": 0.0,
    }
    settles: ClassVar[bool] = True
    lossless: ClassVar[bool] = True
    reordering = "go-back-N"
    uses_weight: ClassVar[bool] = True
    uses_chance: ClassVar[bool] = True
    kernel = "update_dcqcn"

    preset: Literal["paper", "connectx"] = Field(
        "paper", description="whose numbers hold for what is omitted: SIGCOMM 2015, or NICs as shipped"
    )
    g: float = Field(1.0 / 256.0, gt=0, le=1, description="weight of a notification in alpha")
    timer: TimePs = Field(55_000_000, gt=0, description="time between two increases, of weight 1")
    byte_counter: SizeBytes = Field(10_000_000, gt=0, description="bytes between two increases")
    f: int = Field(5, ge=1, description="stages of fast recovery")
    r_ai: RateBps = Field(4e7, gt=0, description="additive increase at 40 Gb/s")
    r_hai: RateBps | None = Field(None, gt=0, description="hyper increase at 40 Gb/s; omitted: 10 r_ai")
    cnp_interval: TimePs = Field(50_000_000, gt=0, description="least time between two notifications")
    alpha_timer: TimePs = Field(55_000_000, gt=0, description="time without one after which alpha falls")
    clamp_target: bool = Field(
        False, description="each notification sets the target to the rate; false: only after an increase"
    )
    min_rate: RateBps = Field(1e7, gt=0, description="least rate after a cut")
    k_min: SizeBytes = Field(5_000, ge=0, description="queue from which ports mark, at 40 Gb/s")
    k_max: SizeBytes = Field(200_000, gt=0, description="queue from which they mark all, at 40 Gb/s")
    p_max: float = Field(0.01, gt=0, le=1, description="fraction marked just below k_max")

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("preset") == "connectx":
            return {**_CONNECTX, **given}
        return given

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float]:  # noqa: ARG002
        """RED, thresholds in proportion to the rate."""
        scale = rate_bps / 40e9
        return self.k_min * scale, self.k_max * scale, self.p_max

    def parameters(self) -> list[float]:
        """See controls.c."""
        times = float(self.cnp_interval), float(self.alpha_timer)
        more = 10.0 * self.r_ai if self.r_hai is None else self.r_hai
        return [
            self.g,
            float(self.timer),
            float(self.byte_counter),
            float(self.f),
            self.r_ai / _AT,
            more / _AT,
            *times,
            float(self.clamp_target),
            float(self.min_rate),
        ]
