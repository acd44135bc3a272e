"""Controls against closed forms of their papers, and parameters that move results the way papers say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from congestion_worlds import Seen, dumbbell, graph, star, watch

from cosim.network.congestion.control import Control
from cosim.network.congestion.controls.cubic import Cubic, cube_root
from cosim.network.congestion.controls.dcqcn import Dcqcn, none_of
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.hpcc import Hpcc
from cosim.network.congestion.controls.newreno import NewReno
from cosim.network.congestion.controls.swift import Swift
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.network import Ports
from cosim.units import PS_PER_US

MS = 10**9


@pytest.mark.parametrize(("flows", "threshold"), [(2, 40), (2, 65), (4, 120)])
def test_dctcp_oscillates_as_its_analysis_says(flows: int, threshold: int) -> None:
    """Alizadeh et al., SIGCOMM 2010, section 3.3: Q_max = K + N, amplitude N (W + 1) alpha / 2 with
    alpha = sqrt(2 / W), W = (C RTT + K) / N, all in packets.
    """
    packet = 1_500
    seen = watch(
        dumbbell(flows, 10e9, 16 * PS_PER_US, edge=40e9),
        Dctcp(threshold=threshold * packet),
        [(k, flows + k, 10**10) for k in range(flows)],
        Ports(mtu_bytes=packet, buffer_bytes=3_000_000),
        until_ps=150 * MS,
        step_ps=20 * PS_PER_US,
    )
    queue = seen.queue[len(seen.queue) // 2 :, 0] / packet
    rtt = 96e-6 + packet * 8 / 10e9 + 2 * packet * 8 / 40e9
    window = (10e9 / 8 / packet * rtt + threshold) / flows
    amplitude = flows * (window + 1) * math.sqrt(2 / window) / 2
    assert queue.max() == pytest.approx(threshold + flows, abs=1.5)
    assert queue.max() - queue.min() == pytest.approx(amplitude, rel=0.15)


@pytest.mark.parametrize(("flows", "within"), [(2, 0.15), (10, 0.3)])
def test_dcqcn_settles_at_its_fixed_point(flows: int, within: float) -> None:
    """Zhu et al., "ECN or Delay", CoNEXT 2016, equation 14: the marking probability is the cube root of
    (R_AI N^2 / (tau' C^2)) (1 / B + N / (T C))^2, in packets and seconds; the queue follows from RED.
    """
    packet, rate = 1_000, 40e9
    capacity, tau = rate / 8 / packet, 55e-6
    seen = watch(
        star(flows, rate, PS_PER_US),
        Dcqcn(),
        [(k, flows, 10**10) for k in range(flows)],
        Ports(mtu_bytes=packet),
        until_ps=300 * MS,
        step_ps=50 * PS_PER_US,
    )
    half = len(seen.queue) // 2
    increase = 40e6 / 8 / packet
    part = 1 / (10e6 / packet) + flows / (tau * capacity)
    marked = (increase * flows**2 / (tau * capacity**2) * part**2) ** (1 / 3)
    assert seen.queue[half:, 0].mean() == pytest.approx(5_000 + marked / 0.01 * 195_000, rel=within)
    assert np.allclose(seen.rate[half:].mean(axis=0), rate / flows, rtol=0.01)


def test_hpcc_keeps_eta_of_the_link_and_no_queue() -> None:
    seen = watch(
        star(8, 100e9, PS_PER_US),
        Hpcc(),
        [(k, 8, 50_000_000) for k in range(8)],
        until_ps=4 * MS,
        step_ps=5 * PS_PER_US,
    )
    late = len(seen.queue) // 4
    assert seen.queue[late:, 0].max() < 1_000
    assert seen.rate[late:].sum(axis=1).mean() / 100e9 == pytest.approx(0.95, abs=0.015)


FAST = [Dctcp(), NewReno(), Cubic(), Swift(), Hpcc(), Fixed()]


@pytest.mark.parametrize("control", FAST, ids=lambda control: type(control).__name__)
@pytest.mark.parametrize("senders", [8, 64])
def test_an_incast_fills_its_link(senders: int, control: Control) -> None:
    size = 4_000_000
    seen = watch(star(senders, 100e9, PS_PER_US), control, [(k, senders, size) for k in range(senders)])
    ideal_ps = senders * size * 80
    # A sender may owe less than a packet of what was lost.
    assert 0.995 * ideal_ps <= max(seen.done_ps.values()) <= ideal_ps / 0.95


@pytest.mark.parametrize(
    ("control", "senders", "size"),
    [(Timely(), 8, 16), (Timely(), 64, 4), (Dcqcn(), 8, 64), (Dcqcn(), 64, 32)],
    ids=lambda one: type(one).__name__ if isinstance(one, Control) else None,
)
def test_an_incast_of_those_that_start_at_line_rate_fills_its_link_in_the_end(
    control: Control, senders: int, size: int
) -> None:
    """Both have to find their rates from far above them first: messages of 4 MB are too short for that."""
    flows = [(k, senders, size * 1_000_000) for k in range(senders)]
    seen = watch(star(senders, 100e9, PS_PER_US), control, flows)
    ideal_ps = senders * size * 1_000_000 * 80
    assert 0.999 * ideal_ps <= max(seen.done_ps.values()) <= ideal_ps / 0.95


def test_notifications_in_a_row_are_one_event_unless_the_target_is_clamped() -> None:
    """Zhu et al., equation 1, loses the rate from before the burst; NICs, and QCN, come back to it."""
    flows = [(k, 8, 4_000_000) for k in range(8)]
    took = [
        max(watch(star(8, 100e9, PS_PER_US), Dcqcn(clamp_target=clamp), flows).done_ps.values())
        for clamp in (True, False)
    ]
    assert took[0] > 1.5 * took[1]


def test_pfc_never_drops_and_its_pauses_spread() -> None:
    """Senders behind two switches in a row flood one host: both switches' links pause, to the senders, and a
    flow to another host, over the same links, is held up with them.
    """
    # 0..3 -> 6 -> 7 -> 8 -> {4, 5}; the link to 4 is the bottleneck
    links = [
        (8, 4, 10e9, PS_PER_US),
        (7, 8, 40e9, PS_PER_US),
        (6, 7, 40e9, PS_PER_US),
        (8, 5, 40e9, PS_PER_US),
    ]
    links += [(k, 6, 40e9, PS_PER_US) for k in range(4)]
    topology = graph(6, 9, links)
    flows = [(k, 4, 2_000_000) for k in range(3)] + [(3, 5, 2_000_000)]
    fixed = Fixed(bdp=20)
    paused = watch(topology, fixed, flows, Ports(pause_bytes=200_000, mtu_bytes=1_000))
    extra = paused.statistics.extra
    assert extra["drops"].sum() == 0
    assert extra["queue_max_bytes"].max() <= 200_000 * 1.001
    by_link = extra["pause_ps"]
    assert (by_link[[2, 4]] > 0).all()  # both links on the way ...
    assert (by_link[[8, 10, 12]] > 0).all()  # ... and the senders' own
    alone = watch(topology, fixed, flows[3:], Ports(pause_bytes=200_000, mtu_bytes=1_000))
    assert paused.done_ps[3] > 2 * alone.done_ps[0]
    lossy = watch(topology, fixed, flows, Ports(lossless=False, buffer_bytes=200_000, mtu_bytes=1_000))
    assert lossy.statistics.extra["drops"].sum() > 0


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


def _run(control: Control, senders: int = 4, rate: float = 100e9, until_ms: int = 3) -> Seen:
    flows = [(k, senders, 10**10) for k in range(senders)]
    return watch(
        star(senders, rate, PS_PER_US), control, flows, until_ps=until_ms * MS, step_ps=10 * PS_PER_US
    )


def _queue(seen: Seen) -> float:
    return float(seen.queue[len(seen.queue) // 2 :, 0].mean())


def test_parameters_move_results_the_way_their_papers_say() -> None:
    # DCTCP: a lower threshold, a shorter queue.
    assert _queue(_run(Dctcp(threshold=200_000))) < _queue(_run(Dctcp(threshold=600_000)))
    # Swift: a larger target, a longer queue.
    assert _queue(_run(Swift())) < _queue(_run(Swift(base_target="60us")))
    # HPCC: eta is the utilisation.
    for eta in (0.7, 0.95):
        seen = _run(Hpcc(eta=eta))
        assert seen.rate[len(seen.rate) // 2 :].sum(axis=1).mean() / 100e9 == pytest.approx(eta, abs=0.02)
    # TIMELY: a higher t_high leaves a longer queue.
    assert _queue(_run(Timely(), until_ms=20)) < _queue(_run(Timely(t_low="200us"), until_ms=20))
    # DCQCN: a faster timer, a longer queue (its fixed point).
    slow, fast = Dcqcn(timer="300us"), Dcqcn()
    assert _queue(_run(slow, 4, 40e9, 100)) < _queue(_run(fast, 4, 40e9, 100))
    # CUBIC and NewReno: a gentler cut leaves a longer queue.
    for kind in (Cubic, NewReno):
        queues = [_queue(_run(kind(beta=beta), until_ms=20)) for beta in (0.5, 0.9)]
        assert queues[0] < queues[1]


def test_roots_and_powers_are_right() -> None:
    for x in (1e-6, 0.5, 1.0, 26.99, 1e9):
        assert cube_root(x) == pytest.approx(x ** (1 / 3), rel=1e-12)
    assert none_of(0.01, 137) == pytest.approx(0.99**137, rel=1e-12)
    assert none_of(0.3, 0) == 1.0
