"""SimPy's clock with a network beside it: whole picoseconds, one event an instant, a network that behaves."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import simpy
from hypothesis import HealthCheck, given, settings

from cosim.engine.environment import CoSimEnvironment
from cosim.engine.replay import Release, Replay
from cosim.errors import CausalityError, NetworkError
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.flows import Completions, FlowBatch
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator
from cosim.pattern.planner import Planner
from cosim.testing.faulty import FaultyNetwork
from cosim.testing.strategies.jobs import JobMix as World
from cosim.testing.strategies.jobs import job_mixes as worlds
from cosim.units import NEVER, PS_PER_US
from tests.engine.worlds import (
    NETWORKS,
    Watched,
    collective,
    compute,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    recv,
    run,
    send,
    times,
    workload,
)

either_release = pytest.mark.parametrize("release", ["network", "engine"])


class Scripted(ForwardingNetwork):
    """Answers each advance from a list of (granted, completions as (handle, index, start, time))."""

    def __init__(self, answers: Sequence[tuple[int, Sequence[tuple[int, int, int, int]]]]) -> None:
        super().__init__(CongestionAwareNetwork())
        self.answers = list(answers)
        self.horizons: list[int] = []

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:  # noqa: ARG002 - the script ignores them
        self.horizons.append(horizon_ps)
        granted, rows = self.answers.pop(0) if self.answers else (horizon_ps, [])
        columns = [np.array([row[k] for row in rows], np.int64) for k in range(4)]
        return Advance(granted, Completions(columns[0].astype(np.int32), *columns[1:]))


def alone(network: NetworkSimulator) -> Replay:
    """A replay of no jobs on a network."""
    return Replay(one_dimension("Ring", 2), network, [], Planner())


def environment() -> tuple[CoSimEnvironment, list[int]]:
    """An environment beside nothing, and the instants that are looked at."""
    looked: list[int] = []
    return CoSimEnvironment(looked.append, lambda horizon, _: horizon), looked


def test_the_network_runs_to_simpys_next_event_and_no_further() -> None:
    network = Scripted([])
    replay = alone(network)
    env = replay.environment
    env.timeout(70)
    env.timeout(30)
    replay.run()
    assert network.horizons == [30, 70, NEVER]
    assert (env.now, env.granted_ps) == (70, NEVER)


def test_what_completes_on_the_way_to_simpys_next_event_happens_before_it() -> None:
    network = Watched(CongestionAwareNetwork())
    work = workload([send(1, 50_000), send(1, 50_000, 0, tag=1)], [recv(0, 50_000), recv(0, 50_000, tag=1)])
    replay = Replay(one_dimension("Ring", 2), network, [job(work)], Planner())
    network.replay = replay  # at every advance: now <= grant <= horizon, starts >= grant
    env = replay.environment
    seen: list[tuple[int, int]] = []

    def process() -> Generator[simpy.Event, Any, None]:
        for _ in range(3):
            yield env.timeout(1_400_000)
            seen.append((int(env.now), replay._engine.flow_log.num_messages))

    env.process(process())
    records = replay.run()
    assert records.end_ps == 3_000_000  # 1 us and 500 ns of latency each
    assert seen == [(1_400_000, 0), (2_800_000, 1), (4_200_000, 2)]


def test_an_instants_bookkeeping_comes_before_all_else_that_simpy_has_at_that_time() -> None:
    env, looked = environment()
    order: list[str] = []

    def process() -> Generator[simpy.Event, Any, None]:
        yield env.timeout(50)
        order.append(f"process, {len(looked)} looked at")
        yield env.timeout(0)
        order.append(f"process again, {len(looked)} looked at")

    env.wake(50)
    env.wake(50)
    env.process(process())
    env.run()
    assert order == ["process, 1 looked at", "process again, 1 looked at"]
    assert looked == [50]


@pytest.mark.parametrize("delay", [-1, 0.5, 1e-12, float("nan"), float("inf"), NEVER])
def test_a_delay_is_a_whole_number_of_picoseconds_and_not_negative(delay: float) -> None:
    env, _ = environment()
    event = simpy.Event(env)
    event._ok, event._value = True, None
    with pytest.raises(CausalityError, match="a whole number of picoseconds"):
        env.schedule(event, delay=delay)
    with pytest.raises((CausalityError, ValueError)):  # SimPy itself refuses a negative timeout
        env.timeout(delay)
    env.timeout(3.0)
    env.run()
    assert env.now == 3
    assert isinstance(env.now, int)


def test_nothing_is_woken_in_the_past() -> None:
    env, _ = environment()
    env.timeout(10)
    env.run()
    with pytest.raises(CausalityError, match="9 ps is before now, 10 ps"):
        env.wake(9)


@pytest.mark.parametrize(
    ("answers", "error", "told"),
    [
        ([(50, []), (40, [])], CausalityError, "granted 40 ps; it may grant 50 to 100 ps"),
        ([(101, [])], CausalityError, "granted 101 ps; it may grant 0 to 100 ps"),
        ([(50, []), (50, [])], NetworkError, "makes no progress at 50 ps"),
        ([(50, [(0, 0, 0, 51)])], CausalityError, "a completion at 51 ps; it went from 0 to 50 ps"),
        (
            [(50, []), (60, [(0, 0, 0, 49)])],
            CausalityError,
            "a completion at 49 ps; it went from 50 to 60 ps",
        ),
    ],
    ids=[
        "time goes back",
        "beyond the horizon",
        "no progress",
        "completion too late",
        "completion too early",
    ],
)
def test_a_network_that_breaks_the_rules_is_named(
    answers: Sequence[tuple[int, Sequence[tuple[int, int, int, int]]]], error: type[Exception], told: str
) -> None:
    replay = alone(Scripted(answers))
    replay.environment.timeout(100)
    with pytest.raises(error, match=told) as caught:
        replay.run()
    assert "congestion_aware" in str(caught.value)


class Lying(ForwardingNetwork):
    """Reports a completion more, once something completed."""

    def __init__(self, handle: int | None, index: int | None) -> None:
        super().__init__(CongestionAwareNetwork())
        self._lie = handle, index

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        granted, done = super().advance(flows, horizon_ps)
        if not len(done):
            return Advance(granted, done)
        handle = done.handle[:1] if self._lie[0] is None else np.array([self._lie[0]], np.int32)
        index = done.index[:1] if self._lie[1] is None else np.array([self._lie[1]], np.int64)
        more = done.take(np.array([*range(len(done)), 0]))
        handles, indices = np.append(done.handle, handle), np.append(done.index, index)
        return Advance(granted, replace(more, handle=handles, index=indices))


@pytest.mark.parametrize(
    ("handle", "index", "told"),
    [
        (999_999, 0, "was never given"),
        (-1, 0, "was never given"),
        (5, 0, "was never given"),
        (None, None, "none of whose flows is under way"),
        (None, -1, "negative number"),
    ],
)
@either_release
def test_completions_of_what_is_not_in_flight_are_refused(
    handle: int | None, index: int | None, told: str, release: str
) -> None:
    work = workload([send(1, 64)], [recv(0, 64)])
    with pytest.raises(NetworkError, match=told):
        run(one_dimension("Ring", 2), job(work), network=Lying(handle, index), release=release)


class Plain(ForwardingNetwork):
    """A network that knows nothing of dependencies, and so must never be given any."""

    def describe(self) -> Capabilities:
        return replace(self.inner.describe(), dependent_flows=False)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        assert all(one.release == "caller" for one in flows.groups if len(one.table.dep_distance))
        return super().advance(flows, horizon_ps)


@pytest.mark.parametrize("network", [Plain, lambda inner: FaultyNetwork(inner, {})])
def test_what_a_network_can_not_release_the_engine_does(network: Any) -> None:
    work = workload([collective(64), compute(5, 0)], [collective(64)])
    direct = run(one_dimension("Ring", 2), job(work))
    records = run(one_dimension("Ring", 2), job(work), network=network(CongestionAwareNetwork()))
    assert (records.digest, times(records)) == (direct.digest, times(direct))


@pytest.mark.parametrize("model", NETWORKS.values(), ids=NETWORKS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(world=worlds())
def test_the_network_is_never_behind_simpy_and_starts_are_never_behind_the_network(
    model: type, world: World
) -> None:
    for release in ("network", "engine"):
        watched = Watched(model())
        replay = Replay(world.topology, watched, world.jobs, world.planner, release)
        watched.replay = replay  # at every advance: now <= grant <= horizon, starts >= grant
        watch_steps(replay)
        replay.run()
        assert watched.left == {}


def watch_steps(replay: Replay) -> list[int]:
    """The times of SimPy's events, as they happen; each no later than what the network has granted."""
    env, step, events = replay.environment, replay.environment.step, list[int]()

    def watched() -> None:
        step()
        assert env.now <= env.granted_ps
        events.append(int(env.now))

    env.step = watched  # type: ignore[method-assign]
    return events


def test_an_instant_with_many_completions_is_no_simpy_event() -> None:
    ranks = 64
    work = workload([collective(ranks * 64, kind="all_to_all")], mesh={"dp": ranks})
    # All arrive at 0; all are done at one instant. SimPy only hears of the job's start.
    for network in (Watched(CongestionAwareNetwork()), CongestionAwareNetwork()):
        replay = Replay(one_dimension("FullyConnected", ranks), network, [job(work)], Planner())
        events = watch_steps(replay)
        records = replay.run()
        assert records.num_messages == ranks * (ranks - 1)
        assert events == [0]
        assert records.info["advances"] <= 3


@either_release
def test_a_users_own_process_joins_the_clock(release: Release) -> None:
    work = workload([compute(3 * PS_PER_US), collective(1 << 20, 0)], mesh={"dp": 4})
    topology = one_dimension("Ring", 4)
    alone = run(topology, job(work), release=release)
    replay = Replay(topology, CongestionAwareNetwork(), [job(work)], Planner(), release)
    env = replay.environment
    ticks: list[int] = []

    def clock() -> Generator[simpy.Event, Any, None]:
        while env.now < 2 * alone.end_ps:
            yield env.timeout(777_777)
            ticks.append(int(env.now))

    env.process(clock())
    records = replay.run()
    assert ticks == [777_777 * k for k in range(1, len(ticks) + 1)]
    assert ticks[-1] > alone.end_ps
    assert records.digest == alone.digest
    assert times(records) == times(alone)


def test_a_users_process_can_use_simpys_resources_beside_the_replay() -> None:
    replay = Replay(
        one_dimension("Ring", 2),
        CongestionAwareNetwork(),
        [job(workload([compute(5)], [compute(9)]))],
        Planner(),
    )
    env = replay.environment
    resource = simpy.Resource(env, capacity=1)
    got: list[tuple[str, int]] = []

    def user(name: str, hold: int) -> Generator[simpy.Event, Any, None]:
        with resource.request() as request:
            yield request
            got.append((name, int(env.now)))
            yield env.timeout(hold)

    env.process(user("first", 4))
    env.process(user("second", 4))
    assert replay.run().end_ps == 9
    assert got == [("first", 0), ("second", 4)]
