"""Incasts: what each control makes of them, against packets one by one; what is sent arrives, once."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.cubic import Cubic
from cosim.network.congestion.controls.dcqcn import Dcqcn
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.hpcc import Hpcc
from cosim.network.congestion.controls.newreno import NewReno
from cosim.network.congestion.controls.swift import Swift
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.topology.graph import Topology
from cosim.units import PS_PER_US
from tests.network.congestion.packets import simulate
from tests.network.congestion.worlds import graph, on_wire, star, watch

MS = 10**9
FAST = [Dctcp(), NewReno(), Cubic(), Swift(), Hpcc(), Fixed(), Timely(patched=True)]


def name_of(one: object) -> str | None:
    """Of a control, its class."""
    return type(one).__name__ if isinstance(one, Control) else None


@pytest.mark.parametrize("control", FAST, ids=name_of)
@pytest.mark.parametrize("senders", [8, 64])
def test_an_incast_fills_its_link(senders: int, control: Control) -> None:
    size = 4_000_000
    seen = watch(star(senders, 100e9, PS_PER_US), control, [(k, senders, size) for k in range(senders)])
    ideal_ps = senders * on_wire(control, size, 9_000) * 80
    # A sender may owe less than a packet of what was lost.
    assert 0.995 * ideal_ps <= max(seen.done_ps.values()) <= ideal_ps / 0.95


@pytest.mark.parametrize("senders", [8, 64])
def test_dcqcn_fills_the_link_of_an_incast_that_lasts(senders: int) -> None:
    """As Zhu et al., SIGCOMM 2015, measured it, on long flows at 40 Gb/s: "total throughput is always more
    than 39 Gbps". A few messages of 4 MB are too short, see below.
    """
    network = CongestionNetwork(Dcqcn())
    flows = [(k, senders, 10**10) for k in range(senders)]
    seen = watch(star(senders, 40e9, PS_PER_US), Dcqcn(), flows, until_ps=60 * MS, network=network)
    # What the link has served, not what is sent: each sender's link may fill the queue by a threshold more.
    served = network._fluid.ports["served"][0] * 8 / 60e-3
    assert 39e9 <= served <= 40e9
    assert seen.statistics.extra["drops"].sum() == 0


def leaf_spine() -> Topology:
    """Eight senders on four leaves, two spines, and the receiver's leaf: queues in series."""
    host, leaf, spine, last = range(9), range(9, 13), range(13, 15), 15
    links = [(last, 8, 100e9, PS_PER_US)]
    links += [(host[k], leaf[k // 2], 100e9, PS_PER_US) for k in range(8)]
    links += [(leaf[k], spine[k % 2], 100e9, PS_PER_US) for k in range(4)]
    links += [(one, last, 100e9, PS_PER_US) for one in spine]
    return graph(9, 16, links)


@pytest.mark.parametrize(
    ("control", "topology", "mtu", "seeds", "within"),
    [
        (Dcqcn(), star(8, 100e9, PS_PER_US), 9_000, 6, 0.08),
        (Dcqcn(preset="connectx"), star(8, 100e9, PS_PER_US), 9_000, 6, 0.08),
        (Dcqcn(), leaf_spine(), 9_000, 6, 0.1),
        (Timely(), star(8, 100e9, PS_PER_US), 1_000, 1, 0.06),
        (Timely(), leaf_spine(), 1_000, 1, 0.1),
        (Timely(patched=True), leaf_spine(), 9_000, 1, 0.1),
    ],
    ids=["dcqcn", "connectx", "dcqcn-series", "timely", "timely-series", "patched-series"],
)
def test_an_incast_goes_as_packets_one_by_one_do(
    control: Dcqcn | Timely, topology: Topology, mtu: int, seeds: int, within: float
) -> None:
    """8 messages of 4 MB: mean completion time, over seeds, and the last one's to twice as much."""
    flows = [(k, 8, 4_000_000) for k in range(8)]
    pause = 1_150_000
    ports = PortSettings(mtu_bytes=mtu, buffer_bytes=2 * pause, pause_bytes=pause, headers=False)
    fluid, packets = [], []
    for seed in range(seeds):
        done, _ = simulate(topology, control, flows, mtu=mtu, pause=pause, seed=seed)
        packets.append(done)
        seen = watch(topology, control, flows, ports, seed=seed)
        fluid.append([seen.done_ps[k] for k in range(8)])
    assert np.mean(fluid) == pytest.approx(np.mean(packets), rel=within)
    last = [np.mean(np.max(one, axis=1)) for one in (fluid, packets)]
    assert last[0] == pytest.approx(last[1], rel=2 * within)


def test_dcqcn_draws_lots_from_the_seed() -> None:
    flows = [(k, 8, 1_000_000) for k in range(8)]
    done = [watch(star(8, 100e9, PS_PER_US), Dcqcn(), flows, seed=seed).done_ps for seed in (1, 1, 2)]
    assert done[0] == done[1] != done[2]
    assert len(set(done[0].values())) > 4  # equal senders, but not in step


def test_notifications_in_a_row_are_one_event_unless_the_target_is_clamped() -> None:
    """Zhu et al., equation 1, loses the rate from before the burst; NICs, and QCN, come back to it."""
    flows = [(k, 8, 4_000_000) for k in range(8)]
    took = [
        np.mean(list(watch(star(8, 100e9, PS_PER_US), Dcqcn(clamp_target=clamp), flows).done_ps.values()))
        for clamp in (True, False)
    ]
    assert took[0] > 1.3 * took[1]


@pytest.mark.parametrize("control", [Fixed(bdp=5), Timely(), Dctcp()], ids=name_of)
def test_what_a_switch_is_sent_leaves_it(control: Control) -> None:
    """Queues in series, pauses, senders that stop: each switch sends on what it was sent, or still has it."""
    topology = leaf_spine()
    network = CongestionNetwork(control, PortSettings(mtu_bytes=1_000))
    flows = [(k, 8, 4_000_000) for k in range(8)]
    seen = watch(topology, control, flows, PortSettings(mtu_bytes=1_000), network=network)
    assert max(seen.done_ps.values()) >= 0.99 * 32e6 * 80
    ports = network._fluid.ports[: topology.num_links]
    for node in range(topology.num_endpoints, topology.num_nodes):
        came = ports["served"][topology.link_dst == node].sum()
        went = (ports["served"] + ports["queue"])[topology.link_src == node].sum()
        assert went == pytest.approx(came, rel=2e-3)


def test_queue_percentiles_are_those_of_a_known_queue() -> None:
    """Two senders at line rate: the queue goes up to what one sends, and down; bytes meet all of it alike."""
    size = 3_000_000
    seen = watch(
        star(2, 100e9, 0),
        Fixed(bdp=1e6),
        [(0, 2, size), (1, 2, size)],
        PortSettings(mtu_bytes=1_000, buffer_bytes=10**8, headers=False),
        until_ps=MS,
    )
    extra = seen.statistics.extra
    assert extra["queue_max_bytes"][0] == pytest.approx(size, rel=0.01)
    assert extra["queue_p50_bytes"][0] == pytest.approx(0.5 * size, rel=0.01)
    assert extra["queue_p99_bytes"][0] == pytest.approx(0.99 * size, rel=0.01)


def test_queue_percentiles_are_those_of_samples() -> None:
    seen = watch(
        star(4, 100e9, PS_PER_US),
        Dctcp(),
        [(k, 4, 10**10) for k in range(4)],
        until_ps=20 * MS,
        step_ps=PS_PER_US,
    )
    for name, share in (("queue_p50_bytes", 50), ("queue_p99_bytes", 99)):
        sampled = np.percentile(seen.queue[:, 0], share)
        assert seen.statistics.extra[name][0] == pytest.approx(sampled, rel=0.02)
