"""Priority flow control: nothing is dropped, pauses spread, and flows that meet no congestion suffer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cosim
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.kernel import kernel
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.timely import Timely
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.results.network_statistics import summarize_queues
from cosim.results.render.summary_page import render_queues
from cosim.topology.graph import Topology
from cosim.units import PS_PER_US
from tests.inputs import ROOT
from tests.network.congestion.worlds import graph, watch


def in_a_row() -> Topology:
    """0..3 -> 6 -> 7 -> 8 -> {4, 5}; the link to 4, number 0, is the bottleneck."""
    links = [
        (8, 4, 10e9, PS_PER_US),
        (7, 8, 40e9, PS_PER_US),
        (6, 7, 40e9, PS_PER_US),
        (8, 5, 40e9, PS_PER_US),
    ]
    links += [(k, 6, 40e9, PS_PER_US) for k in range(4)]
    return graph(6, 9, links)


def test_pfc_never_drops_and_its_pauses_spread() -> None:
    """Senders behind two switches in a row flood one host: both switches' links pause, to the senders."""
    flows = [(k, 4, 2_000_000) for k in range(3)] + [(3, 5, 2_000_000)]
    fixed = Fixed(bdp=20)
    paused = watch(
        in_a_row(), fixed, flows, PortSettings(headers=False, pause_bytes=200_000, mtu_bytes=1_000)
    )
    extra = paused.statistics.extra
    assert extra["drops"].sum() == 0
    # Four links fill the queue that all pass, each to its threshold; the others have one link before them.
    thresholds = np.where(np.arange(len(extra["drops"])) == 4, 4, 1) * 200_000
    assert (extra["queue_max_bytes"] <= thresholds * 1.001).all()
    assert extra["queue_max_bytes"][[0, 2, 4]] == pytest.approx(thresholds[[0, 2, 4]], rel=1e-3)
    by_link = extra["pause_ps"]
    assert (by_link[[2, 4]] > 0).all()  # both links on the way ...
    assert (by_link[[8, 10, 12]] > 0).all()  # ... and the senders' own
    assert by_link[[0, 6]].sum() == 0  # not those to hosts
    lossy = watch(
        in_a_row(),
        fixed,
        flows,
        PortSettings(headers=False, lossless=False, buffer_bytes=200_000, mtu_bytes=1_000),
    )
    assert lossy.statistics.extra["drops"].sum() > 0


def test_only_the_link_whose_bytes_fill_the_queue_is_stopped() -> None:
    """One brings 10, another 2 Gb/s to a port of 10: of what leaves the first has 5/6, so that its bytes grow
    by 10 - 25/3 Gb/s and are at the threshold after 960 us. Then it has the 8 Gb/s that the other one leaves,
    and the queue a quarter more than its threshold; the other's bytes never come near.
    """
    links = [(3, 2, 10e9, PS_PER_US), (0, 3, 10e9, PS_PER_US), (1, 3, 2e9, PS_PER_US)]
    flows = [(0, 2, 10**8), (1, 2, 10**8)]
    pause = 200_000
    for until_us, stopped in ((950, False), (2_000, True)):
        seen = watch(
            graph(3, 4, links),
            Fixed(bdp=1e6),
            flows,
            PortSettings(headers=False, pause_bytes=pause, mtu_bytes=1_000),
            until_ps=until_us * PS_PER_US,
        )
        by_link = seen.statistics.extra["pause_ps"]
        assert (by_link[2] > 0) == stopped
        assert by_link[4] == 0
    assert seen.statistics.extra["queue_max_bytes"][0] == pytest.approx(pause * 5 / 4, rel=0.01)


def test_a_flow_that_meets_no_congestion_waits_behind_those_that_do() -> None:
    """Head-of-line blocking: on a link that is paused for three others, a fourth gets what each of them gets
    of the bottleneck, a third of 10 Gb/s, though its own way is free; with drops it has far more.
    """
    flows = [(k, 4, 2_000_000) for k in range(3)] + [(3, 5, 2_000_000)]
    paused = watch(
        in_a_row(), Fixed(bdp=20), flows, PortSettings(headers=False, pause_bytes=100_000, mtu_bytes=1_000)
    )
    fair_ps = 2_000_000 * 8e12 / (10e9 / 3)
    assert paused.done_ps[3] == pytest.approx(fair_ps, rel=0.1)
    alone = watch(
        in_a_row(),
        Fixed(bdp=20),
        flows[3:],
        PortSettings(headers=False, pause_bytes=100_000, mtu_bytes=1_000),
    )
    assert paused.done_ps[3] > 8 * alone.done_ps[0]


def test_pauses_are_reported() -> None:
    topology = in_a_row()
    flows = [(k, 4, 2_000_000) for k in range(4)]
    seen = watch(
        topology, Fixed(bdp=20), flows, PortSettings(headers=False, pause_bytes=100_000, mtu_bytes=1_000)
    )
    queues = summarize_queues(topology, seen.statistics)
    assert queues is not None
    by_link = seen.statistics.extra["pause_ps"]
    assert queues.pause_ps == round(by_link.sum())
    assert queues.pause_most_ps == round(by_link.max())
    assert queues.pause_link == topology.link_name(int(by_link.argmax()))
    # 40 Gb/s are let through at 10: the link before the bottleneck stands still for 3/4 of the time.
    assert by_link[2] == pytest.approx(0.75 * 8e6 * 8e12 / 10e9, rel=0.1)
    assert f"at most {queues.pause_link} for" in render_queues(queues)


def test_no_link_of_the_shipped_incast_sends_more_than_it_can() -> None:
    """The bottleneck never rests: its last byte comes when it has sent 6 MB, plus the way there and on."""
    records = cosim.run(ROOT / "scenarios" / "pfc-victim.yaml", messages=True).records
    assert records.messages is not None
    least = records.links.link_bytes * 8e12 / records.topology.link_rate_bps
    last = records.messages.end_ps.max()
    assert (least <= last + 1).all()
    assert last == pytest.approx(least.max() + 4 * PS_PER_US, abs=2 * PS_PER_US)


@pytest.mark.parametrize("size", [30_000, 90_000, 250_000])
def test_the_last_bytes_of_an_incast_that_begins_to_pause_wait_for_the_bottleneck(size: int) -> None:
    """All is in queues before the first pause, or a little later: the bottleneck sends it at its rate."""
    seen = watch(
        in_a_row(),
        Fixed(bdp=100),
        [(k, 4, size) for k in range(4)],
        PortSettings(headers=False, pause_bytes=50_000, mtu_bytes=1_000),
    )
    least = 4 * size * 8e12 / 10e9
    assert least <= max(seen.done_ps.values()) <= least + 7 * PS_PER_US


@given(
    st.lists(
        st.tuples(st.sampled_from((10e9, 25e9, 40e9)), st.integers(1_000, 400_000), st.integers(0, 200)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from((10e9, 40e9, 100e9)),
    st.sampled_from((1e9, 5e9, 10e9)),
)
@example([(10e9, 155_044, 0)], 40e9, 1e9)  # the last byte is sent while the port in the middle is paused
@example([(10e9, 32_892, 168), (10e9, 242_330, 0), (25e9, 58_734, 94)], 100e9, 5e9)
@settings(max_examples=40)
def test_what_stood_before_a_pause_comes_to_the_bottleneck_after_it(
    sources: list[tuple[float, int, int]], middle: float, last: float
) -> None:
    """Whatever starts at a time or later, the last link sends at its rate, not faster."""
    count = len(sources)
    links = [(k, count + 1, rate, 1_000) for k, (rate, _, _) in enumerate(sources)]
    links += [(count + 1, count + 2, middle, 1_000), (count + 2, count, last, 1_000)]
    starts = [start * PS_PER_US for _, _, start in sources]
    seen = watch(
        graph(count + 1, count + 3, links),
        Fixed(bdp=1_000),
        [(k, count, size) for k, (_, size, _) in enumerate(sources)],
        PortSettings(headers=False, mtu_bytes=1_000),
        starts_ps=starts,
    )
    for begin in starts:
        left = sum(size for (_, size, _), start in zip(sources, starts, strict=True) if start >= begin)
        assert max(seen.done_ps.values()) >= begin + left * 8e12 / last


def test_flows_one_after_another_on_one_paused_connection_come_in_their_order() -> None:
    flows = [(k % 2, 4, 200_000) for k in range(20)]
    seen = watch(
        in_a_row(), Fixed(bdp=100), flows, PortSettings(headers=False, pause_bytes=50_000, mtu_bytes=1_000)
    )
    for source in range(2):
        done = [seen.done_ps[k] for k in range(source, 20, 2)]
        assert done == sorted(done)
    assert max(seen.done_ps.values()) >= 20 * 200_000 * 8e12 / 10e9


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1_000, 900_000), st.integers(0, 300), st.integers(0, 2)),
        min_size=2,
        max_size=12,
    ),
    st.integers(20, 900),
)
@example(
    [
        (1, 1_000, 161, 0),
        (1, 369_694, 84, 0),
        (0, 1_000, 108, 0),
        (1, 4_401, 107, 0),
        (0, 1_000, 226, 0),
        (0, 1_000, 0, 0),
        (0, 1_000, 226, 0),
        (0, 66_416, 129, 0),
        (2, 203_743, 108, 0),
        (0, 1_000, 0, 0),
        (1, 11_635, 106, 0),
    ],
    233,
)  # one link comes and goes, each time within a few bytes, while another one sends on
@example(
    [(0, 45_000, 0, 0), (2, 1_000, 300, 0), (1, 400_000, 10, 1)], 30
)  # behind a class of which none comes
@settings(max_examples=30)
def test_a_queue_is_what_its_inputs_brought(sent: list[tuple[int, int, int, int]], until_us: int) -> None:
    """Of every port at any time: the bytes of all links in together are its queue, and none is over its
    threshold, class by class; the same by two ways of counting.

    But for a moment: rate boundaries pass up to 64 bytes early (``least_queue``). Until those are served they
    count as of what comes after them. A threshold is looked at a nanosecond late at most, 5 bytes at 40 Gb/s.
    """
    early, late = 64, 5
    network = CongestionNetwork(Timely(), PortSettings(headers=False, pause_bytes=60_000, mtu_bytes=1_000))
    flows = [(source, 4 + k % 2, size) for k, (source, size, *_) in enumerate(sent)]
    starts = [start * PS_PER_US for _, _, start, _ in sent]
    priorities = [priority for *_, priority in sent]
    until = until_us * PS_PER_US
    watch(
        in_a_row(),
        Timely(),
        flows,
        network=network,
        starts_ps=starts,
        until_ps=until,
        priorities=priorities,
    )
    for inputs, queue in brought(network, until):
        assert min(inputs) > -early - 1
        assert max(inputs) < 60_000 + early + late + 1
        assert sum(inputs) == pytest.approx(queue, abs=early + 1)


@pytest.mark.parametrize("until_us", [66, 75, 110, 200])
def test_what_came_to_a_dead_link_is_gone_of_its_input_shares_too(until_us: int) -> None:
    """The bottleneck is dead for 5 us, while 25 kB come that stood before it."""
    topology, fixed = in_a_row(), Fixed(bdp=20)
    changes = LinkChanges([LinkChange(60 * PS_PER_US, 0, 0.0), LinkChange(65 * PS_PER_US, 0, 10e9)])
    object.__setattr__(topology, "changes", changes)
    network = CongestionNetwork(
        fixed, PortSettings(headers=False, lossless=True, pause_bytes=60_000, mtu_bytes=1_000)
    )
    flows, until = [(k, 4, 2_000_000) for k in range(3)], until_us * PS_PER_US
    watch(topology, fixed, flows, network=network, until_ps=until)
    for inputs, queue in brought(network, until):
        assert sum(inputs) == pytest.approx(queue, abs=65)


def brought(network: CongestionNetwork, until_ps: int) -> list[tuple[list[float], float]]:
    """Of each port that others send to: the bytes of each link in, and its queue."""
    kernel.settle_all_queues(network.core, network._fluid, until_ps)
    fluid, found = network._fluid, []
    for line, port in zip(fluid.lines, fluid.ports, strict=True):
        inputs, at = [], port["inputs"]
        while at >= 0:
            share = fluid.inputs[at]
            turns = line["turns"] + (port["served"] - line["since"]) / max(line["out"], 1)
            came = share["load"] * 1.25e-13 * (until_ps - share["at"])
            inputs.append(float(share["bytes"] + came - share["out"] * (turns - share["turns"])))
            at = share["next"]
        if inputs:
            found.append((inputs, float(port["queue"])))
    return found


@pytest.mark.filterwarnings("error")
def test_a_flow_that_begins_over_a_dead_link_waits_for_no_queue_of_it() -> None:
    """A rate is chosen by a round trip, over a path with a queue before a link that is dead just then."""
    begin = {96_082: 112, 747_772: 93, 346_509: 0, 6_522: 89, 1_000: 254}
    flows = [(0 if size == 6_522 else 2, 5 if size == 96_082 else 4, size) for size in begin]
    dead = [(92, 2, 0.0), (97, 2, 40e9), (267, 4, 5e9), (272, 4, 40e9)]
    changes = [LinkChange(time_ps=us * PS_PER_US, link=link, rate_bps=rate) for us, link, rate in dead]
    topology = replace(in_a_row(), changes=LinkChanges(changes, 10**5))
    ports = PortSettings(headers=False, pause_bytes=60_000, mtu_bytes=1_000)
    network = CongestionNetwork(Timely(), ports)
    starts = [us * PS_PER_US for us in begin.values()]
    seen = watch(topology, Timely(), flows, network=network, starts_ps=starts, priorities=[1, 1, 1, 2, 0])
    assert sorted(seen.done_ps) == list(range(len(flows)))
    assert seen.statistics.link_bytes[0] >= sum(size for size in begin if size != 96_082)
