"""Packets of RDMA do what they do on a wire: times, buffers, pauses, losses, ways, failures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cosim.errors import CosimError
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.flows import I32, I64
from cosim.topology.graph import Paths, Topology
from cosim.units import NEVER
from tests.adapters.ns3_worlds import graph, star
from tests.adapters.rdma_worlds import CONTROLS, US, alone_ps, run, wire_bytes

DOWN = 17
"""The link from the switch of ``star(9)`` to its last endpoint."""


@pytest.mark.parametrize(("size", "mtu"), [(1, 4096), (4052, 4096), (1_000_000, 4096), (300_001, 1500)])
def test_a_lone_message_takes_its_bytes_over_the_line_rate_to_the_nanosecond(size: int, mtu: int) -> None:
    done = run(star(2), [(0, 1, size)], "dcqcn", mtu=mtu)
    assert done.end_ps[0] == pytest.approx(alone_ps(size, mtu, 100, 2, US), abs=1000)
    assert done.link_bytes[-1][0] == wire_bytes(size, mtu)


def test_each_direction_of_a_cable_has_its_own_rate_and_latency() -> None:
    there_and_back = [(0, 1, 100.0, 5 * US), (1, 0, 25.0, US)]
    forth, back = run(graph(2, there_and_back), [(0, 1, 500_000), (1, 0, 500_000)], "timely").end_ps
    assert forth == pytest.approx(alone_ps(500_000, 9000, 100, 1, 5 * US), rel=0.01)
    assert back == pytest.approx(alone_ps(500_000, 9000, 25, 1, US), rel=0.01)


@pytest.mark.parametrize("control", CONTROLS)
def test_an_incast_loses_nothing_and_is_no_faster_than_its_link(control: str) -> None:
    done = run(star(9), [(k, 8, 2_000_000) for k in range(8)], control, mtu=4000)
    telemetry = 42 if control == "hpcc" else 0
    least = 8 * wire_bytes(2_000_000, 4000, telemetry) * 80
    assert least <= max(done.end_ps) < 1.4 * least
    assert done.column("drops").sum() == done.column("retransmissions").sum() == 0


def _spread() -> Topology:
    """Two switches: senders 0 and 1 at the first, 2 and 3 at the second; one cable between."""
    ends = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)]
    return graph(4, [link for a, b in ends for link in ((a, b, 100.0, US), (b, a, 100.0, US))])


GREEDY = {"kind": "fixed", "bdp": 16}
GREEDIER = {"kind": "fixed", "bdp": 64}


def test_pfc_stops_link_after_link_to_the_senders_and_loses_nothing() -> None:
    flows = [(0, 2, 3_000_000), (1, 2, 3_000_000), (3, 2, 3_000_000), (0, 3, 500_000)]
    done = run(_spread(), flows, GREEDY, buffer="100 kB", mtu=1500)
    paused = done.column("pause_ps")
    assert done.column("drops").sum() == 0
    # The cable (8), whose switch is full, and the senders' own links (0, 2, 6); never the receiver's (5).
    assert min(paused[[8, 0, 2, 6]]) > 0
    assert paused[5] == 0
    # Who only shares those links suffers with them: alone it takes 50 us.
    assert done.end_ps[3] > 3 * alone_ps(500_000, 1500, 100, 3, US)


@pytest.mark.parametrize(("gbps", "latency_ps"), [(25.0, 10 * US), (100.0, 0), (100.0, US), (400.0, 5 * US)])
def test_headroom_is_what_links_need_and_less_loses(gbps: float, latency_ps: int) -> None:
    flows = [(k, 8, 1_000_000) for k in range(8)]
    topology = star(9, gbps, latency_ps)
    held = run(topology, flows, GREEDIER, pfc_threshold="20 kB", buffer="2 MB", mtu=4000)
    assert held.column("drops").sum() == 0
    assert held.column("pause_ps").sum() > 0
    few = "4.1 kB"  # one packet
    short = run(topology, flows, GREEDIER, pfc_threshold="20 kB", buffer="2 MB", mtu=4000, headroom=few)
    assert short.column("drops").sum() > 0
    assert min(short.end_ps) > 0


def test_without_pfc_a_queue_gets_alpha_times_what_is_free() -> None:
    """Choudhury and Hahne: one queue of a switch with room B holds alpha B / (1 + alpha) at most."""
    for alpha in (0.5, 1.0, 4.0):
        done = run(
            star(9),
            [(k, 8, 2_000_000) for k in range(8)],
            GREEDY,
            pfc=False,
            buffer="100 kB",
            alpha=alpha,
            mtu=1500,
        )
        most = 18 / 2 * 100_000 * alpha / (1 + alpha)
        assert done.column("queue_max_bytes")[DOWN] == pytest.approx(most, abs=2 * 1518)
        assert done.column("drops")[DOWN] == done.column("drops").sum() > 0


def test_ports_of_their_own_hold_what_they_are_given() -> None:
    flows = [(k, 8, 1_000_000) for k in range(8)]
    done = run(star(9), flows, GREEDY, pfc=False, shared_buffer=False, buffer="100 kB", mtu=1500)
    assert done.column("queue_max_bytes")[DOWN] == pytest.approx(100_000, abs=2 * 1518)


def test_pauses_that_are_taken_back_at_once_arrive_in_their_order() -> None:
    """Thresholds two packets from empty: stop and go wait behind one packet, and the last has to count."""
    flows = [(a, b, 300_000) for a in range(9) for b in range(9) if a != b]
    done = run(star(9), flows, GREEDIER, pfc_threshold="9 kB", buffer="400 kB", mtu=4000)
    assert done.column("pause_ps").sum() > 0
    assert done.column("drops").sum() == 0
    # A link that stays stopped never ends its messages.
    assert 0 < max(done.end_ps) < 2 * 8 * wire_bytes(300_000, 4000) * 80


@pytest.mark.parametrize("retransmission", ["go_back_n", "selective"])
def test_losses_are_repaired_and_selective_repeat_sends_less_again(retransmission: str) -> None:
    flows = [(k, 8, 1_000_000) for k in range(8)]
    done = run(star(9), flows, "dctcp", pfc=False, buffer="10 kB", mtu=1500, retransmission=retransmission)
    drops, again = done.column("drops").sum(), done.column("retransmissions").sum()
    assert min(done.end_ps) > 0
    assert drops > 0
    assert again >= drops if retransmission == "go_back_n" else drops <= again < 1.5 * drops


@pytest.mark.parametrize("control", ["nscc", GREEDY, {"kind": "dctcp", "threshold": 30_000}])
def test_what_is_trimmed_is_sent_again_at_once_and_once(control: Any) -> None:
    """Each byte comes over the last link once, and a header for each packet that was cut before it."""
    flows = [(k, 8, 1_000_000) for k in range(8)]
    wanted: dict[str, Any] = {
        "pfc": False,
        "trimming": True,
        "buffer": "60 kB",
        "shared_buffer": False,
        "mtu": 1500,
    }
    done = run(star(9), flows, control, **wanted)
    trims, again = done.column("trims").sum(), done.column("retransmissions").sum()
    assert trims == again > 0
    assert done.column("drops").sum() == 0
    assert done.column("queue_max_bytes")[DOWN] <= 60_000
    assert done.link_bytes[-1][DOWN] == 8 * wire_bytes(1_000_000, 1500) + 64 * trims
    # Nobody waited for a timeout.
    assert max(done.end_ps) < 1.1 * 8 * wire_bytes(1_000_000, 1500) * 80 + 500 * US


def test_priorities_go_first_and_weights_share() -> None:
    flows = [(0, 2, 2_000_000), (1, 2, 2_000_000)]
    first, second = run(star(3), flows, "dcqcn", priorities=[1, 0]).end_ps
    assert second < 1.1 * alone_ps(2_000_000, 9000, 100, 2, US)
    assert first > 1.9 * alone_ps(2_000_000, 9000, 100, 2, US)
    steps = (300 * US, 600 * US)
    both = [(0, 2, 10**8), (1, 2, 10**8)]
    heavy = run(star(3), both, weights=[3, 1], steps_ps=steps, mtu=1044, buffer="9 MB")
    sent = heavy.link_bytes[1] - heavy.link_bytes[0]
    assert sent[0] / sent[2] == pytest.approx(3, rel=0.02)


def _two_spines() -> Topology:
    cables = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)]
    return graph(4, [link for a, b in cables for link in ((a, b, 100.0, US), (b, a, 100.0, US))])


def test_spray_uses_every_way_and_others_one() -> None:
    up = [8, 10]  # links of node 4 to the spines
    sprayed = run(_two_spines(), [(0, 2, 2_000_000)], "dctcp", routing="spray")
    assert min(sprayed.link_bytes[-1][up]) > 0.4 * 2_000_000
    assert sprayed.column("retransmissions").sum() == 0
    for routing in ("ecmp", "given"):
        one = run(_two_spines(), [(0, 2, 2_000_000)], "dctcp", routing=routing)
        assert sorted(one.link_bytes[-1][up]) == [0, wire_bytes(2_000_000, 9000)]


def test_adaptive_packets_take_the_shorter_queue_and_flowlets_stay_on_their_way() -> None:
    up = [8, 10]
    pair = [(0, 2, 2_000_000), (1, 3, 2_000_000)]
    adaptive = run(_two_spines(), pair, "dctcp", routing="adaptive", mtu=1500)
    # Both uplinks alike, and hardly a queue: no two packets wait for one where the other is free.
    assert np.ptp(adaptive.link_bytes[-1][up]) < 0.05 * 2_000_000
    assert adaptive.column("queue_max_bytes")[up].max() <= 3 * 1518
    one_way = run(_two_spines(), [(0, 2, 2_000_000)], "dctcp", routing="flowlet")
    assert sorted(one_way.link_bytes[-1][up]) == [0, wire_bytes(2_000_000, 9000)]
    # After each pause a new way: of sixteen messages far apart some go either.
    far = [k * 1_000 * US for k in range(16)]
    many = run(_two_spines(), [(0, 2, 100_000)] * 16, "dctcp", routing="flowlet", start_ps=far, one_job=True)
    assert min(many.link_bytes[-1][up]) >= 2 * 100_000


def test_what_comes_out_of_order_is_sent_again_where_order_is_asked_for() -> None:
    pair = [(0, 2, 2_000_000), (1, 3, 2_000_000), (1, 2, 1_000_000)]
    free = run(_two_spines(), pair, "dctcp", routing="spray", mtu=1500)
    strict = run(_two_spines(), pair, "dctcp", routing="spray", mtu=1500, delivery="in_order")
    assert free.column("retransmissions").sum() == 0
    assert strict.column("retransmissions").sum() > 0
    assert strict.column("drops").sum() == 0
    assert max(strict.end_ps) > max(free.end_ps)


def test_ecmp_hashes_as_cosims_own_does() -> None:
    flows = [(a, b, 50_000) for a in range(4) for b in range(4) if a != b]
    own = run(_two_spines(), flows, routing="ecmp").link_bytes[-1]
    given = run(_two_spines(), flows, routing="given").link_bytes[-1]
    # Acknowledgements go other ways; of the data, each link has the same.
    assert (own // 50_000 == given // 50_000).all()


@pytest.mark.parametrize("pfc", [True, False])
def test_a_failed_link_holds_its_messages_until_it_is_back(pfc: bool) -> None:
    events = [{"link": 1, "down": "20us", "up": "3ms"}]
    done = run(star(2), [(0, 1, 1_000_000), (1, 0, 1_000_000)], "dcqcn", failures=events, pfc=pfc)
    timeout = 68_000 * US if pfc else 2000 * US
    assert 3000 * US < max(done.end_ps) < 3000 * US + 1.1 * timeout
    assert done.column("retransmissions")[2] > 0


@pytest.mark.parametrize("control", ["fixed", "dctcp", "swift"])
def test_a_link_at_a_rate_of_its_own_for_a_time_sends_so_much_less(control: str) -> None:
    """A quarter of it for 100 us are 75 us more, and a packet at the old rate: these keep it full."""
    topology, flows = star(2), [(0, 1, 12_500_000)]
    rates = LinkChanges([LinkChange(300 * US, 3, 25e9), LinkChange(400 * US, 3, 100e9)])
    whole = run(topology, flows, control).end_ps[0]
    slowed = run(replace(topology, changes=rates), flows, control)
    assert slowed.end_ps[0] - whole == pytest.approx(75 * US, abs=US)
    assert slowed.column("drops").sum() == 0


ROUTINGS = ("given", "ecmp", "spray", "adaptive", "flowlet")


@pytest.mark.parametrize("routing", ROUTINGS)
def test_after_detection_nothing_goes_by_a_dead_link_and_after_the_repair_all_is_as_before(
    routing: str,
) -> None:
    """Exactly: alone over four links; both ways of each cable of one spine are dead."""
    topology = _two_spines()
    size, alone = 1_000_000, alone_ps(1_000_000, 9000, 100, 4, US)
    own = run(topology, [(0, 2, size)], routing="ecmp").link_bytes[-1]
    spine = 6 if own[8] else 7
    dead = [k for k in range(topology.num_links) if spine in (topology.link_src[k], topology.link_dst[k])]
    rows = [(0, 0.0), (5000 * US, 100e9)]
    changes = [LinkChange(time, link, rate) for time, rate in rows for link in dead]
    failing = replace(topology, changes=LinkChanges(changes, detection_ps=100 * US))
    starts = [101 * US, 6000 * US]
    done = run(
        failing,
        [(0, 2, size), (0, 2, size)],
        routing=routing,
        start_ps=starts,
        steps_ps=[4000 * US, NEVER],
        one_job=True,
    )
    assert done.column("drops").sum() == done.column("retransmissions").sum() == 0
    assert done.link_bytes[0][dead].sum() == 0
    assert done.end_ps[0] == pytest.approx(starts[0] + alone, abs=1000)
    if routing in ("given", "ecmp"):
        assert done.end_ps[1] == pytest.approx(starts[1] + alone, abs=1000)
        assert (done.link_bytes[-1] - done.link_bytes[0])[dead].sum() > size
    elif routing != "flowlet":
        assert (done.link_bytes[-1] - done.link_bytes[0])[dead].sum() > 0.4 * size


def test_what_is_under_way_is_sent_again_round_a_link_that_died_or_waits_where_no_way_is_left() -> None:
    """Half has arrived, the rest goes after detection and a timeout; for an endpoint's own link it waits."""
    topology, rto = _two_spines(), 50 * US
    half, alone = 40 * US, alone_ps(1_000_000, 9000, 100, 4, US)
    own = run(topology, [(0, 2, 1_000_000)], routing="ecmp").link_bytes[-1]
    up = 8 if own[8] else 10

    def end(link: int, back_ps: int) -> int:
        changes = LinkChanges([LinkChange(half, link, 0.0), LinkChange(back_ps, link, 100e9)], 100 * US)
        failing = replace(topology, changes=changes)
        return run(failing, [(0, 2, 1_000_000)], rto="50us", pfc=False).end_ps[0]

    known = half + 100 * US
    assert known + alone - half < end(up, 10**12) < known + alone - half + 2 * rto + 10 * US
    assert end(0, 5000 * US) > 5000 * US + alone - half


@pytest.mark.parametrize("routing", ["given", "ecmp", "adaptive"])
def test_an_endpoint_sends_and_answers_by_its_other_port_when_its_own_is_dead(routing: str) -> None:
    """Two ports an endpoint: what waits in turn at one goes on at the other, and back after the repair."""
    topology = graph(
        2, [link for a in (0, 1) for b in (2, 3) for link in ((a, b, 100.0, US), (b, a, 100.0, US))]
    )
    flows = [(0, 1, 2_000_000), (0, 1, 2_000_000), (1, 0, 2_000_000)]
    own = run(topology, flows[:1], routing="ecmp").link_bytes[-1]
    dead = [0, 1] if own[0] else [2, 3]
    rows = [(40 * US, 0.0), (300 * US, 100e9)]
    changes = LinkChanges([LinkChange(at, link, rate) for at, rate in rows for link in dead], 10 * US)
    done = run(replace(topology, changes=changes), flows, routing=routing, rto="50us", pfc=False)
    # Two messages one after the other at line rate, and what was lost until the first timeout.
    assert max(done.end_ps) < alone_ps(4_000_000, 9000, 100, 2, US) + (10 + 2 * 50 + 50) * US
    assert done.link_bytes[-1][[2, 3] if own[0] else [0, 1]].min() > 1_000_000


def test_a_failed_node_takes_all_its_links_with_it() -> None:
    events = [{"node": "n2", "down": "20us", "up": "100us"}]
    done = run(star(2), [(0, 1, 1_000_000)], "dcqcn", failures=events, rto="50us")
    # What was on the switch's two links then is sent again: the links' length and more.
    assert done.end_ps[0] > 100 * US + alone_ps(1_000_000, 9000, 100, 2, US) - 20 * US
    assert done.column("drops")[0] > 0
    assert done.column("drops")[3] > 0


class Clockwise(Paths):
    """Around a ring of switches 4 to 7, from link k to link k + 1."""

    name = "clockwise"

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:  # noqa: ARG002
        links = [
            [8 + 2 * one, *((one + hop) % 4 for hop in range((other - one) % 4)), 9 + 2 * other]
            for one, other in zip(src.tolist(), dst.tolist(), strict=True)
        ]
        ptr = np.cumsum([0, *map(len, links)]).astype(np.int64)
        return ptr, np.array([one for path in links for one in path], np.int32)


def test_a_circle_of_pauses_is_named_and_ends_the_run() -> None:
    """Four switches in a ring, each flow two links of it: the textbook deadlock."""
    ring = [(4 + k, 4 + (k + 1) % 4, 100.0, US) for k in range(4)]
    ring += [(b, a, gbps, latency) for a, b, gbps, latency in ring]
    ends = [link for k in range(4) for link in ((k, 4 + k, 400.0, US), (4 + k, k, 400.0, US))]
    topology = replace(graph(4, ring + ends), routing=Clockwise())
    flows = [(k, (k + 2) % 4, 50_000_000) for k in range(4)]
    names = "n4 -> n5, n5 -> n6, n6 -> n7, n7 -> n4"
    with pytest.raises(CosimError, match=rf"PFC deadlock at \d+ ps: {names} pause each other in a circle"):
        run(topology, flows, GREEDIER, pfc_threshold="20 kB", buffer="1 MB", mtu=1500)
    # Half the way goes nowhere round.
    shorter = [(k, (k + 1) % 4, 5_000_000) for k in range(4)]
    done = run(topology, shorter, GREEDIER, pfc_threshold="20 kB", buffer="1 MB", mtu=1500)
    assert done.column("pause_ps").sum() > 0
