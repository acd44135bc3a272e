"""Links with room that ``fair_share`` leaves alone: random worlds beside looking at all, and plain filling.

``python -m tests.network.test_slack 3000`` goes through that many worlds, and says how much was looked at.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from cosim.context import HERE
from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.balancing.balancers.spray import Spray
from cosim.network.fair_share import FairShareNetwork
from cosim.network.simulator import NetworkStatistics
from cosim.topology.graph import I64, Topology
from cosim.topology.leaf_spine import LeafSpine
from cosim.units import NEVER
from tests.network.test_fair_share import Message, groups_of
from tests.network.worlds import batch, graph

F64 = NDArray[np.float64]
RATES = np.array([8e9, 16e9, 32e9])
TIMES = np.array([0, 1_000, 131_000, 10**7])


class LooksAtAll(FairShareNetwork):
    """No link is ever taken to have room."""

    def _open_model(self, topology: Topology, seed: int) -> None:
        super()._open_model(topology, seed)
        self._fluid.links["rechecks"] = np.iinfo(np.int16).max


@dataclass(frozen=True)
class World:
    """Messages on a topology, whose paths a balancer may split."""

    topology: Topology
    messages: list[Message]
    splits: bool = False


@dataclass(frozen=True)
class Outcome:
    """When each message arrives, in ps, what links did, and flows looked at in all fillings."""

    ends: I64
    links: NetworkStatistics
    looked: int


def run(network: FairShareNetwork, world: World) -> Outcome:
    """Put a world through a network."""
    network.open(world.topology)
    starts = [(k, 0, one.start, one.start) for k, one in enumerate(world.messages)]
    flows, ends = batch(groups_of(world.messages), starts), np.full(len(starts), -1)
    while (ends < 0).any():
        done = network.advance(flows, NEVER).completions
        ends[done.handle], flows = done.time_ps, batch()
    return Outcome(ends, network.statistics(), int(network.columns.counts["num_looked"][0]))


def oversubscribed(rng: np.random.Generator) -> Topology:
    """A fabric with ECMP."""
    return LeafSpine(
        leaves=int(rng.integers(2, 6)),
        spines=int(rng.integers(1, 4)),
        endpoints_per_leaf=int(rng.integers(2, 7)),
        rate=f"{rng.choice([40, 100, 400])}Gbps",
        latency="100ns",
        oversubscription=float(rng.choice([1, 2, 3])),
        routing={"kind": "ecmp", "seed": 1},
    ).build(HERE)


def chain(rng: np.random.Generator) -> Topology:
    """Switches in a row, hosts below them, links of unequal rates."""
    hosts = int(rng.choice([3, 4, 12]))
    switches = int(rng.integers(1, hosts // 2 + 1))
    pairs = [(k, hosts + k % switches) for k in range(hosts)]
    pairs += [(hosts + k, hosts + k + 1) for k in range(switches - 1)]
    links = [(a, b, float(rng.choice(RATES)), 1_000) for one in pairs for a, b in (one, one[::-1])]
    return graph(hosts, hosts + switches, links)


def with_events(topology: Topology, rng: np.random.Generator, *, dying: bool) -> Topology:
    """Some links slow down, or die, and are as before later. Routes follow where there is more than one."""
    changes = []
    for link in rng.choice(topology.num_links, min(4, topology.num_links), replace=False).tolist():
        rate, first = float(topology.link_rate_bps[link]), int(rng.integers(1, 2 * 10**8))
        slow = 0.0 if dying else rate * float(rng.choice([0.1, 0.5]))
        changes += [LinkChange(first, link, slow), LinkChange(first + 3 * 10**8, link, rate)]
    return replace(topology, changes=LinkChanges(sorted(changes), 10**6 if dying else None))


def random_world(seed: int, most: int = 250) -> World:
    """Up to so many messages, many of which start together; weights, classes, events and parts in some."""
    rng = np.random.default_rng(seed)
    fabric = bool(rng.integers(2))
    topology = oversubscribed(rng) if fabric else chain(rng)
    if seed % 4 == 1:
        topology = with_events(topology, rng, dying=fabric)
    hosts, messages = topology.num_endpoints, list[Message]()
    # Few at a time: many a link has a single flow, and two links of a path are full at the same level.
    most = int(rng.choice([6, 12, 40, most]))
    alike, classes = bool(rng.integers(2)), int(rng.choice([1, 1, 3]))
    for _ in range(int(rng.integers(2, most))):
        src = int(rng.integers(hosts))
        messages.append(
            Message(
                size=int(rng.choice([1_000, 65_536, 999_983, 10**7])),
                start=int(rng.integers(20)) * int(rng.choice(TIMES)),
                weight=1.0 if alike else float(rng.choice([1.0, 1.0, 2.0, 0.1, 3.7])),
                priority=int(rng.integers(classes)),
                src=src,
                dst=int((src + rng.integers(1, hosts)) % hosts),
            )
        )
    return World(topology, messages, splits=fabric and seed % 4 == 2)


def looked(seed: int) -> tuple[int, int]:
    """Flows looked at in a world and, looking at all, in the same one: nothing else differs."""
    world = random_world(seed)
    balancers = [Spray() if world.splits else None for _ in range(2)]
    some, everything = run(FairShareNetwork(balancers[0]), world), run(LooksAtAll(balancers[1]), world)
    assert_array_equal(some.ends, everything.ends)
    assert_array_equal(some.links.link_bytes, everything.links.link_bytes)
    assert some.links.events == everything.links.events
    # A link's use is rounded otherwise: by 2^-43 for each flow, and half a picosecond for each change.
    dust = 1e-9 * some.ends.max() + some.links.events
    apart = np.abs(some.links.link_busy_ps - everything.links.link_busy_ps)
    assert apart.max(initial=0) <= dust
    if world.topology.changes is None and not world.splits:  # parts of bytes are rounded
        busy = some.links.link_bytes * 8e12 / world.topology.link_rate_bps
        assert np.abs(some.links.link_busy_ps - busy).max(initial=0) <= 2 * dust
    return some.looked, everything.looked


def worlds_alike(seeds: range) -> float:
    """Goes through worlds; what part of the flows was looked at."""
    some, everything = np.sum([looked(seed) for seed in seeds], axis=0)
    return float(some / everything)


def test_what_has_room_has_no_part_in_any_rate() -> None:
    assert worlds_alike(range(50)) < 1.0


@pytest.mark.slow
def test_what_has_room_has_no_part_in_any_rate_of_many_worlds() -> None:
    assert worlds_alike(range(50, 600)) < 1.0


def levels(crosses: F64, capacity: F64, weights: F64, classes: I64) -> F64:
    """Rates by filling from zero, with all flows and links at each step: ``crosses`` is [links, flows]."""
    rates, left = np.zeros(len(weights)), capacity.copy()
    for one in np.unique(classes):
        rising = classes == one
        while rising.any():
            weight = crosses @ (weights * rising)
            with np.errstate(divide="ignore", invalid="ignore"):
                full = np.where(weight > 1e-12, left / weight, np.inf)
            level = full.min()
            stops = rising & (crosses[full <= level * (1 + 1e-12)].sum(axis=0) > 0)
            rates[stops] = level * weights[stops]
            left = np.maximum(left - crosses @ (rates * stops), 0.0)
            left[left < 1e-9 * capacity] = 0.0
            rising &= ~stops
    return rates


def plain(world: World) -> tuple[F64, F64]:
    """When each message arrives, and how long each link is busy, in ps; links may slow down, not die."""
    topology, messages = world.topology, world.messages
    crosses = np.zeros((topology.num_links, len(messages)))
    for k, one in enumerate(messages):
        ends = np.array([one.src], np.int32), np.array([one.dst], np.int32)
        crosses[topology.paths(*ends, np.array([100 + k], np.int32))[1], k] = 1.0
    weights, classes = np.array([m.weight for m in messages]), np.array([m.priority for m in messages])
    start = np.array([m.start for m in messages], np.float64)
    left, done = np.array([m.size for m in messages], np.float64), np.full(len(messages), np.inf)
    capacity, now, busy = topology.link_rate_bps / 8e12, 0.0, np.zeros(topology.num_links)
    changes = [c for c in (topology.changes or ()) if isinstance(c, LinkChange)]
    while np.isinf(done).any():
        for change in [c for c in changes if c.time_ps <= now]:
            capacity[change.link] = change.rate_bps / 8e12
        changes = [c for c in changes if c.time_ps > now]
        active = np.isinf(done) & (start <= now)
        rates = np.zeros(len(messages))
        rates[active] = levels(crosses[:, active], capacity, weights[active], classes[active])
        drains = now + left[rates > 0] / rates[rates > 0]
        coming = [*drains, *start[start > now], *(c.time_ps for c in changes)]
        step = min(coming) - now
        busy += crosses @ rates / capacity * step
        left = np.where(active, left - rates * step, left)
        now += step
        ended = active & (left <= 1e-9 * rates * now + 1e-9)
        done[ended], left[ended] = now, 0.0
    return done + topology.link_latency_ps @ crosses, busy


def test_ends_and_use_are_those_of_filling_all_from_zero() -> None:
    for world in (random_world(seed, 60) for seed in range(40)):
        changes = world.topology.changes
        if world.splits or (changes is not None and changes.detection_ps is not None):
            continue
        found = run(FairShareNetwork(), world)
        ends, busy = plain(world)
        # Each drain is rounded up to a picosecond, and moves those after it, times a ratio of rates.
        dust = 1e-7 * ends.max() + 40 * len(ends)
        assert np.abs(found.ends - ends).max() <= dust
        assert np.abs(found.links.link_busy_ps - busy).max() <= dust


if __name__ == "__main__":
    count = int(sys.argv[1])
    print(f"{count} worlds alike; looked at {worlds_alike(range(count)):.2f} of the flows")
