"""ns-3 does what a network does: rates, latencies, losses, marks, failures."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.protocol.settings import LinkEvent
from cosim.topology.graph import Topology
from tests.adapters.ns3_worlds import HEADERS, US, Sent, graph, send, star

MSS = 9000 - 40


def _wire_bytes(size: int) -> int:
    return size + math.ceil(size / MSS) * HEADERS


def _ideal_ps(size: int, gbps: float, hops: int, latency_ps: int) -> float:
    """All packets through the first link, the last one through the others."""
    last = size % MSS or MSS
    first = _wire_bytes(size) * 8000 / gbps
    return first + (hops - 1) * (last + HEADERS) * 8000 / gbps + hops * latency_ps


def test_a_lone_message_takes_its_bytes_over_the_line_rate() -> None:
    for size in (8 * MSS, 450 * MSS):
        [end] = send(star(2), [(0, 1, size)]).end_ps
        assert end == pytest.approx(_ideal_ps(size, 100, 2, US), rel=0.002)
        assert end >= _ideal_ps(size, 100, 2, US)


def test_each_direction_of_a_cable_has_its_own_rate_and_latency() -> None:
    there_and_back = [(0, 1, 100.0, 5 * US), (1, 0, 25.0, US)]
    no_slow_start = {"initial_window": "100"}
    flows = [(0, 1, 500_000), (1, 0, 500_000)]
    forth, back = send(graph(2, there_and_back), flows, options=no_slow_start).end_ps
    assert forth == pytest.approx(_ideal_ps(500_000, 100, 1, 5 * US), rel=0.02)
    assert back == pytest.approx(_ideal_ps(500_000, 25, 1, US), rel=0.02)


def test_a_link_one_way_is_a_link_too() -> None:
    one_way = graph(2, [(0, 2, 100.0, US), (2, 1, 100.0, US), (1, 3, 100.0, US), (3, 0, 100.0, US)])
    [end] = send(one_way, [(0, 1, 1_000_000)]).end_ps
    assert end == pytest.approx(_ideal_ps(1_000_000, 100, 2, US), rel=0.02)


@pytest.mark.parametrize("transport", ["cubic", "newreno", "dctcp"])
def test_incast_fills_the_last_link(transport: str) -> None:
    done = send(star(9), [(k, 8, 4_000_000) for k in range(8)], transport=transport)
    assert max(done.end_ps) == pytest.approx(8 * _wire_bytes(4_000_000) * 80, rel=0.03)


def test_dctcp_keeps_the_queue_at_its_mark_and_drops_nothing() -> None:
    flows = [(k, 8, 4_000_000) for k in range(8)]
    dctcp = send(star(9), flows, transport="dctcp", queue_bytes=4_000_000).statistics.extra
    assert dctcp["drops"].sum() == 0
    assert dctcp["marks"][17] > 0
    assert dctcp["queue_p50_bytes"][17] < 2 * 65 * 9000
    reno = send(star(9), flows, transport="newreno", queue_bytes=4_000_000).statistics.extra
    assert reno["marks"].sum() == 0
    assert reno["queue_max_bytes"][17] > dctcp["queue_max_bytes"][17]


def test_a_short_queue_drops_and_tcp_repairs_it() -> None:
    done = send(star(9), [(k, 8, 1_000_000) for k in range(8)], transport="newreno", queue_bytes=100_000)
    assert done.statistics.extra["drops"][17] > 0
    assert done.statistics.extra["drops"].sum() == done.statistics.extra["drops"][17]
    assert done.statistics.flows_completed == 8


def test_an_endpoints_own_port_keeps_a_short_queue() -> None:
    done = send(star(2), [(0, 1, 4_000_000), (1, 0, 4_000_000)], transport="cubic")
    assert done.statistics.extra["queue_max_bytes"][0] <= 4 * 9042
    # Both ways at once: acknowledgements do not wait behind the data.
    assert max(done.end_ps) == pytest.approx(_ideal_ps(4_000_000, 100, 2, US), rel=0.02)


def test_links_count_their_bytes_with_headers() -> None:
    done = send(star(2), [(0, 1, 900_000)])
    assert done.statistics.link_bytes[0] == done.statistics.link_bytes[3] == _wire_bytes(900_000)
    busy = done.statistics.link_busy_ps[0]
    assert busy == pytest.approx(_wire_bytes(900_000) * 80, rel=1e-3)


def _two_spines() -> list[tuple[int, int, float, int]]:
    cables = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)]
    return [link for a, b in cables for link in ((a, b, 100.0, US), (b, a, 100.0, US))]


def test_spray_uses_every_way_and_ecmp_one() -> None:
    topology = graph(4, _two_spines())
    up = [8, 10]  # links of node 4 to the spines
    sprayed = send(topology, [(0, 2, 2_000_000)], routing="spray").statistics.link_bytes[up]
    assert min(sprayed) > 0.4 * 2_000_000
    for routing in ("ecmp", "given"):
        assert sorted(send(topology, [(0, 2, 2_000_000)], routing=routing).statistics.link_bytes[up]) == [
            0,
            _wire_bytes(2_000_000),
        ]


def test_ecmp_hashes_as_cosims_own_does() -> None:
    topology = graph(4, _two_spines())
    flows = [(a, b, 50_000) for a in range(4) for b in range(4) if a != b]
    own = send(topology, flows, routing="ecmp").statistics.link_bytes
    given = send(topology, flows, routing="given").statistics.link_bytes
    # Acknowledgements go other ways; of the data, each link has the same.
    assert (own // 50_000 == given // 50_000).all()


def test_a_failed_link_holds_its_messages_until_it_is_back() -> None:
    events = [LinkEvent(20 * US, 0, False), LinkEvent(3000 * US, 0, True)]
    [end] = send(star(2), [(0, 1, 1_000_000)], link_events=events).end_ps
    assert 3000 * US < end < 10_000 * US
    [whole] = send(star(2), [(0, 1, 1_000_000)]).end_ps
    assert whole < 100 * US


def test_a_link_that_gets_another_rate_is_one_that_was_built_with_it() -> None:
    """From the start, to the picosecond, also where it failed before; half of its rate for 50 us costs 25."""
    fast, flows, slow = star(2), [(0, 1, 1_000_000)], star(2).link_rate_bps.copy()
    slow[3] = 25e9

    def end(*rows: tuple[int, float], topology: Topology = fast) -> int:
        changes = LinkChanges([LinkChange(at * US, 3, rate) for at, rate in rows])
        [found] = send(replace(topology, changes=changes), flows, options={"initial_window": "100"}).end_ps
        return found

    built = end(topology=replace(fast, link_rate_bps=slow))
    assert end((0, 25e9)) == built
    assert end((0, 0.0), (1, 25e9)) == built
    assert end((20, 50e9), (70, 100e9)) == pytest.approx(end() + 25 * US, abs=2 * US)


@pytest.mark.parametrize("queue", [{"queue_discipline": "drop_tail"}, {"transport": "dctcp"}])
def test_what_is_sent_on_a_failed_link_counts_as_dropped_there_under_every_queue(
    queue: dict[str, Any],
) -> None:
    """Marks and drops of a queue discipline are read from ns-3, which knows nothing of the link."""
    events = [LinkEvent(20 * US, 0, False), LinkEvent(3000 * US, 0, True)]
    extra = send(star(2), [(0, 1, 1_000_000)], link_events=events, **queue).statistics.extra
    assert extra["drops"][0] > 0
    assert extra["drops"][1:].sum() == 0


@pytest.mark.parametrize("routing", ["given", "ecmp", "spray"])
def test_after_detection_tcp_goes_round_dead_links_and_back_after_the_repair(routing: str) -> None:
    """A message that starts then takes as long as where none failed, by the spine that is alive."""
    topology, size = graph(4, _two_spines()), 1_000_000
    whole = send(topology, [(0, 2, size)], routing="ecmp")
    spine = 6 if whole.statistics.link_bytes[8] > size else 7
    dead = [k for k in range(topology.num_links) if spine in (topology.link_src[k], topology.link_dst[k])]
    changes = [LinkChange(at * US, link, rate) for at, rate in ((0, 0.0), (5000, 100e9)) for link in dead]
    failing = replace(topology, changes=LinkChanges(changes, 100 * US))

    def sent(start_ps: int) -> Sent:
        return send(failing, [(0, 2, size)], start_ps=[start_ps], routing=routing)

    during, after = sent(101 * US), sent(6000 * US)
    assert during.statistics.link_bytes[dead].sum() == during.statistics.extra["drops"].sum() == 0
    assert after.statistics.link_bytes[dead].sum() > (0.3 if routing == "spray" else 1) * size
    if routing != "spray":
        assert during.end_ps[0] - 101 * US == after.end_ps[0] - 6000 * US == whole.end_ps[0]
    [late] = send(failing, [(0, 2, 20 * size)], routing=routing).end_ps
    assert late < 4000 * US  # what was lost until routing heard is sent again, round what is dead


def test_tcp_sends_by_an_endpoints_other_port_when_its_own_is_dead() -> None:
    """Its sockets wait in turn at one port, and go on at the other."""
    cables = [(a, b) for a in (0, 1) for b in (2, 3)]
    topology = graph(2, [link for a, b in cables for link in ((a, b, 100.0, US), (b, a, 100.0, US))])
    flows = [(0, 1, 4_000_000)] * 3
    own = send(topology, flows[:1], routing="ecmp").statistics.link_bytes
    dead, other = ([0, 1], 2) if own[0] > own[2] else ([2, 3], 0)
    rows = [(40 * US, 0.0), (20_000 * US, 100e9)]
    changes = LinkChanges([LinkChange(at, link, rate) for at, rate in rows for link in dead], 10 * US)
    done = send(replace(topology, changes=changes), flows, jobs=[(k, 0) for k in range(3)])
    assert max(done.end_ps) < 20_000 * US
    assert done.statistics.link_bytes[other] > 10_000_000


def test_mltcp_favours_the_job_that_has_sent_more_of_its_iteration() -> None:
    topology = star(4, gbps=10.0)
    flows = [(0, 2, 6_000_000), (1, 2, 6_000_000)]
    # The first job's iteration is this message alone, the second's ten times as much.
    jobs = [(0, 6_000_000), (1, 60_000_000)]
    plain = send(topology, flows, jobs=jobs, transport="newreno", queue_bytes=300_000).end_ps
    aware = send(topology, flows, jobs=jobs, transport="newreno", queue_bytes=300_000, mltcp=True).end_ps
    assert aware[1] - aware[0] > plain[1] - plain[0]
    assert aware[0] < plain[0]
