"""Who releases, how the network is asked, in which order: a run is the same, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.engine.records import Records
from cosim.network.simulator import NetworkSimulator
from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.costs import Costs
from cosim.pattern.dissemination import Dissemination
from cosim.pattern.planner import Planner
from cosim.pattern.template import Collective, Template
from cosim.testing.strategies.jobs import JobMix as World
from cosim.testing.strategies.jobs import job_mixes as worlds
from cosim.topology.grid import Dimension, grid_topology
from tests.engine.worlds import (
    NETWORKS,
    Hesitant,
    ShortSighted,
    Shuffled,
    Watched,
    collective,
    compute,
    config,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    run,
    workload,
)

Model = Callable[[], NetworkSimulator]
simplest = {"congestion_unaware": pytest.mark.slow}
"""Where flows are in nobody's way there is the least to get wrong: it waits for the slow step."""
every_network = pytest.mark.parametrize(
    "model", [pytest.param(NETWORKS[name], id=name, marks=simplest.get(name, ())) for name in NETWORKS]
)
some = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
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
    assert one.collectives == two.collectives
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
@some
@given(world=worlds())
def test_in_one_loop_with_the_engine_or_asked_from_python_a_run_is_the_same(
    model: Model, world: World
) -> None:
    """A network of this process is asked in the engine's own loop, unless somebody stands in between."""
    jointly, asked = (
        run(world.topology, *world.jobs, network=network, collectives=world.planner)
        for network in (model(), Watched(model()))
    )
    assert jointly.digest == asked.digest
    assert jointly.collectives == asked.collectives
    assert jointly.fct.sum_ps == asked.fct.sum_ps
    assert jointly.info["advances"] == asked.info["advances"]
    assert matrix(jointly) == matrix(asked)
    for name in ("job", "iteration", "rank", "op", "start_ps", "end_ps"):
        assert np.array_equal(getattr(jointly.ops, name), getattr(asked.ops, name)), name
    for name in ("link_bytes", "busy_ps", "flows_started", "flows_completed", "events"):
        assert np.array_equal(getattr(jointly.links, name), getattr(asked.links, name)), name


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


@every_network
@pytest.mark.parametrize("active", [1, 2])
def test_queues_of_a_collective_do_not_depend_on_the_order_of_reports(model: Model, active: int) -> None:
    """In three dimensions chunks reach the queue of the middle one from both sides at one instant."""
    grid = grid_topology([Dimension("Ring", 2, rate, 500_000) for rate in (800e9, 400e9, 100e9)])
    planner = Planner(config(all_reduce=["ring"] * 3, splits=8, active_chunks=active))
    world = World(grid, (job(workload([collective(1 << 20)], mesh={"dp": 8})),), planner)
    whole = ran(world, model())
    for seed in range(4):
        assert_same(whole, ran(world, Shuffled(model(), seed)))
    assert_same(whole, ran(world, model(), "engine"))


class Gossip(Dissemination):
    """A barrier of two ranks, and messages that no exit waits for: a long one, and one after it"""

    name: ClassVar[str] = "gossip"

    def build(
        self, collective: Collective, num_ranks: int, size_bytes: int, costs: Costs, **settings: Any
    ) -> Template:
        del num_ranks, costs, settings
        rank = np.arange(2, dtype=np.int64)
        other = 1 - rank
        blocks = [
            entries(2),
            *(
                Block(2, rank, other, np.full((2, 1), back), (COMPLETION,), size_bytes=size)
                for size, back in ((8, 2), (1 << 20, 4), (1 << 10, 2))
            ),
            exits(2, np.stack([6 + rank - other, np.full(2, 6)], axis=1), (COMPLETION, START)),
        ]
        nobody = np.empty(0, np.int32)
        return assemble(self.name, collective, 2, size_bytes, blocks, num_chunks=0, owner=nobody)


@every_network
def test_messages_that_no_exit_waits_for_may_outlast_the_collective(model: Model) -> None:
    program = [
        collective(0, kind="barrier"),
        compute(10, 0),
        collective(0, 1, kind="barrier"),
        compute(10**9),
    ]
    work = workload(program, mesh={"dp": 2})
    planner = Planner(config(barrier=Gossip()))
    world = World(one_dimension("Ring", 2), (job(work, iterations=2),), planner)
    whole = ran(world, Watched(model()))
    assert whole.num_messages == 2 * 2 * 6
    assert whole.messages is not None
    assert int(whole.messages.end_ps[:12].max()) > whole.collectives[0].end_ps
    assert_same(whole, ran(world, Watched(model()), "engine"))
