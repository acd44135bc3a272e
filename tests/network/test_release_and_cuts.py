"""What a network does depends on its flows, not on how it is asked: all models, random worlds."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.units import NEVER
from tests.network.worlds import drive, drive_by_caller, small_device, unrolled

Model = Callable[[], NetworkSimulator]
MODELS: list[Model] = [CongestionUnawareNetwork, CongestionAwareNetwork, FairShareNetwork]
DEVICE = pytest.param(small_device, marks=pytest.mark.slow)
every_model = pytest.mark.parametrize("model", [*MODELS, DEVICE])
SHARED = [pytest.param(MODELS[0], marks=pytest.mark.slow), *MODELS[1:], DEVICE]
"""Those whose messages share links; that whose don't waits for the slow step."""
many = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("model", SHARED)
@many
@given(world=worlds(), seed=st.integers(0, 2**32))
def test_cuts_order_and_lookahead_change_nothing(model: Model, world: World, seed: int) -> None:
    whole = drive(model(), world)
    assert drive(model(), world.reacting(NEVER)) == whole
    assert drive(model(), world, eager=False) == whole
    assert drive(model(), world, cuts=random.Random(seed)) == whole
    assert drive(model(), world.reacting(NEVER), cuts=random.Random(seed)) == whole
    assert drive(model(), world.reacting(1_000), cuts=random.Random(seed + 1)) == whole


@every_model
@many
@given(world=worlds())
def test_release_by_the_caller_gives_the_same_times(model: Model, world: World) -> None:
    assert drive_by_caller(model(), world) == drive(model(), world)


@every_model
@many
@given(world=worlds())
def test_repeated_blocks_equal_the_same_rows_written_out(model: Model, world: World) -> None:
    flat = world.with_tables({id(g.table): unrolled(g.table) for g in world.groups})
    assert drive(model(), flat) == drive(model(), world)
