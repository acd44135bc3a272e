"""Two networks as one: as a single network would do it, where no link is in both."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import CausalityError, NetworkError, TopologyError
from cosim.fabric.changes import DividedChanges, LinkChange, LinkChanges
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.compiled import CompiledNetwork
from cosim.network.compiled_hybrid import CompiledHybridNetwork
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.hybrid import HybridNetwork
from cosim.network.merged import merge
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing.strategies.traffic import LATENCIES, RATES
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.graph import Topology
from cosim.topology.part import part_of
from cosim.units import NEVER
from tests.network.test_link_changes import rates_over_time, with_rates
from tests.network.test_peek import Peeked
from tests.network.worlds import batch, drive, drive_by_caller, graph

Model = Callable[[], CompiledNetwork]
MODELS: list[Model] = [CongestionUnawareNetwork, CongestionAwareNetwork, FairShareNetwork]
every_model = pytest.mark.parametrize("model", [pytest.param(MODELS[0], marks=pytest.mark.slow), *MODELS[1:]])
"""Where flows are in nobody's way there is the least to get wrong: it waits for the slow step."""
some = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


class Blind(ForwardingNetwork):
    """A network that does not peek, nor release dependent flows where ``releases`` is false; ``completed`` is
    when it completed something.
    """

    def __init__(self, inner: NetworkSimulator, *, releases: bool = True) -> None:
        super().__init__(inner)
        self._releases = releases
        self.advances = 0
        self.completed: set[int] = set()

    def describe(self) -> Capabilities:
        return replace(self.inner.describe(), peek=False, dependent_flows=self._releases)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self.advances += 1
        assert self._releases or all(
            group.release == "caller" or not len(group.table.dep_distance) for group in flows.groups
        )
        done = self.inner.advance(flows, horizon_ps)
        self.completed.update(done.completions.time_ps.tolist())
        return done

    def peek(self) -> int | None:
        raise AssertionError("it can't")


@st.composite
def meshes(draw: st.DrawFn) -> World:
    """A random world where each pair of endpoints has a link of its own, in either network."""
    world = draw(worlds())
    ends = world.topology.num_endpoints
    pairs = [(a, b) for a in range(ends) for b in range(ends) if a != b]
    links = [(a, b, draw(st.sampled_from(RATES)), draw(st.sampled_from(LATENCIES))) for a, b in pairs]
    scale_up = draw(st.lists(st.booleans(), min_size=len(links), max_size=len(links)))
    scale_up[0], scale_up[-1] = True, False
    mesh = replace(graph(ends, ends, links), scale_up=np.array(scale_up))
    return replace(world, topology=mesh)


def _cases() -> Iterator[Any]:
    """Each model in Python and in one loop; two of the six are quick."""
    for model in MODELS:
        for hybrid in (HybridNetwork, CompiledHybridNetwork):
            often = hybrid is CompiledHybridNetwork and model is not CongestionUnawareNetwork
            yield pytest.param(model, hybrid, marks=() if often else pytest.mark.slow)


@pytest.mark.parametrize(("model", "hybrid"), list(_cases()))
@some
@given(world=meshes(), seed=st.integers(0, 2**32))
def test_two_of_a_model_are_one_of_it(model: Model, hybrid: Any, world: World, seed: int) -> None:
    whole = drive(model(), world)
    assert drive(hybrid(model(), model()), world) == whole
    assert drive_by_caller(hybrid(model(), model()), world) == whole
    for reaction in (1_000, NEVER):
        one = hybrid(model(), model())
        assert drive(one, world.reacting(reaction), cuts=random.Random(seed)) == whole


def _dctcp() -> CongestionNetwork:
    return CongestionNetwork(Dctcp(), PortSettings(mark_from_bytes=20_000))


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        (CongestionUnawareNetwork, FairShareNetwork),
        pytest.param(FairShareNetwork, _dctcp, marks=pytest.mark.slow),
        pytest.param(_dctcp, CongestionAwareNetwork, marks=pytest.mark.slow),
    ],
)
@some
@given(world=meshes(), seed=st.integers(0, 2**32))
def test_one_loop_does_what_two_networks_and_python_do(
    inside: Any, outside: Any, world: World, seed: int
) -> None:
    whole = drive(CompiledHybridNetwork(inside(), outside()), world)
    cut = drive(CompiledHybridNetwork(inside(), outside()), world.reacting(NEVER), cuts=random.Random(seed))
    assert cut == whole
    parts = [one if one.describe().peek else Blind(one) for one in (inside(), outside())]
    in_python = drive(HybridNetwork(*parts), world)
    assert in_python == whole or any(isinstance(one, Blind) and _met(one, whole) for one in parts)


def test_what_a_loop_reports_amid_an_instant_is_not_lost() -> None:
    """More completions than a report has room for, at one picosecond, in either part."""
    table = flat_table([0, 1] * 3, [1, 0] * 3, [1_000] * 6)
    group = FlowGroup(0, table, np.arange(2, dtype=np.int32), (0, 0))
    mesh = replace(graph(2, 2, [(0, 1, 8e9, 0), (1, 0, 8e9, 0)]), scale_up=np.array([True, False]))
    world = World(mesh, (group,), (dict.fromkeys(range(6), (0, 0)),))
    network = CompiledHybridNetwork(FairShareNetwork(), FairShareNetwork())
    network.open(mesh)
    for part in (network, *network.parts()):
        part.core.state["report_at"] = 1  # type: ignore[attr-defined]
    given = [(0, k, 0, 0) for k in range(6)]
    ended, granted = dict[int, int](), 0
    first = network.advance(batch([group], given), 10**7)
    while True:
        ended.update(zip(first.completions.index.tolist(), first.completions.time_ps.tolist(), strict=True))
        if first.granted_ps == 10**7:
            break
        assert first.granted_ps > granted or len(first.completions)
        granted = first.granted_ps
        first = network.advance(batch(), 10**7)
    assert {(0, k): (0, end) for k, end in ended.items()} == drive(FairShareNetwork(), world)


@every_model
@some
@given(world=meshes(), seed=st.integers(0, 2**32), releases=st.booleans())
def test_one_of_them_need_not_peek_nor_release(model: Model, world: World, seed: int, releases: bool) -> None:
    whole = drive(model(), world)
    out, up = Blind(model(), releases=releases), Blind(model(), releases=releases)
    assert drive(HybridNetwork(model(), out), world) == whole or _met(out, whole)
    other = HybridNetwork(up, model())
    assert drive(other, world.reacting(NEVER), cuts=random.Random(seed)) == whole or _met(up, whole)


def _met(blind: Blind, whole: dict[tuple[int, int], tuple[int, int]]) -> bool:
    """Whether it completed something at the picosecond at which two flows or more completed: all that the
    hybrid doesn't promise where a network can't peek.
    """
    ended = Counter(end for _, end in whole.values())
    return any(ended[time] > 1 for time in blind.completed)


def test_what_is_due_starts_before_what_a_network_that_cannot_peek_completes_then() -> None:
    # 0 -> 1 is scale-up, 1 -> 0 is not. Flow 0 lets go 1 (1 -> 0) and 3 (0 -> 1, a byte), and 1 lets go 2
    # (0 -> 1), all at time 0: 3 takes the link first, whoever carries 1.
    table = replace(
        flat_table([0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]),
        dep_ptr=np.array([0, 0, 1, 2, 3]),
        dep_distance=np.array([1, 1, 3]),
        dep_kind=np.zeros(3, np.int8),
    )
    mesh = replace(graph(2, 2, [(0, 1, 8e9, 0), (1, 0, 8e9, 0)]), scale_up=np.array([True, False]))
    group = FlowGroup(0, table, np.arange(2, dtype=np.int32), (0, 0))
    world = World(mesh, (group,), ({0: (0, 0)},))
    whole = drive(CongestionAwareNetwork(), world)
    assert whole[0, 2] == (0, 1000)
    for releases in (True, False):
        blind = Blind(CongestionAwareNetwork(), releases=releases)
        assert drive(HybridNetwork(CongestionAwareNetwork(), blind), world) == whole


@settings(some, max_examples=15)
@given(world=meshes(), seed=st.integers(0, 2**32))
def test_a_hybrid_of_two_that_peek_peeks(world: World, seed: int) -> None:
    for network in (HybridNetwork, CompiledHybridNetwork):
        drive(Peeked(network(FairShareNetwork(), CongestionAwareNetwork())), world, cuts=random.Random(seed))


@every_model
@some
@given(world=meshes())
def test_statistics_are_those_of_the_whole(model: Model, world: World) -> None:
    whole = model()
    drive(whole, world)
    for hybrid in (HybridNetwork(model(), model()), CompiledHybridNetwork(model(), model())):
        drive(Kept(hybrid), world)
        one, two = whole.statistics(), hybrid.statistics()
        assert (one.flows_started, one.flows_completed) == (two.flows_started, two.flows_completed)
        assert (one.link_bytes == two.link_bytes).all()
        assert (one.link_busy_ps == two.link_busy_ps).all()


class Kept(Peeked):
    """Not closed, so that it can be asked afterwards."""

    def _check(self, granted: int) -> None:
        pass

    def close(self) -> None:
        pass


def pair() -> Topology:
    """0 -> 1 within a domain, 1 -> 2 and 0 -> 3 -> 2 outside; 2 -> 4 -> 0 takes one of either."""
    links = [(0, 1), (1, 2), (0, 3), (3, 2), (2, 4), (4, 0)]
    made = graph(3, 5, [(a, b, 8e9, 1_000_000) for a, b in links])
    return replace(made, scale_up=np.array([True, False, False, False, True, False]))


def one_flow(src: int, dst: int, handle: int = 0, size: int = 1_000) -> FlowGroup:
    table = flat_table([0], [1], [size])
    return FlowGroup(handle, table, np.array([src, dst], np.int32), (0, handle << 32))


def test_while_one_network_has_nothing_the_other_is_not_held_up() -> None:
    out = Blind(FairShareNetwork())
    network = HybridNetwork(FairShareNetwork(), out)
    network.open(pair())
    for k in range(10):
        step = network.advance(batch([one_flow(0, 1, k)], [(k, 0, k * 10**9, 0)]), (k + 1) * 10**9)
        assert step.completions.time_ps.tolist() == [k * 10**9 + 2_000_000]
    assert out.advances == 0
    step = network.advance(batch([one_flow(1, 2)], [(0, 0, 10**10, 0)]), NEVER)
    assert step.completions.time_ps.tolist() == [10**10 + 2_000_000]
    assert out.advances == 1


@pytest.mark.parametrize("hybrid", [HybridNetwork, CompiledHybridNetwork])
def test_a_path_over_both_kinds_of_links_is_refused(hybrid: Any) -> None:
    network = hybrid(FairShareNetwork(), FairShareNetwork())
    network.open(pair())
    with pytest.raises(NetworkError, match="from n2 to n0 takes scale-up links and others"):
        network.advance(batch([one_flow(2, 0)]), 0)


@pytest.mark.parametrize("compiled", [False, True])
def test_misuse_is_named(compiled: bool) -> None:
    parts = FairShareNetwork(), FairShareNetwork()
    network = CompiledHybridNetwork(*parts) if compiled else HybridNetwork(parts[0], Blind(parts[1]))
    with pytest.raises(NetworkError, match="advance needs an open network"):
        network.advance(batch(), 0)
    if not compiled:
        with pytest.raises(TopologyError, match="no scale-up links"):
            network.open(replace(pair(), scale_up=None))
    network.open(pair())
    if not compiled:
        with pytest.raises(NetworkError, match="does not peek"):
            network.peek()
    with pytest.raises(NetworkError, match="unknown group handle 7"):
        network.advance(batch((), [(7, 0, 0, 0)]), 0)
    network.advance(batch([one_flow(0, 1)]), 5)
    with pytest.raises(NetworkError, match="handle 0 is still in use"):
        network.advance(batch([one_flow(0, 1)]), 5)
    with pytest.raises(CausalityError, match="given for 4 ps"):
        network.advance(batch((), [(0, 0, 4, 0)]), 5)
    with pytest.raises(CausalityError, match="horizon 4 ps"):
        network.advance(batch(), 4)


def test_one_of_a_hybrid_has_to_peek() -> None:
    blind = HybridNetwork(Blind(FairShareNetwork()), Blind(FairShareNetwork()))
    with pytest.raises(NetworkError, match="one has to say when its next completion comes"):
        blind.open(pair())


def test_a_part_of_a_topology_has_its_links_only() -> None:
    whole = pair()
    part = part_of(whole, np.array([False, True, True, True, False, False]), "part")
    assert part.node_names == ("n0", "n1", "n2", "n3")  # endpoints stay, n4 has no link here
    assert part.link_number is not None
    assert part.link_number.tolist() == [1, 2, 3]
    zero = np.zeros(1, np.int32)
    ptr, links = part.paths(zero + 1, zero + 2, zero)
    assert (ptr.tolist(), links.tolist()) == ([0, 1], [0])


def test_bins_of_different_widths_are_put_together() -> None:
    def stats(bin_ps: int, busy: list[int]) -> NetworkStatistics:
        return NetworkStatistics(np.array([7]), bin_ps, np.array(busy)[:, None], 1, 1, 1, {})

    merged = merge(
        [(stats(4, [4, 2]), np.array([1])), (stats(2, [2, 0, 1, 1, 2]), np.array([0]))], num_links=3
    )
    assert merged.bin_ps == 4
    assert merged.busy_ps.tolist() == [[2, 4, 0], [2, 2, 0], [2, 0, 0]]
    assert merged.link_bytes.tolist() == [7, 7, 0]
    uneven = merge([(stats(3, [3, 3]), np.array([0])), (stats(2, [2, 2, 2]), np.array([1]))], num_links=2)
    assert uneven.busy_ps.tolist() == [[3, 3], [3, 3]]


@pytest.mark.parametrize(
    "hybrid", [pytest.param(HybridNetwork, marks=pytest.mark.slow), CompiledHybridNetwork]
)
@every_model
@settings(some, max_examples=15)
@given(data=st.data(), world=meshes(), seed=st.integers(0, 2**32))
def test_links_that_change_do_so_in_either_part(
    hybrid: Any, model: Model, data: st.DataObject, world: World, seed: int
) -> None:
    rows = data.draw(rates_over_time(world.topology.num_links))
    detection = data.draw(st.sampled_from([0, 1, 100_000_000]))
    world = replace(world, topology=with_rates(world.topology, rows, detection))
    whole = drive(model(), world)
    assert drive(hybrid(model(), model()), world) == whole
    one = hybrid(model(), model())
    assert drive(one, world.reacting(1_000), cuts=random.Random(seed)) == whole


@dataclass
class Flapping(DividedChanges):
    """Links of :func:`pair`: of either part one that is dead for good, and one that never rests."""

    number: Any

    def __iter__(self) -> Iterator[LinkChange]:
        for time in count():
            for link, period in ((0, 0), (1, 0), (2, 2), (4, 3)):
                name = int(self.number[link])
                if name >= 0 and (time % period == 0 if period else time == 0):
                    yield LinkChange(time, name, 1e9 * (1 + time % 4) if period else 0.0)

    def only(self, number: Any) -> Flapping:
        return Flapping(number)


def test_changes_that_never_end_in_both_parts_do_not_keep_dead_flows_going() -> None:
    """Neither part has to wait for the other's changes; some of them come at one instant."""
    network = CompiledHybridNetwork(FairShareNetwork(), FairShareNetwork())
    network.open(replace(pair(), changes=LinkChanges(Flapping(np.arange(6)))))
    stuck = batch([one_flow(0, 1), one_flow(1, 2, 1)], [(0, 0, 5, 0), (1, 0, 5, 0)])
    assert network.advance(stuck, 10).granted_ps == 10
    step = network.advance(batch(), NEVER)
    assert (step.granted_ps, len(step.completions), network.has_work()) == (NEVER, 0, False)
