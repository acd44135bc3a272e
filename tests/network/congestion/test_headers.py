"""Headers and telemetry, as packet simulators have them: closed forms, and what ns-3 gives."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.context import HERE
from cosim.errors import NetworkError
from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.cubic import Cubic
from cosim.network.congestion.controls.dcqcn import Dcqcn
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.hpcc import Hpcc
from cosim.network.congestion.controls.newreno import NewReno
from cosim.network.congestion.controls.nscc import Nscc
from cosim.network.congestion.controls.rccc import Rccc
from cosim.network.congestion.controls.swift import Swift
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.congestion.settings import Congestion
from tests.lab.benchmarks.ns3_congestion import Case, fabric, fcts, incast
from tests.network.congestion.worlds import dumbbell, watch

US = 10**6
ETHERNET, IPV4, UDP, TCP, BTH, ICRC = 14 + 4, 20, 8, 20, 12, 4
ROCE = ETHERNET + IPV4 + UDP + BTH + ICRC
INT = 2 + 5 * 8
SMALLEST: list[tuple[Control, int]] = [
    *((one, ROCE) for one in (Dcqcn(), Fixed(), Swift(), Timely())),
    *((one, ETHERNET + IPV4 + TCP) for one in (Cubic(), Dctcp(), NewReno())),
    (Hpcc(), ROCE + INT),
    (Nscc(), 64),  # as in Ultra Ethernet's reference simulator
    (Rccc(), 64),
]
"""What a packet of each control has beside its payload, by the standards."""


@pytest.mark.parametrize(("control", "more"), SMALLEST, ids=[type(one).__name__ for one, _ in SMALLEST])
def test_a_byte_alone_takes_a_packet_with_all_its_headers(control: Control, more: int) -> None:
    """Three links of 1 Gb/s, each of which it crosses whole."""
    seen = watch(dumbbell(1, 1e9, US), control, [(0, 1, 1)], PortSettings(mtu_bytes=1500))
    assert seen.done_ps[0] == pytest.approx(3 * US + 3 * (1 + more) * 8_000, abs=10)


@pytest.mark.parametrize("control", ["fixed", "swift"])
@pytest.mark.parametrize(
    ("mtu", "senders", "ns3_us"), [(1500, 8, 2672.6), (1500, 4, 1338.6), (9000, 12, 3873.0)]
)
def test_the_last_of_an_incast_comes_when_its_packets_have_gone(
    control: str, mtu: int, senders: int, ns3_us: float
) -> None:
    """4 MB from each: payloads of mtu - 44, 62 bytes more a packet; three links before, and one after."""
    room = "auto" if control == "fixed" else True
    network = Congestion.model_validate({"control": control, "mtu": mtu, "pfc": room}).build(HERE)
    last = fcts(network, Case("", fabric(), incast(senders, 4_000_000), mtu=mtu)).max()
    size = 4_000_000 + -(-4_000_000 // (mtu - 44)) * 62
    wire_us = senders * size * 8 / 100e3
    assert wire_us < last < 1.002 * wire_us + 5
    assert last == pytest.approx(ns3_us, rel=1e-3)  # network: ns3_rdma, the same settings, 2026-11-29


@pytest.mark.parametrize("seed", range(1, 9))
def test_no_sender_of_timely_waits_for_a_round_trip_that_never_is(seed: int) -> None:
    """Twelve starts in ns-3 end between 3,096 and 3,330 us. A round that began while queues were paused was
    thought to last 7 ms, and its sender kept its least rate as long.
    """
    network = Congestion.model_validate({"control": "timely"}).build(HERE)
    assert 3096 * 0.95 < fcts(network, Case("", fabric(), incast(8, 4_000_000)), seed).max() < 3330 * 1.2


def test_bytes_of_links_are_those_on_the_wire() -> None:
    seen = watch(dumbbell(1, 1e9, US), Hpcc(), [(0, 1, 14_560)], PortSettings(mtu_bytes=1500))
    assert seen.statistics.link_bytes[0] == 10 * (1500 + ETHERNET + INT)
    plain = watch(dumbbell(1, 1e9, US), Hpcc(), [(0, 1, 14_560)], PortSettings(mtu_bytes=1500, headers=False))
    assert plain.statistics.link_bytes[0] == 14_560


def test_an_mtu_without_room_for_payload_is_refused() -> None:
    with pytest.raises(NetworkError, match="an mtu of 44 bytes has no room beside the 44 bytes of headers"):
        CongestionNetwork(Fixed(), PortSettings(mtu_bytes=44))
    assert np.isfinite(
        watch(dumbbell(1, 1e9, US), Fixed(), [(0, 1, 9)], PortSettings(mtu_bytes=45)).done_ps[0]
    )
