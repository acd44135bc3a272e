"""Controls of RDMA, packet by packet, against closed forms of their papers; MLTCP; who queues most."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cosim.results.measures import jain
from tests.adapters.ns3_worlds import star
from tests.adapters.rdma_worlds import ETHERNET, US, Ran, run
from tests.network.congestion.test_classics import dcqcn_equilibrium

MS = 10**9
BIN = 1.1
"""A percentile is the lower end of its bin, which is 9 % wide."""


def settle(flows: int, gbps: float, control: Any, ms: int, latency_ps: int = US, **wanted: Any) -> Ran:
    """Flows of a gigabyte to one endpoint, looked at at a quarter and at the end."""
    steps = (ms * MS // 4, ms * MS)
    return run(
        star(flows + 1, gbps, latency_ps),
        [(k, flows, 10**9) for k in range(flows)],
        control,
        steps_ps=steps,
        **wanted,
    )


def rates(seen: Ran, flows: int) -> Any:
    """Bytes of each sender after the first quarter."""
    return np.diff(seen.link_bytes, axis=0)[-1, : 2 * flows : 2]


def utilisation(seen: Ran, flows: int, gbps: float, ms: int) -> float:
    """Of the last link, after the first quarter."""
    return float(np.diff(seen.link_bytes, axis=0)[-1, 2 * flows + 1] * 8 / (gbps * 1e9 * ms * 0.75e-3))


@pytest.mark.parametrize(("flows", "below"), [(2, 1.35), (4, 1.2), (10, 1.2)])
def test_dcqcn_settles_at_its_fixed_point(flows: int, below: float) -> None:
    """RED's queue at the marking probability where the ODEs of CoNEXT 2016 stand still; fair shares.

    The median is below the mean, most so for few flows, whose queue comes in bursts.
    """
    wire = 1_044 + ETHERNET
    seen = settle(flows, 40.0, "dcqcn", 80, mtu=1_044)
    expected = 5_000 + dcqcn_equilibrium(flows, 40e9 / 8 / wire) / 0.01 * 195_000
    assert expected / below <= seen.column("queue_p50_bytes")[2 * flows + 1] <= 1.1 * expected
    sent = rates(seen, flows)
    assert np.allclose(sent, sent.mean(), rtol=0.15)
    assert utilisation(seen, flows, 40, 80) > 0.97


@pytest.mark.parametrize("flows", [2, 4])
def test_patched_timely_settles_at_its_fixed_point(flows: int) -> None:
    """Zhu et al., CoNEXT 2016, equation 31: the round-trip time is t_low (1 + N delta / (beta C))."""
    control = {"kind": "timely", "patched": True}
    seen = settle(flows, 10.0, control, 80, mtu=1_044, buffer="10 MB")
    bare = 4e-6 + 2 * (1_062 + 66) * 8 / 10e9
    expected = (50e-6 * (1 + flows * 10e6 / (0.008 * 10e9)) - bare) * 10e9 / 8
    assert expected / BIN <= seen.column("queue_p50_bytes")[2 * flows + 1] <= expected


@pytest.mark.parametrize(("flows", "threshold"), [(2, 40), (4, 120), (10, 65)])
def test_dctcp_keeps_its_queue_at_k(flows: int, threshold: int) -> None:
    """Alizadeh et al., SIGCOMM 2010, section 3.3: the queue's largest is K + N packets, once settled."""
    control = {"kind": "dctcp", "threshold": threshold * 1_500}
    seen = settle(flows, 10.0, control, 40, 24 * US, mtu=1_500, buffer="3 MB")
    most = seen.column("queue_p99_bytes")[2 * flows + 1] / 1_518
    assert (threshold - 2) / BIN <= most <= threshold + flows
    assert utilisation(seen, flows, 10, 40) > 0.99
    assert np.allclose(rates(seen, flows), rates(seen, flows).mean(), rtol=0.15)


@pytest.mark.parametrize("eta", [0.95, 0.8])
def test_hpcc_keeps_its_utilisation_and_no_queue(eta: float) -> None:
    """Li et al., SIGCOMM 2019: links at eta, queues near zero, shares fair by w_ai."""
    seen = settle(4, 100.0, {"kind": "hpcc", "eta": eta}, 8, mtu=1_044)
    assert utilisation(seen, 4, 100, 8) == pytest.approx(eta, abs=0.03)
    assert seen.column("queue_p99_bytes")[9] < 10 * 1_104
    assert jain(rates(seen, 4).tolist()) > 0.99


@pytest.mark.parametrize("target_us", [25, 60])
def test_swift_queues_up_to_its_target(target_us: int) -> None:
    """Kumar et al., SIGCOMM 2020: the delay stays at the target, fs_range off."""
    control = {"kind": "swift", "base_target": f"{target_us}us", "per_hop": "1us", "fs_range": "0us"}
    seen = settle(4, 100.0, control, 8, mtu=4_000, pfc=True)
    bare_us = 4 + 2 * (4_018 + 66) * 8e-5
    expected = (target_us + 2 - bare_us) * 100e9 / 8e6
    assert expected / 1.2 <= seen.column("queue_p50_bytes")[9] <= 1.05 * expected
    assert utilisation(seen, 4, 100, 8) > 0.99


def test_nscc_fills_its_link_between_its_marks() -> None:
    """Ultra Ethernet 1.0: RED from 30 to 120 kB at 100 Gb/s holds the queue there; shares are fair."""
    seen = settle(4, 100.0, "nscc", 8, mtu=4_000)
    assert utilisation(seen, 4, 100, 8) > 0.99
    assert 30_000 < seen.column("queue_p50_bytes")[9] < seen.column("queue_p99_bytes")[9] < 120_000
    assert jain(rates(seen, 4).tolist()) > 0.99


def test_fixed_windows_stand_in_the_queue() -> None:
    """Four windows of 2 bandwidth-delay products: all but one product waits in the queue."""
    seen = settle(4, 100.0, {"kind": "fixed", "bdp": 2}, 4, mtu=1_044)
    bdp = 100e9 / 8 * (4e-6 + 2 * (1_062 + 66) * 8e-11)
    expected = 7 * bdp * 1_062 / 1_000
    assert expected / BIN / 1.05 <= seen.column("queue_p50_bytes")[9] <= 1.05 * expected


def test_a_dcqcn_with_a_shorter_timer_takes_more() -> None:
    """Rajasekaran et al., HotNets 2022: weights divide the timer of 300 us, so 55 us beside 300."""
    control = {"kind": "dcqcn", "timer": "300us"}
    seen = run(
        star(3), [(0, 2, 10**9), (1, 2, 10**9)], control, weights=[300 / 55, 1], steps_ps=(5 * MS, 40 * MS)
    )
    greedy, meek = rates(seen, 2)
    assert greedy > 1.5 * meek
    assert greedy + meek > 0.95 * 100e9 / 8 * 35e-3


@pytest.mark.parametrize("control", ["dcqcn", "dctcp", "hpcc", "timely"])
def test_mltcp_shares_by_f(control: str) -> None:
    """Beside one that has sent nothing of its iteration (F = 0.25), one at its end (F = 2) gets 8 / 9."""
    assert _share_at_the_end(control) == pytest.approx(8 / 9, abs=0.06)


def test_mltcp_does_nothing_over_swift_with_flow_scaling() -> None:
    """Its target evens out what F sets apart."""
    assert _share_at_the_end("swift") < 0.6
    assert _share_at_the_end({"kind": "swift", "fs_range": "0us"}) > 0.8


def test_mltcp_over_nscc_favours_who_is_near_its_end() -> None:
    """F multiplies what is added; cuts go by the delay, which both see."""
    assert 0.6 < _share_at_the_end("nscc") < 8 / 9


def _share_at_the_end(control: Any) -> float:
    """Of 50 Gb/s, the share of the job whose iteration is over beside one whose has just begun."""
    seen = run(
        star(3, 50.0),
        [(0, 2, 10**9), (1, 2, 10**9)],
        {"kind": "mltcp", "over": control},
        coflow_bytes=[0, 10**12],
        mtu=4_000,
        steps_ps=(8 * MS, 24 * MS),
    )
    sent = rates(seen, 2)
    return float(sent[0] / sent.sum())


def test_controls_queue_in_the_order_that_their_papers_say() -> None:
    """HPCC hardly, DCTCP up to K, Swift up to its target, DCQCN's bursts most (SIGCOMM 2019, figure 11)."""
    longest = {
        control: settle(8, 100.0, control, 4, mtu=1_500).column("queue_p99_bytes")[17]
        for control in ("hpcc", "dctcp", "swift", "dcqcn")
    }
    assert list(longest) == sorted(longest, key=longest.__getitem__)
    assert not math.isnan(sum(longest.values()))
