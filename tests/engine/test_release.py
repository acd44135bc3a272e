"""Who releases, how the network is asked, in which order: a run is the same, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import pytest
from engine_worlds import (
    NETWORKS,
    Hesitant,
    ShortSighted,
    Shuffled,
    Watched,
    never_hangs,  # noqa: F401 - runs by itself
    run,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_jobs import World, worlds

from cosim.engine.records import Records
from cosim.network.simulator import NetworkSimulator

Model = Callable[[], NetworkSimulator]
every_network = pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
some = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
few = settings(some, max_examples=8)


def ran(world: World, network: NetworkSimulator, release: str = "network") -> Records:
    return run(
        world.topology,
        *world.jobs,
        network=network,
        collectives=world.planner,
        release=release,
        record_messages=True,
    )


def assert_same(one: Records, two: Records) -> None:
    """Equal in all that a user can see."""
    assert one.digest == two.digest
    for name in ("job", "iteration", "rank", "op", "start_ps", "end_ps"):
        assert np.array_equal(getattr(one.ops, name), getattr(two.ops, name)), name
    assert [asdict(c) for c in one.collectives] == [asdict(c) for c in two.collectives]
    assert all(np.array_equal(a, b) for a, b in zip(one.finish_ps, two.finish_ps, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(one.iteration_end_ps, two.iteration_end_ps, strict=True))
    assert (one.num_messages, one.end_ps) == (two.num_messages, two.end_ps)
    assert np.array_equal(one.fct.counts, two.fct.counts)
    assert (one.fct.min_ps, one.fct.max_ps, one.fct.sum_ps) == (
        two.fct.min_ps,
        two.fct.max_ps,
        two.fct.sum_ps,
    )
    assert one.messages is not None
    assert two.messages is not None
    for name in ("job", "iteration", "op", "src", "dst", "size_bytes", "start_ps", "end_ps"):
        assert np.array_equal(getattr(one.messages, name), getattr(two.messages, name)), name
    assert matrix(one) == matrix(two)
    assert np.array_equal(one.links.link_bytes, two.links.link_bytes)
    assert one.links.bin_ps == two.links.bin_ps
    assert np.array_equal(one.links.busy_ps, two.links.busy_ps)
    assert one.links.flows_completed == two.links.flows_completed


def matrix(records: Records) -> dict[tuple[int, int], list[int]]:
    """Bytes over time by (source, destination), whatever column each pair has."""
    traffic = records.traffic
    pairs = zip(traffic.src.tolist(), traffic.dst.tolist(), strict=True)
    return {pair: [traffic.bin_ps, *traffic.size_bytes[:, k].tolist()] for k, pair in enumerate(pairs)}


@every_network
@some
@given(world=worlds())
def test_released_by_the_network_or_by_the_engine_a_run_is_the_same(model: Model, world: World) -> None:
    assert_same(ran(world, Watched(model())), ran(world, Watched(model()), "engine"))


@every_network
@few
@given(world=worlds(), seed=st.integers(0, 2**32))
def test_order_cuts_and_lookahead_change_nothing(model: Model, world: World, seed: int) -> None:
    whole = ran(world, model())
    assert_same(whole, ran(world, model()))
    assert_same(whole, ran(world, Shuffled(model(), seed)))
    assert_same(whole, ran(world, Hesitant(model(), seed)))
    assert_same(whole, ran(world, ShortSighted(model())))
    assert_same(whole, ran(world, Shuffled(Hesitant(ShortSighted(model()), seed), seed), "engine"))
