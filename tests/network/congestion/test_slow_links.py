"""Controls that aim at a delay, on links where one packet takes longer than that."""

from __future__ import annotations

import pytest

from cosim.errors import NetworkError
from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.mltcp import Mltcp
from cosim.network.congestion.controls.swift import Swift
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.fabric import PortSettings
from cosim.units import PS_PER_US
from tests.network.congestion.worlds import star, watch

PORTS = PortSettings(headers=False, mtu_bytes=1_000, buffer_bytes=1_000_000)
FLOW = [(0, 1, 1_000_000)]


@pytest.mark.parametrize(
    ("control", "rate"),
    [(Swift(), 100e3), (Timely(), 1e6), (Timely(patched=True), 1e6), (Mltcp(over=Swift()), 100e3)],
)
def test_a_path_that_looks_like_a_queue_is_refused(control: Control, rate: float) -> None:
    """As published they would send their least for ever: 0.001 packets a round trip, 1 % of the port."""
    kind = type(control.inner()).__name__.lower()
    with pytest.raises(NetworkError, match=f"{kind} aims at a round trip of .* n0 to n1 it takes"):
        watch(star(1, rate, PS_PER_US), control, FLOW, PORTS)


@pytest.mark.parametrize(
    ("control", "rate"),
    [
        (Swift.model_validate({"base_target": "1s"}), 100e3),
        (Timely.model_validate({"t_low": "50ms", "t_high": "500ms", "min_rtt": "20ms"}), 1e6),
    ],
)
def test_a_target_above_the_round_trip_gives_a_slow_link_its_rate(control: Control, rate: float) -> None:
    """Alone on two links: the bytes at the rate, and the last packet once more."""
    alone = watch(star(1, rate, PS_PER_US), control, FLOW, PORTS).done_ps[0]
    assert alone == pytest.approx((1_000_000 + 1_000) * 8e12 / rate, rel=0.01)
