"""Random jobs over a served network: what they come to in this process, ties and all."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings

from cosim.engine.records import JobInfo
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.flows import Completions, FlowBatch
from cosim.network.simulator import Advance, NetworkSimulator
from cosim.protocol.client import RemoteNetwork, connect
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig
from cosim.protocol.settings import Target
from cosim.testing.strategies.jobs import JobMix as World
from cosim.testing.strategies.jobs import job_mixes as worlds
from tests.engine.worlds import (
    NETWORKS,
    compute,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    recv,
    run,
    send,
    workload,
)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("served")
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(Server(ServerConfig(NETWORKS[name]), f"unix:{folder / name}")).address
            for name in ("congestion_aware", "fair_share")
        }


@pytest.fixture
def aware(addresses: dict[str, str]) -> str:
    return addresses["congestion_aware"]


def digest(world: World, network: NetworkSimulator, release: str = "network") -> str:
    return run(
        world.topology, *world.jobs, network=network, collectives=world.planner, release=release
    ).digest


@pytest.mark.parametrize("name", ["congestion_aware", "fair_share"])
@given(world=worlds())
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_served_or_in_this_process_random_jobs_end_alike(
    addresses: dict[str, str], name: str, world: World
) -> None:
    right = digest(world, NETWORKS[name]())
    for release in ("network", "engine"):
        assert digest(world, connect(addresses[name]), release) == right


class Forgetful(RemoteNetwork):
    """Drops the causes of completions, as if they were not on the wire."""

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        granted, done = super().advance(flows, horizon_ps)
        return Advance(granted, Completions(done.handle, done.index, done.start_ps, done.time_ps))


def relay(source: int, size_bytes: int, after_ps: int, then_bytes: int) -> JobInfo:
    """A message to endpoint 1, and when it is there one from 1 to 3."""
    operations = (
        [compute(after_ps), send(1, size_bytes, 0)],
        [recv(0, size_bytes), send(2, then_bytes, 0)],
        [recv(1, then_bytes)],
    )
    return job(workload(*operations), [source, 1, 3])


@pytest.mark.parametrize("release", ["network", "engine"])
def test_what_follows_from_two_arrivals_at_once_is_in_the_order_of_their_causes(
    aware: str, release: str
) -> None:
    """The second job's message is longer on its way to the same instant: what follows from it goes first."""
    jobs = relay(2, 50_000, 1_000_000, 40_000), relay(0, 100_000, 0, 90_000)

    def ends(network: NetworkSimulator) -> list[int]:
        records = run(one_dimension("FullyConnected", 4), *jobs, network=network, release=release)
        return [int(end.max()) for end in records.iteration_end_ps]

    there = 2_500_000  # 100,000 bytes at 50 bytes per ns, or 1 us and 50,000; and 0.5 us
    by_cause = [there + (1800 + 800 + 500) * 1000, there + (1800 + 500) * 1000]
    by_key = [there + (800 + 500) * 1000, there + (800 + 1800 + 500) * 1000]
    assert ends(CongestionAwareNetwork()) == by_cause
    assert ends(connect(aware)) == by_cause
    assert ends(Forgetful(Target(address=aware))) == by_key
