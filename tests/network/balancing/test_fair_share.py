"""Balancers on ``fair_share``: closed forms, conservation, and that nothing depends on how it is asked."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import NetworkError
from cosim.kernel import plugin
from cosim.network.balancing.balancers.adaptive import Adaptive
from cosim.network.balancing.balancers.flowlet import Flowlet
from cosim.network.balancing.balancers.least_loaded import LeastLoaded
from cosim.network.balancing.balancers.spray import Spray
from cosim.network.balancing.balancers.ugal import Ugal
from cosim.network.balancing.balancers.valiant import Valiant
from cosim.network.balancing.balancers.weighted import Weighted
from cosim.network.balancing.contract import Balancer
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowGroup, flat_table, pack_key
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.routing import EcmpPaths
from cosim.units import NEVER
from tests.network.balancing.in_numpy import NumpyAdaptive, NumpyValiant, NumpyWeighted
from tests.network.balancing.worlds import leaf_spine, send, up_links
from tests.network.worlds import batch, drive, graph

many = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
EVERY: list[Callable[[], Balancer]] = [Adaptive, Flowlet, LeastLoaded, Spray, Ugal, Valiant, Weighted]
every_balancer = pytest.mark.parametrize("balancer", EVERY)

SIZE = 8_000_000
"""Bytes that take 800 us at 80 Gbps."""
PERMUTATION = [(k, (k + 4) % 16, SIZE) for k in range(16)]
"""Each endpoint of a leaf sends to one of the next leaf."""


def test_spray_on_a_permutation_takes_the_time_of_the_hosts_own_links_and_uses_every_link_alike() -> None:
    topology = leaf_spine()
    times, counted = send(FairShareNetwork(Spray()), topology, PERMUTATION)
    assert (times == 800_000_000 + 4 * 1_000_000).all()
    assert set(counted.link_bytes[up_links(topology)].tolist()) == {SIZE}
    ecmp, _ = send(FairShareNetwork(), topology, PERMUTATION)
    assert ecmp.max() >= 1_600_000_000  # two on one link somewhere


def test_three_parts_are_thirds_and_no_link_gets_more_than_it_has() -> None:
    topology = leaf_spine(below=3, spines=3, leaves=2)
    times, counted = send(FairShareNetwork(Spray()), topology, [(k, 3 + k, 9_000_000) for k in range(3)])
    assert np.abs(times - 904_000_000).max() <= 2  # thirds are rounded up to a billionth
    assert np.abs(counted.link_bytes[up_links(topology)][:3] - 9_000_000).max() <= 3


def test_a_sprayed_message_is_held_back_by_its_slowest_part() -> None:
    """0 to 2 over two ways, one of which has a quarter of the rate."""
    links = [(0, 4, 80e9, 0), (1, 4, 80e9, 0), (4, 5, 80e9, 0), (4, 6, 20e9, 0)]
    links += [(5, 7, 80e9, 0), (6, 7, 80e9, 0), (7, 2, 80e9, 0), (7, 3, 80e9, 0)]
    topology = graph(4, 8, links)
    object.__setattr__(topology, "routing", EcmpPaths())
    times, counted = send(FairShareNetwork(Spray()), topology, [(0, 2, SIZE)])
    assert times[0] == 1_600_000_000  # half of it over 20 Gbps
    assert counted.link_bytes[2] == counted.link_bytes[3] == SIZE // 2
    adapted, _ = send(FairShareNetwork(Adaptive()), topology, [(0, 2, SIZE)])
    assert adapted[0] < times[0]


def test_weighted_draws_in_proportion_to_rates() -> None:
    links = [
        (0, 2, 80e9, 0),
        (2, 3, 60e9, 0),
        (2, 4, 20e9, 0),
        (3, 5, 80e9, 0),
        (4, 5, 80e9, 0),
        (5, 1, 80e9, 0),
    ]
    topology = graph(2, 6, links)
    object.__setattr__(topology, "routing", EcmpPaths())
    _, counted = send(FairShareNetwork(Weighted()), topology, [(0, 1, 1000)] * 4000)
    share = counted.link_bytes[1] / counted.link_bytes[0]
    assert abs(share - 0.75) < 4 * (0.75 * 0.25 / 4000) ** 0.5


def test_least_loaded_takes_the_free_path_where_one_is_busy() -> None:
    topology = leaf_spine(leaves=2, below=4, spines=4)
    messages = [(k, 4 + k, SIZE) for k in range(4)]
    starts = [k * 1_000_000 for k in range(4)]  # one after the other: each sees those before it
    times, counted = send(FairShareNetwork(LeastLoaded()), topology, messages, starts)
    assert (times - np.array(starts) == 804_000_000).all()
    assert (counted.link_bytes[up_links(topology)][:4] == SIZE).all()


def test_ugal_goes_round_where_the_short_way_is_taken_and_valiant_always() -> None:
    everyone = [(a, b, 80e9, 0) for a in range(5) for b in range(5) if a != b]
    topology = graph(5, 5, everyone)
    object.__setattr__(topology, "routing", EcmpPaths(endpoints_forward=True))
    direct = everyone.index((0, 1, 80e9, 0))
    one = [(0, 1, SIZE)]
    _, alone = send(FairShareNetwork(Ugal()), topology, one)
    assert alone.link_bytes[direct] == SIZE
    many_of_them = one * 8
    starts = [k * 1000 for k in range(8)]
    times, counted = send(FairShareNetwork(Ugal()), topology, many_of_them, starts)
    assert 0 < counted.link_bytes[direct] < 8 * SIZE
    kept, _ = send(FairShareNetwork(), topology, many_of_them, starts)
    assert times.max() < kept.max()
    _, spread = send(FairShareNetwork(Valiant()), topology, one * 64)
    assert spread.link_bytes[direct] < 40 * SIZE  # of the direct way and three round it


def test_a_flowlet_stays_on_its_path_within_the_gap_and_draws_after_it() -> None:
    topology = leaf_spine(spines=8, leaves=2, below=1)

    def used(gap: str) -> int:
        network = FairShareNetwork(Flowlet.model_validate({"gap": gap}))
        network.open(topology, 0)
        groups = [
            FlowGroup(
                k,
                flat_table([0], [1], [1000], reaction_ps=NEVER),
                np.array([0, 1], np.int32),
                pack_key(0, 0, k, 0),
            )
            for k in range(32)
        ]
        starts = [(k, 0, k * 10_000_000, k * 10_000_000) for k in range(32)]
        network.advance(batch(groups, starts), NEVER)
        return int((network.statistics().link_bytes[up_links(topology)] > 0).sum())

    assert used("20us") == 1
    assert used("1us") > 4


@every_balancer
@many
@given(world=worlds(), seed=st.integers(0, 2**32))
def test_cuts_order_and_lookahead_change_nothing(
    balancer: Callable[[], Balancer], world: World, seed: int
) -> None:
    object.__setattr__(world.topology, "routing", EcmpPaths(world.topology.routing.endpoints_forward))
    whole = drive(FairShareNetwork(balancer()), world)
    assert drive(FairShareNetwork(balancer()), world.reacting(NEVER)) == whole
    assert drive(FairShareNetwork(balancer()), world, eager=False) == whole
    assert drive(FairShareNetwork(balancer()), world, cuts=random.Random(seed)) == whole


@every_balancer
@many
@given(
    sizes=st.lists(st.integers(1, 10**7), min_size=1, max_size=24),
    spines=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_byte_crosses_each_tier_once_and_no_link_carries_more_than_it_can(
    balancer: Callable[[], Balancer], sizes: list[int], spines: int, seed: int
) -> None:
    topology = leaf_spine(spines=spines)
    rng = random.Random(seed)
    messages = [(rng.randrange(4), 4 + rng.randrange(12), size) for size in sizes]
    starts = [rng.randrange(10**8) for _ in sizes]
    made = balancer()
    times, counted = send(FairShareNetwork(made), topology, messages, starts, seed)
    total = sum(sizes)
    assert counted.link_bytes[: 2 * topology.num_endpoints].sum() == 2 * total  # the hosts' own links
    if not made.detours:
        ups = counted.link_bytes[up_links(topology)].sum()
        assert abs(int(ups) - total) <= spines * len(sizes) * (1 + counted.events)
    span = int(times.max())
    assert (counted.link_bytes * 8e12 / topology.link_rate_bps <= span + 1000).all()


class Bad(Balancer):
    """Answers what it is told"""

    answer: float = 0.0
    asked: float = 0.0

    def choose(self, c: object) -> None:
        c.path = self.answer  # type: ignore[attr-defined]
        c.again = self.asked  # type: ignore[attr-defined]


class BadParts(Balancer):
    """Parts that are told"""

    gives = "parts"
    answer: float = 0.0

    def choose(self, c: object) -> None:
        c.parts = self.answer  # type: ignore[attr-defined]


class Raises(Balancer):
    """Fails"""

    def choose(self, c: object) -> None:
        raise KeyError(str(len(c)))  # type: ignore[arg-type]


class SetsLoad(Balancer):
    """Sets what it can't"""

    def choose(self, c: object) -> None:
        c.path_load = 0  # type: ignore[attr-defined]


class ReadsFresh(Balancer):
    """Reads a column by the name that it had"""

    def choose(self, c: object) -> None:
        c.path = c.fresh  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("balancer", "says"),
    [
        (Bad(answer=float("nan")), "Bad: column 'path' is nan for the connection of job 0 from gpu0 to gpu5"),
        (Bad(answer=4), "Bad: column 'path' is 4 for the connection .* it has 4 paths, from 0"),
        (Bad(answer=0.5), "'path' is 0.5"),
        (Bad(asked=-1), "'again' is -1"),
        (Bad(asked=10), "at least 1000 ps"),
        (Bad(asked=float("inf")), "'again' is inf"),
        (BadParts(answer=0.3), "'parts' adds up to 1.2"),
        (BadParts(answer=-1), "'parts' is -1 at path 0"),
        (BadParts(answer=float("nan")), "'parts' is nan"),
        (Raises(), "Raises.choose failed for the connection of job 0 from gpu0 to gpu5: KeyError: .1"),
        (SetsLoad(), "column 'path_load' can't be set"),
        (ReadsFresh(), "there is no column 'fresh'; it is begins_message now"),
    ],
)
def test_what_nobody_could_follow_is_refused_with_class_column_value_and_connection(
    balancer: Balancer, says: str
) -> None:
    with pytest.raises(NetworkError, match=says):
        send(FairShareNetwork(balancer), leaf_spine(), [(0, 5, SIZE)])


IN_NUMPY: list[tuple[Callable[[], Balancer], Callable[[], Balancer]]] = [
    (Adaptive, NumpyAdaptive),
    (Valiant, NumpyValiant),
    (Weighted, NumpyWeighted),
]


@pytest.mark.parametrize(("in_c", "in_numpy"), IN_NUMPY)
@many
@given(world=worlds())
def test_in_numpy_and_in_c_are_the_same(
    in_c: Callable[[], Balancer], in_numpy: Callable[[], Balancer], world: World
) -> None:
    object.__setattr__(world.topology, "routing", EcmpPaths(world.topology.routing.endpoints_forward))
    assert drive(FairShareNetwork(in_numpy()), world) == drive(FairShareNetwork(in_c()), world)


BAD_IN_C = """
#include "kernel.h"
EXPORT void bad(int64_t n, struct choice *rows, struct seen_path *paths, double *state,
                const double *parameters) {
  for (int64_t i = 0; i < n; i++) {
    rows[i].path = parameters[0];
    state[MOST_STATES * rows[i].conn] = parameters[1];
  }
}
"""


@pytest.mark.parametrize(
    ("path", "own", "says"),
    [
        (float("nan"), 0.0, "BadInC: column 'path' is nan for the connection of job 0 from gpu0 to gpu5"),
        (9.0, 0.0, "BadInC: column 'path' is 9 for the connection .* it has 4 paths, from 0"),
        (1.0, float("inf"), "BadInC: column 'own' is inf for .*; it has to be a finite number"),
    ],
)
def test_what_a_balancer_of_c_writes_is_checked(path: float, own: float, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.c").write_text(BAD_IN_C)

    class BadInC(Balancer):
        """Answers what it is told"""

        state: ClassVar[dict[str, float]] = {"own": 0.0}
        kernel: ClassVar[Any] = plugin.load(tmp_path / "bad.c", "bad")

        def parameters(self) -> list[float]:
            return [path, own]

    with pytest.raises(NetworkError, match=says):
        send(FairShareNetwork(BadInC()), leaf_spine(), [(0, 5, 1000)])
