"""``fair_share`` that fills all links from zero each time: random worlds beside what only looks at changes.

``python -m tests.network.test_dense 3000`` goes through that many worlds.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cosim.context import HERE
from cosim.network.balancing.balancers.spray import Spray
from cosim.network.dense_turns import ALWAYS
from cosim.network.fair_share import FairShareNetwork
from cosim.topology.graph import Topology
from cosim.topology.regular import Switch
from tests.network.test_fair_share import Message
from tests.network.test_slack import World, plain, random_world, run


class FillsAll(FairShareNetwork):
    """It fills all links from zero wherever it may, if it is worth it or not."""

    def _open_model(self, topology: Topology, seed: int) -> None:
        super()._open_model(topology, seed)
        self._fluid["counts"]["in_a_row"] = ALWAYS


def is_dense(network: FairShareNetwork) -> bool:
    """Whether its last filling was of all links."""
    return bool(network.columns().counts["dense"][0])


def alike(world: World) -> bool:
    """Holds that a world ends the same, bit by bit; whether it was filled from zero at its end."""
    balancers = [Spray() if world.splits else None for _ in range(2)]
    network = FillsAll(balancers[1])
    some, everything = run(FairShareNetwork(balancers[0]), world), run(network, world)
    assert_array_equal(some.ends, everything.ends)
    assert_array_equal(some.links.link_bytes, everything.links.link_bytes)
    assert some.links.events == everything.links.events
    # A link's use is rounded otherwise: by 2^-43 for each flow, and half a picosecond for each change.
    dust = 1e-9 * some.ends.max() + some.links.events
    assert np.abs(some.links.link_busy_ps - everything.links.link_busy_ps).max(initial=0) <= dust
    return is_dense(network)


def star(hosts: int, seed: int) -> World:
    """An all-to-all of random sizes, which begins at once."""
    rng = np.random.default_rng(seed)
    pairs = [(src, dst) for src in range(hosts) for dst in range(hosts) if src != dst]
    sizes = rng.integers(1_000, 1_000_000, len(pairs)).tolist()
    weights = rng.choice([1.0, 1.0, 2.5], len(pairs)).tolist()
    topology = Switch.model_validate({"endpoints": hosts, "rate": "100Gbps", "latency": "100ns"}).build(HERE)
    messages = [
        Message(size=size, start=0, weight=weight, priority=0, src=src, dst=dst)
        for (src, dst), size, weight in zip(pairs, sizes, weights, strict=True)
    ]
    return World(topology, messages)


def test_all_links_from_zero_are_what_differs_from_before() -> None:
    assert sum(alike(random_world(seed)) for seed in range(60)) > 20


@pytest.mark.slow
def test_all_links_from_zero_are_what_differs_from_before_in_many_worlds() -> None:
    assert sum(alike(random_world(seed)) for seed in range(60, 600)) > 200


@pytest.mark.parametrize("hosts", [3, 8, 20])
def test_an_all_to_all_fills_all_by_itself_and_ends_as_by_plain_filling(hosts: int) -> None:
    world = star(hosts, hosts)
    network = FairShareNetwork()
    outcome = run(network, world)
    assert (network.columns().counts["lasted"][0] > hosts) == (hosts > 8)  # of 56 flows too few are looked at
    assert_array_equal(outcome.ends, run(FillsAll(), world).ends)
    ends, _ = plain(world)
    assert np.abs(outcome.ends - ends).max() <= 2 + 1e-9 * ends.max()


if __name__ == "__main__":
    count = int(sys.argv[1])
    dense = sum(alike(random_world(seed)) for seed in range(count))
    print(f"{count} worlds alike, {dense} of them filled from zero at their end")
