"""Peek: the time of the first completion that would come, without moving."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.graph import Topology
from cosim.units import NEVER
from tests.network.worlds import batch, drive, graph, small_device

Model = Callable[[], NetworkSimulator]
MODELS: list[Model] = [CongestionUnawareNetwork, CongestionAwareNetwork, FairShareNetwork]
DEVICE = pytest.param(small_device, marks=pytest.mark.slow)
every_model = pytest.mark.parametrize("model", [*MODELS, DEVICE])
some = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


class Peeked(NetworkSimulator):
    """Peeks after each advance, and has a copy of the network run on to see whether that is so."""

    def __init__(self, inner: NetworkSimulator) -> None:
        self._inner = inner
        self._shared: dict[int, Any] = {}
        self._checks = 12

    def describe(self) -> Capabilities:
        return self._inner.describe()

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        self._inner.open(topology, seed, options)
        self._shared[id(topology)] = topology
        assert self.peek() is None

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        answer = self._inner.advance(flows, horizon_ps)
        self._check(answer.granted_ps)
        return answer

    def _check(self, granted: int) -> None:
        if self._checks == 0:
            return
        self._checks -= 1
        ahead = copy.deepcopy(self._inner, dict(self._shared))
        done = ahead.advance(batch(), NEVER).completions
        first = int(done.time_ps.min()) if len(done) else None
        assert self._inner.peek() == first
        assert self._inner.peek() == first
        assert first is None or first >= granted

    def peek(self) -> int | None:
        return self._inner.peek()

    def statistics(self) -> NetworkStatistics:
        return self._inner.statistics()

    def close(self) -> None:
        self._inner.close()


@every_model
@some
@given(world=worlds(), seed=st.integers(0, 2**32), reaction=st.sampled_from((0, 1_000, NEVER)))
def test_peek_is_the_next_completion_and_moves_nothing(
    model: Model, world: World, seed: int, reaction: int
) -> None:
    plain, peeked = model(), Peeked(model())
    result = drive(plain, world.reacting(reaction), cuts=random.Random(seed))
    assert drive(peeked, world.reacting(reaction), cuts=random.Random(seed)) == result
    one, two = plain.statistics(), peeked.statistics()
    assert (one.events, one.flows_started, one.bin_ps) == (two.events, two.flows_started, two.bin_ps)
    assert (one.link_bytes == two.link_bytes).all()
    assert (one.busy_ps == two.busy_ps).all()


@pytest.mark.parametrize("model", MODELS)
def test_peek_knows_of_flows_given_for_later(model: Model) -> None:
    network = model()
    network.open(graph(2, 2, [(0, 1, 8e9, 500_000), (1, 0, 8e9, 500_000)]))
    table = flat_table([0, 1, 0], [1, 0, 0], [1_000, 1_000, 0])
    group = FlowGroup(0, table, table.src[:2].copy(), (0, 0))
    network.advance(batch([group], [(0, 0, 7_000_000, 0)]), 0)
    assert network.peek() == 7_000_000 + 1_000_000 + 500_000  # 1,000 bytes at a byte a ns, then 500 ns
    network.advance(batch((), [(0, 1, 6_000_000, 0)]), 1_000)
    assert network.peek() == 7_500_000
    network.advance(batch((), [(0, 2, 5_000_000, 0)]), 2_000)
    assert network.peek() == 5_000_000
    assert network.advance(batch(), 5_000_001).completions.time_ps.tolist() == [5_000_000]
    assert network.peek() == 7_500_000


@every_model
def test_a_network_with_nothing_to_come_has_nothing_to_peek_at(model: Model) -> None:
    network = model()
    network.open(graph(2, 2, [(0, 1, 8e9, 0), (1, 0, 8e9, 0)]))
    assert network.peek() is None
    table = flat_table([0], [1], [1])
    group = FlowGroup(0, table, table.src.copy().repeat(2), (0, 0))
    network.advance(batch([group]), 10)
    assert network.peek() is None
    network.advance(batch((), [(0, 0, 10, 10)]), NEVER)
    assert network.peek() is None
