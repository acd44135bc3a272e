"""Controls against closed forms of their papers, and parameters that move results the way papers say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cosim.kernel import kernel
from cosim.network.congestion.controls.dcqcn import Dcqcn
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.hpcc import Hpcc
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.fabric import PortSettings
from cosim.units import PS_PER_US
from tests.network.congestion.moves import MOVES, Move
from tests.network.congestion.worlds import dumbbell, star, watch

MS = 10**9


def dctcp_fluid(flows: int, capacity: float, rtt: float, threshold: float) -> tuple[float, float]:
    """Largest and smallest queue (packets) of the fluid model of Alizadeh et al., "Analysis of DCTCP",
    SIGMETRICS 2011, doi:10.1145/1993744.1993753, integrated by Euler's method from near its limit cycle.
    """
    step, gain = 4e-7, 1 / 16
    window = (capacity * rtt + threshold) / flows
    alpha, queue = math.sqrt(2 / window), 0.9 * threshold
    marked = [0.0] * round((rtt + threshold / capacity) / step)
    seen = []
    for k in range(150_000):
        trip = rtt + queue / capacity
        then, marked[k % len(marked)] = marked[k % len(marked)], float(queue > threshold)
        window += step * (1 / trip - window * alpha / (2 * trip) * then)
        alpha += step * gain / trip * (then - alpha)
        queue = max(queue + step * (flows * window / trip - capacity), 0.0)
        if k > 75_000:
            seen.append(queue)
    return max(seen), min(seen)


@pytest.mark.parametrize(("flows", "threshold"), [(2, 40), (4, 120), (10, 40), (10, 65)])
def test_dctcp_oscillates_as_its_analysis_says(flows: int, threshold: int) -> None:
    """Alizadeh et al., SIGCOMM 2010, section 3.3: Q_max = K + N, amplitude N (W + 1) alpha / 2 with
    alpha = sqrt(2 / W), W = (C RTT + K) / N, all in packets. The model moves in whole round trips, in each of
    which N flows add N packets: what the analysis has in fractions of one is right to that. (For ten flows a
    cycle is 2.7 round trips long.)
    """
    packet = 1_500
    seen = watch(
        dumbbell(flows, 10e9, 16 * PS_PER_US, edge=40e9),
        Dctcp(threshold=threshold * packet),
        [(k, flows + k, 10**10) for k in range(flows)],
        PortSettings(mtu_bytes=packet, buffer_bytes=3_000_000),
        until_ps=150 * MS,
        step_ps=20 * PS_PER_US,
    )
    queue = seen.queue[len(seen.queue) // 2 :, 0] / packet
    rtt = 96e-6 + packet * 8 / 10e9 + 2 * packet * 8 / 40e9
    capacity = 10e9 / 8 / packet
    window = (capacity * rtt + threshold) / flows
    amplitude = flows * (window + 1) * math.sqrt(2 / window) / 2
    most, least = dctcp_fluid(flows, capacity, rtt, threshold)
    assert queue.max() == pytest.approx(threshold + flows, abs=0.5 * flows + 1.5)
    assert queue.max() == pytest.approx(most, abs=0.5 * flows + 1.5)
    swing = queue.max() - queue.min()
    assert swing == pytest.approx(amplitude, abs=1.3 * flows)
    assert swing == pytest.approx(most - least, abs=1.3 * flows + 2)
    if flows < 10:
        assert swing == pytest.approx(amplitude, rel=0.15)


def dcqcn_equilibrium(flows: int, capacity: float) -> float:
    """The marking probability where nothing moves in the ODEs of Zhu et al., "ECN or Delay", CoNEXT 2016,
    equations 5 to 7 (rates in packets/s), by bisection. Their equation 14, the cube root of
    (R_AI N^2 / (tau' C^2)) (1 / B + N / (T C))^2, is its expansion for small p.
    """
    rate, tau, tau_alpha, timer, count, stages, increase = capacity / flows, 50e-6, 55e-6, 55e-6, 1e4, 5, 5e3
    low, high = 1e-9, 0.5
    for _ in range(60):
        p = math.sqrt(low * high)
        alpha, cut = 1 - (1 - p) ** (tau_alpha * rate), 1 - (1 - p) ** (tau * rate)
        by_bytes, by_timer = p / ((1 - p) ** -count - 1), p / ((1 - p) ** (-timer * rate) - 1)
        grown = (1 - p) ** (stages * count) * by_bytes + (1 - p) ** (stages * timer * rate) * by_timer
        gap = increase * rate * grown * tau / cut  # target above rate
        if gap / 2 * rate * (by_bytes + by_timer) > rate * alpha / (2 * tau) * cut:
            low = p
        else:
            high = p
    return low


@pytest.mark.parametrize("flows", [2, 4, 10])
def test_dcqcn_settles_at_its_fixed_point(flows: int) -> None:
    """The queue follows from RED at that probability. It is noisy, as lots are drawn; where bursts of
    notifications leave the target, as by default, it lies between the equilibrium and equation 14, to 15 %.
    """
    packet, rate = 1_000, 40e9
    capacity = rate / 8 / packet
    seen = watch(
        star(flows, rate, PS_PER_US),
        Dcqcn(),
        [(k, flows, 10**10) for k in range(flows)],
        PortSettings(mtu_bytes=packet),
        until_ps=250 * MS,
        step_ps=50 * PS_PER_US,
    )
    late = len(seen.queue) // 3
    exact = dcqcn_equilibrium(flows, capacity)
    part = 1 / 1e4 + flows / (55e-6 * capacity)
    rough = (5e3 * flows**2 / (55e-6 * capacity**2) * part**2) ** (1 / 3)
    assert exact < rough < 1.35 * exact
    queue = seen.queue[late:, 0].mean()
    assert 0.85 * (5_000 + exact / 0.01 * 195_000) <= queue <= 1.15 * (5_000 + rough / 0.01 * 195_000)
    rates = seen.rate[late:].mean(axis=0)
    assert rates.sum() >= 0.975 * rate  # 39 Gb/s of 40
    assert np.allclose(rates, rate / flows, rtol=0.12)


@pytest.mark.parametrize("flows", [2, 4])
def test_patched_timely_settles_at_its_fixed_point(flows: int) -> None:
    """Zhu et al., CoNEXT 2016, equation 31: the round-trip time is t_low (1 + N delta / (beta C)), at equal
    rates."""
    rate = 10e9
    seen = watch(
        star(flows, rate, PS_PER_US),
        Timely(patched=True),
        [(k, flows, 10**10) for k in range(flows)],
        PortSettings(mtu_bytes=1_000, buffer_bytes=10_000_000),
        until_ps=80 * MS,
        step_ps=50 * PS_PER_US,
    )
    late = len(seen.queue) * 3 // 4
    bare = 4e-6 + 2 * 1_000 * 8 / rate
    settles = 50e-6 * (1 + flows * 10e6 / (0.008 * rate))
    queue = seen.queue[late:, 0]
    assert queue.mean() == pytest.approx((settles - bare) * rate / 8, rel=0.03)
    assert queue.std() < 0.05 * queue.mean()
    assert np.allclose(seen.rate[late:].mean(axis=0), rate / flows, rtol=0.05)


def test_hpcc_keeps_eta_of_the_link_and_no_queue() -> None:
    seen = watch(
        star(8, 100e9, PS_PER_US),
        Hpcc(),
        [(k, 8, 50_000_000) for k in range(8)],
        until_ps=4 * MS,
        step_ps=5 * PS_PER_US,
    )
    late = len(seen.queue) // 4
    assert seen.queue[late:, 0].max() < 2_000  # of a bandwidth-delay product of 59,000
    assert seen.rate[late:].sum(axis=1).mean() / 100e9 == pytest.approx(0.95, abs=0.015)


def test_fixed_windows_share_by_weight() -> None:
    seen = watch(
        dumbbell(2, 10e9, PS_PER_US),
        Fixed(bdp=2),
        [(0, 2, 10**9), (1, 3, 10**9)],
        until_ps=10 * MS,
        step_ps=MS,
        weights=[2.0, 1.0],
    )
    first, second = seen.rate[-1]
    assert first / second == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("move", MOVES, ids=lambda move: f"{move.control.__name__}-{move.parameter}")
def test_parameters_move_results_the_way_their_papers_say(move: Move) -> None:
    first, second = move.results()
    assert second > 1.05 * first


def test_roots_and_powers_are_right() -> None:
    for x in (1e-6, 0.5, 1.0, 26.99, 1e9):
        assert kernel.cube_root(x) == pytest.approx(x ** (1 / 3), rel=1e-12)
    assert kernel.none_of(0.01, 137) == pytest.approx(0.99**137, rel=1e-12)
    assert kernel.none_of(0.3, 0) == 1.0
