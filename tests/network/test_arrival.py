"""Networks that say when a message arrives: the seam's rules hold whatever they say."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import CausalityError, NetworkError
from cosim.network.arrival import ArrivalNetwork, Message
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance, NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing import check_network, star
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.units import NEVER, PS_PER_NS
from tests.inputs import ROOT
from tests.network.worlds import drive_by_caller


def page() -> Any:
    """The how-to's example."""
    file = ROOT / "docs" / "howto" / "files" / "circuits.py"
    spec = importlib.util.spec_from_file_location("circuits", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("setup", ["0us", "2us"])
def test_the_how_to_s_example_keeps_every_rule(setup: str) -> None:
    report = check_network(page().Circuits(setup=setup))
    skipped = {one.name for one in report.results if one.verdict == "skipped"}
    assert skipped == {
        *("symmetry", "link_changes", "live_changes", "peek", "queues", "rates"),
        *("dependents", "start_dependents", "given_later", "switch_ends", "computations"),
    }


class Unaware(ArrivalNetwork):
    """ASTRA-sim's congestion_unaware, as its text has it."""

    name: ClassVar[str] = "unaware"

    def arrival(self, message: Message, start_ps: int) -> int:
        links = list(message.links)
        slowest = min((self.topology.link_rate_bps[links] / 8e9).tolist())
        wait = float(self.topology.link_latency_ps[links].sum()) / PS_PER_NS
        return start_ps + int(wait + message.size_bytes / slowest) * PS_PER_NS


many = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@many
@given(world=worlds())
def test_a_model_of_the_kernel_s_is_the_same_in_plain_python(world: World) -> None:
    """But for the order of a channel, which congestion_unaware does not keep."""

    class Unordered(Unaware):
        def _arrival(self, message: Message, start: int) -> int:
            return self.arrival(message, start)

    assert drive_by_caller(Unordered(), world) == drive_by_caller(CongestionUnawareNetwork(), world)


class Cut(ForwardingNetwork):
    """Grants less than it could, now and then."""

    def __init__(self, inner: NetworkSimulator, seed: int) -> None:
        super().__init__(inner)
        self._random, self._granted = random.Random(seed), 0

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        shorter = min(horizon_ps, self._granted + self._random.randrange(1, 10**8))
        step = self.inner.advance(flows, self._random.choice([horizon_ps, shorter]))
        self._granted = step.granted_ps
        return step


@many
@given(world=worlds(), seed=st.integers(0, 2**32))
def test_where_calls_are_cut_changes_nothing(world: World, seed: int) -> None:
    plain = drive_by_caller(page().CircuitNetwork(0), world)
    assert drive_by_caller(Cut(page().CircuitNetwork(0), seed), world) == plain


class Says(ArrivalNetwork):
    name: ClassVar[str] = "says"

    def __init__(self, said: Sequence[Any]) -> None:
        self.said = list(said)

    def arrival(self, message: Message, start_ps: int) -> Any:  # noqa: ARG002
        return self.said.pop(0)


def give(
    network: NetworkSimulator, starts: list[int], index: list[int] | None = None, handle: int = 0
) -> FlowBatch:
    table = flat_table([0] * 3, [1] * 3, [1000] * 3, num_participants=2, reaction_ps=NEVER)
    group = FlowGroup(0, table, np.array([0, 1], np.int32), (0, 0), job=2, channel=5, priority=1, weight=2.0)
    when = np.array(starts, np.int64)
    which = np.array(index or range(len(starts)), np.int64)
    return FlowBatch([group], np.full(len(starts), handle, np.int32), which, when, when)


@pytest.mark.parametrize("said", [None, 4.0, 999, NEVER, float("nan"), "soon"])
def test_an_arrival_that_can_not_be_is_refused(said: Any) -> None:
    network = Says([said])
    network.open(star())
    with pytest.raises(NetworkError, match=r"Says\.arrival gave .* for Message\(src=0, dst=1, .*at 1000 ps"):
        network.advance(give(network, [1000]), NEVER)


def test_messages_of_a_channel_stay_in_order() -> None:
    network = Says([900, 500, np.int64(700)])
    network.open(star())
    done = network.advance(give(network, [0, 1, 2]), NEVER).completions
    assert sorted(zip(done.index.tolist(), done.time_ps.tolist(), strict=True)) == [
        (0, 900),
        (1, 900),
        (2, 900),
    ]
    assert done.since().tolist() == done.start_ps.tolist()


def test_what_can_not_be_given_is_refused_and_nothing_of_it_is_taken() -> None:
    network = Says([10, 20, 30])
    network.open(star())
    for wrong, error in [
        (give(network, [0, 0], [1, 1]), NetworkError),
        (give(network, [0], [3]), NetworkError),
        (give(network, [0], [-1]), NetworkError),
        (give(network, [0], handle=1), NetworkError),
        (give(network, [-1]), CausalityError),
    ]:
        with pytest.raises(error):
            network.advance(wrong, NEVER)
    network.advance(give(network, [0]), 1)
    with pytest.raises(NetworkError, match="flow 0 of handle 0 starts twice"):
        network.advance(
            FlowBatch((), *(np.array([k], t) for k, t in [(0, "i4"), (0, "i8"), (5, "i8"), (5, "i8")])), 9
        )
    assert network.statistics().flows_started == 1
    network.close()
    with pytest.raises(NetworkError, match="says is not open"):
        network.advance(FlowBatch(), 1)


def test_a_message_says_all_that_a_model_may_go_by() -> None:
    seen: list[Message] = []

    class Watch(Says):
        def arrival(self, message: Message, start_ps: int) -> Any:
            seen.append(message)
            return start_ps

    network = Watch([])
    topology = star()
    network.open(topology, seed=7)
    network.advance(give(network, [0]), NEVER)
    _, links = topology.paths(*(np.array([k], np.int32) for k in (0, 1, 5)))
    assert seen == [Message(0, 1, 1000, tuple(links.tolist()), 5, 2, 1, 2.0)]
    assert (network.topology, network.seed) == (topology, 7)


def test_links_are_busy_for_as_long_as_their_bytes_take() -> None:
    network = Says([10**6, 10**6, 2 * 10**9])
    topology = star()
    network.open(topology)
    network.advance(give(network, [0, 0, 10**9]), NEVER)
    counted = network.statistics()
    used = np.flatnonzero(counted.link_bytes)
    assert counted.link_bytes[used].tolist() == [3000, 3000]
    exact = 3 * 1000 * 8e12 / topology.link_rate_bps[used]
    assert counted.link_busy_ps[used] == pytest.approx(exact)
    assert (counted.busy_ps <= counted.bin_ps).all()
