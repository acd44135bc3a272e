"""Events: what they are of, when they happen, and what becomes of links and ranks."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from cosim.context import HERE
from cosim.errors import TopologyError
from cosim.fabric.changes import LinkChange
from cosim.faults.event import Event
from cosim.faults.links import EventsOfLinks, parts_of
from cosim.faults.occasions import occasions
from cosim.faults.ranks import EventsOfRanks
from cosim.topology.graph import Topology
from cosim.topology.leaf_spine import LeafSpine
from cosim.units import NEVER, PS_PER_MS, PS_PER_S


def fabric() -> Topology:
    """Two leaves, two spines, two endpoints a leaf."""
    spec = LeafSpine.model_validate(
        {"leaves": 2, "spines": 2, "endpoints_per_leaf": 2, "rate": "100Gbps", "latency": "1us"}
    )
    return spec.build(HERE)


def event(**fields: Any) -> Event:
    return Event.model_validate(fields)


def names(topology: Topology, one: Event) -> list[list[str]]:
    return [[topology.link_name(link) for link in part] for part in parts_of(one, topology)]


def changes(*events: Event, topology: Topology | None = None, seed: int = 0) -> list[tuple[int, str, float]]:
    """(ms, link, Gbit/s)."""
    fabric_ = topology or fabric()
    found = EventsOfLinks(fabric_, [(n, one, parts_of(one, fabric_)) for n, one in enumerate(events)], seed)
    return [
        (one.time_ps // PS_PER_MS, fabric_.link_name(one.link), one.rate_bps / 1e9)
        for one in islice(found, 12)
    ]


def test_a_name_is_of_links_one_way_or_both() -> None:
    topology = fabric()
    assert names(topology, event(link="leaf0 -> spine1", down=True)) == [["leaf0 -> spine1"]]
    both = names(topology, event(link="spine1<->leaf0", down=True))
    assert [sorted(part) for part in both] == [["leaf0 -> spine1", "spine1 -> leaf0"]]
    assert names(topology, event(link="leaf* -> spine1", down=True)) == [
        ["leaf0 -> spine1"],
        ["leaf1 -> spine1"],
    ]
    assert names(topology, event(link=3, down=True)) == [[topology.link_name(3)]]


def test_a_node_takes_all_of_its_links_with_it() -> None:
    [part] = names(fabric(), event(node="spine1", down=True))
    assert sorted(part) == ["leaf0 -> spine1", "leaf1 -> spine1", "spine1 -> leaf0", "spine1 -> leaf1"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"link": "leaf0 -> spin1", "down": True}, "no node 'spin1'; did you mean 'spine1'?"),
        ({"link": "leaf0 -> leaf1", "down": True}, "no link 'leaf0 -> leaf1'; did you mean 'spine"),
        ({"link": "leaf0", "down": True}, "'leaf0' is not a link; write it as in 'gpu0 -> leaf0'"),
        ({"link": 99, "down": True}, "no link 99; there are 0 to 15"),
        ({"node": "spine9", "down": True}, "no node 'spine9'; did you mean 'spine"),
        (
            {"link": 0, "rate": "101Gbps"},
            "link gpu0 -> leaf0 would have 101 Gbps, more than its own 100 Gbps",
        ),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        parts_of(event(**fields), fabric())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"down": True}, "one of them; this has none"),
        ({"link": 0, "rank": 1, "down": True}, "one of them; this has link and rank"),
        ({"link": 0}, "say what happens: down: true or rate: 50Gbps; this has neither"),
        ({"link": 0, "down": True, "rate": "1Gbps"}, "this has down and rate"),
        ({"link": 0, "slow": 2}, "this has slow"),
        ({"rank": 0, "down": True}, "say what happens: slow: 1.3 or fails: true; this has down"),
        ({"rank": 0, "fails": True, "until": "1s"}, "has a repair, no until"),
        ({"rank": 0, "fails": True, "mtbf": "1h", "every": "1h"}, "or is drawn .mtbf., not both"),
        ({"rank": 0, "fails": True, "times": 2}, "times is for events that happen again"),
        ({"rank": 0, "slow": 2, "cause": "heat"}, "cause is for ranks that fail"),
        ({"rank": 0, "slow": 1}, "slow: 1 changes nothing"),
        ({"link": 0, "down": True, "job": "a"}, "job is for events of a rank"),
        ({"link": 0, "down": True, "at": "-1ms"}, "greater than or equal to 0"),
        ({"link": 0, "down": True, "at": "2ms", "until": "1ms"}, "it ends after it began"),
        ({"link": 0, "down": True, "mtbf": "1h"}, "needs a repair"),
        ({"link": 0, "down": True, "mtbf": "1h", "repair": "1s", "every": "2h"}, "neither until nor every"),
        ({"link": 0, "down": True, "repair": "1s"}, "repair is for events that are drawn"),
        ({"link": 0, "down": True, "every": "1s"}, "has an until, less than that after at"),
        ({"link": 0, "down": True, "every": "1s", "until": "2s"}, "has an until, less than that after at"),
        ({"link": 0, "down": True, "times": 2}, "times is for events that happen again"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        event(**fields)


def test_once_periodic_and_so_many_times() -> None:
    assert list(occasions(event(link=0, down=True, at="3ms", until="8ms"), 0, 0, 0)) == [
        (3 * PS_PER_MS, 8 * PS_PER_MS)
    ]
    assert list(occasions(event(link=0, down=True, at="3ms"), 0, 0, 0)) == [(3 * PS_PER_MS, NEVER)]
    again = {"link": 0, "down": True, "at": "1ms", "until": "2ms", "every": "10ms"}
    assert list(occasions(event(**again, times=3), 0, 0, 0)) == [
        (k * 10 * PS_PER_MS + PS_PER_MS, k * 10 * PS_PER_MS + 2 * PS_PER_MS) for k in range(3)
    ]
    assert len(list(islice(occasions(event(**again), 0, 0, 0), 1000))) == 1000


def test_drawn_ones_have_their_mean_and_depend_on_seed_and_part_alone() -> None:
    one = event(link="leaf* -> spine*", down=True, mtbf="10s", repair="1s", times=4000)
    found = list(occasions(one, 1, 0, 0))
    begin, end = np.array(found).T
    assert ((end - begin) == PS_PER_S).all()
    gaps = np.diff(np.concatenate([[0], begin])) - np.where(np.arange(len(begin)) > 0, PS_PER_S, 0)
    assert abs(gaps.mean() / (10 * PS_PER_S) - 1) < 4 / 4000**0.5
    assert abs((gaps > 20 * PS_PER_S).mean() - np.exp(-2)) < 0.02
    assert list(occasions(one, 1, 0, 0)) == found
    assert list(occasions(one, 1, 0, 1)) != found
    assert list(occasions(one, 2, 0, 0)) != found


def test_of_several_at_once_a_link_has_the_lowest_rate() -> None:
    assert changes(
        event(link="leaf0 -> spine1", rate="50Gbps", at="1ms", until="5ms"),
        event(link="leaf0 -> spine1", rate="80Gbps", at="2ms", until="6ms"),
        event(node="spine1", down=True, at="3ms", until="4ms"),
        event(link="leaf0 -> spine1", rate="50Gbps", at="4ms", until="5ms"),
        topology=LeafSpine.model_validate(
            {"leaves": 1, "spines": 2, "endpoints_per_leaf": 2, "rate": "100Gbps", "latency": "1us"}
        ).build(HERE),
    ) == [
        (1, "leaf0 -> spine1", 50),
        (3, "leaf0 -> spine1", 0),
        (3, "spine1 -> leaf0", 0),
        (4, "leaf0 -> spine1", 50),
        (4, "spine1 -> leaf0", 100),
        (5, "leaf0 -> spine1", 80),
        (6, "leaf0 -> spine1", 100),
    ]


def test_both_directions_of_a_cable_are_drawn_as_one() -> None:
    found = changes(event(link="leaf* <-> spine*", down=True, mtbf="1s", repair="1ms"))
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert one[::2] == other[::2]
        assert one[1].split(" -> ") == other[1].split(" -> ")[::-1]


def test_several_slowdowns_of_a_rank_multiply() -> None:
    slow = [event(rank=0, slow=1.5, at="1ms", until="4ms"), event(rank=0, slow=2, at="2ms", until="3ms")]
    found = EventsOfRanks([(0, slow[0], [0]), (1, slow[1], [0])], 0)
    assert [(one.time_ps // PS_PER_MS, one.millionths) for one in found] == [
        (1, 1_500_000),
        (2, 3_000_000),
        (3, 1_500_000),
        (4, 1_000_000),
    ]


def test_changes_of_links_are_in_order_and_differ_from_what_was() -> None:
    topology = fabric()
    events = [
        event(link="leaf* <-> spine*", down=True, mtbf="20ms", repair="3ms", times=50),
        event(node="spine0", rate="10Gbps", at="1ms", until="2ms", every="5ms", times=50),
    ]
    found = list(EventsOfLinks(topology, [(n, e, parts_of(e, topology)) for n, e in enumerate(events)], 3))
    assert [(one.time_ps, one.link) for one in found] == sorted({(one.time_ps, one.link) for one in found})
    rates = dict(enumerate(topology.link_rate_bps.tolist()))
    for one in found:
        assert isinstance(one, LinkChange)
        assert one.rate_bps != rates[one.link]
        rates[one.link] = one.rate_bps
    assert [*rates.values()] == topology.link_rate_bps.tolist()  # all comes back
