"""The seam: misuse has names, statistics add up, and what stands in front of a network keeps the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.errors import CausalityError, NetworkError
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.compiled import CompiledNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import ON_COMPLETION, FlowGroup, FlowTable, flat_table, pack_key
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing.faulty import FaultyNetwork
from cosim.testing.recorder import Player, Recorder
from cosim.testing.strategies.traffic import Traffic as World
from cosim.testing.strategies.traffic import traffic as worlds
from cosim.topology.graph import Topology
from cosim.units import NEVER, PS_PER_US
from tests.network.worlds import batch, drive, drive_by_caller, graph

Model = Callable[[], CompiledNetwork]
MODELS: list[Model] = [CongestionUnawareNetwork, CongestionAwareNetwork, FairShareNetwork]
every_model = pytest.mark.parametrize("model", MODELS)
some = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
PAIR = np.array([0, 1], np.int32)


def line() -> Topology:
    return graph(2, 2, [(0, 1, 8e9, 1_000_000), (1, 0, 8e9, 1_000_000)])


def opened(model: Model) -> CompiledNetwork:
    network = model()
    network.open(line())
    return network


def group(handle: int = 0, table: FlowTable | None = None) -> FlowGroup:
    return FlowGroup(handle, table or flat_table([0], [1], [1_000]), PAIR, pack_key(0, 0, handle, 0))


@every_model
def test_a_flow_in_the_past_is_refused(model: Model) -> None:
    network = opened(model)
    network.advance(batch([group()]), 500)
    with pytest.raises(CausalityError, match=r"499 ps.*500 ps had been granted"):
        network.advance(batch((), [(0, 0, 499, 0)]), 1_000)


@every_model
def test_what_two_participants_on_one_endpoint_send_arrives_at_once(model: Model) -> None:
    network = opened(model)
    table = flat_table([0, 0, 0], [1, 1, 2], [1_000, 2_000, 1_000])
    three = FlowGroup(0, table, np.array([0, 0, 1], np.int32), pack_key(0, 0, 0, 0))
    done: dict[int, int] = {}
    flows = batch([three], [(0, 0, 5_000, 0), (0, 1, 5_000, 0), (0, 2, 5_000, 0)])
    for _ in range(8):
        _, completions = network.advance(flows, NEVER)
        done |= dict(zip(completions.index.tolist(), completions.time_ps.tolist(), strict=True))
        flows = batch()
    assert done == {0: 5_000, 1: 5_000, 2: 5_000 + 2 * PS_PER_US}  # 1,000 bytes at 1 byte/ns, and 1 us
    assert network.statistics().link_bytes.tolist() == [1_000, 0]


@every_model
def test_time_does_not_go_back(model: Model) -> None:
    network = opened(model)
    network.advance(batch(), 500)
    with pytest.raises(CausalityError, match="horizon 499"):
        network.advance(batch(), 499)


@every_model
def test_handles_and_indices_must_be_known(model: Model) -> None:
    network = opened(model)
    network.advance(batch([group()]), 0)
    with pytest.raises(NetworkError, match="unknown group handle 7"):
        network.advance(batch((), [(7, 0, 0, 0)]), 0)
    with pytest.raises(NetworkError, match="beyond the 1 flows of group 0"):
        network.advance(batch((), [(0, 1, 0, 0)]), 0)


@every_model
def test_a_handle_is_free_again_when_its_flows_completed(model: Model) -> None:
    network = opened(model)
    network.advance(batch([group()]), 0)
    with pytest.raises(NetworkError, match="handle 0 is still in use"):
        network.advance(batch([group()]), 0)
    step = network.advance(batch((), [(0, 0, 0, 0)]), NEVER)
    assert len(step.completions) == 1
    again = network.advance(batch([group()], [(0, 0, step.granted_ps, 0)]), NEVER)
    assert len(again.completions) == 1


@every_model
def test_only_given_flows_may_be_given(model: Model) -> None:
    table = replace(
        flat_table([0, 0], [1, 1], [1, 1]),
        dep_ptr=np.array([0, 0, 1]),
        dep_distance=np.array([1]),
        dep_kind=np.array([ON_COMPLETION], np.int8),
    )
    with pytest.raises(NetworkError, match="flow 1 of group 0 was given, but has dependencies"):
        opened(model).advance(batch([group(table=table)], [(0, 1, 0, 0)]), 0)


@every_model
def test_a_network_is_opened_once_and_used_between_open_and_close(model: Model) -> None:
    with pytest.raises(NetworkError, match="needs an open network"):
        model().advance(batch(), 0)
    network = opened(model)
    with pytest.raises(NetworkError, match="opened once"):
        network.open(line())
    network.close()
    network.close()
    with pytest.raises(NetworkError, match="needs an open network"):
        network.advance(batch(), 0)
    with pytest.raises(NetworkError, match="no options; got speed"):
        model().open(line(), options={"speed": 1})
    with pytest.raises(NetworkError, match="peek needs an open network"):
        network.peek()


@every_model
def test_a_table_needs_as_many_endpoints_as_it_has_participants(model: Model) -> None:
    three = FlowGroup(0, flat_table([0], [2], [1]), PAIR, (0, 0))
    with pytest.raises(NetworkError, match="3 participants was bound to 2 endpoints"):
        opened(model).advance(batch([three]), 0)


@every_model
def test_the_network_stops_where_the_caller_may_react(model: Model) -> None:
    network = opened(model)
    table = flat_table([0, 0], [1, 1], [1_000, 1_000], reaction_ps=3 * PS_PER_US)
    first = network.advance(batch([group(table=table)], [(0, 0, 0, 0), (0, 1, 10**12, 0)]), NEVER)
    assert first.completions.time_ps.tolist() == [2 * PS_PER_US]
    assert first.granted_ps == 5 * PS_PER_US


@every_model
def test_bins_double_as_time_goes_on_and_keep_their_sums(model: Model) -> None:
    network = opened(model)
    before = network.statistics()
    far = before.bin_ps * len(before.busy_ps) * 5
    starts = [0, before.bin_ps // 1_000 * 1_000, far // 3_000_000 * 1_000_000, far // 1_000 * 1_000]
    table = flat_table([0] * 4, [1] * 4, [1_000] * 4)
    network.advance(batch([group(table=table)], [(0, k, t, t) for k, t in enumerate(starts)]), 0)
    widths = set()
    while (step := network.advance(batch(), NEVER)).granted_ps < NEVER:
        seen = network.statistics()
        widths.add(seen.bin_ps)
        assert seen.busy_ps.sum() == PS_PER_US * seen.flows_started
        assert len(step.completions) <= 1
    assert len(widths) > 1


@pytest.mark.parametrize("late_ps", [1, 999, PS_PER_US])
def test_a_faulty_network_lets_one_completion_come_late(late_ps: int) -> None:
    network = FaultyNetwork(CongestionAwareNetwork(), {(0, 1): late_ps})
    network.open(line())
    assert not network.describe().dependent_flows
    table = flat_table([0, 0, 0], [1, 1, 1], [1_000] * 3)
    start = batch([FlowGroup(0, table, PAIR, (0, 0), release="caller")], [(0, k, 0, 0) for k in range(3)])
    times: dict[int, int] = {}
    granted = 0
    while len(times) < 3:
        granted, done = network.advance(start, NEVER)
        start = batch()
        times |= dict(zip(done.index.tolist(), done.time_ps.tolist(), strict=True))
        assert all(time <= granted for time in times.values())
        # Zero reaction: it never runs past a completion that it reports.
        assert not len(done) or granted == int(done.time_ps.min())
    assert times == {0: 2 * PS_PER_US, 1: 3 * PS_PER_US + late_ps, 2: 4 * PS_PER_US}
    assert network.applied == [((0, 1), 3 * PS_PER_US, 3 * PS_PER_US + late_ps)]
    network.close()


@some
@given(world=worlds(), chosen=st.integers(0, 20))
def test_a_late_completion_moves_what_depends_on_it(world: World, chosen: int) -> None:
    plain = drive_by_caller(CongestionAwareNetwork(), world)
    handle, index = sorted(plain)[chosen % len(plain)]
    key = world.groups[handle].key[0], world.groups[handle].key[1] + index
    late = 10**9
    moved = drive_by_caller(FaultyNetwork(CongestionAwareNetwork(), {key: late}), world)
    assert moved.keys() == plain.keys()
    assert moved[handle, index][1] == plain[handle, index][1] + late
    assert moved[handle, index][0] == plain[handle, index][0]
    assert drive_by_caller(FaultyNetwork(CongestionAwareNetwork(), {key: 0}), world) == plain
    # Whatever waits for it starts after it.
    table = world.groups[handle].table
    rows = table.row_of(np.arange(table.num_flows, dtype=np.int64))
    for flow, row in enumerate(rows.tolist()):
        edges = range(table.dep_ptr[row], table.dep_ptr[row + 1])
        if any(flow - table.dep_distance[e] == index and table.dep_kind[e] == ON_COMPLETION for e in edges):
            assert moved[handle, flow][0] >= moved[handle, index][1] + table.delay_ps[row]


def test_a_faulty_network_refuses_to_release_or_to_be_early() -> None:
    with pytest.raises(NetworkError, match="5 ps early"):
        FaultyNetwork(CongestionAwareNetwork(), {(0, 0): -5})
    network = FaultyNetwork(CongestionAwareNetwork(), {})
    network.open(line())
    table = replace(
        flat_table([0, 0], [1, 1], [1, 1]),
        dep_ptr=np.array([0, 0, 1]),
        dep_distance=np.array([1]),
        dep_kind=np.array([ON_COMPLETION], np.int8),
    )
    with pytest.raises(NetworkError, match="does not release flows: group 0"):
        network.advance(batch([group(table=table)]), NEVER)


@some
@given(world=worlds())
def test_a_recording_plays_back(world: World) -> None:
    recorder = Recorder(FairShareNetwork())
    result = drive(recorder, world)
    assert drive(Player(recorder.recording), world) == result


def recorded() -> Recorder:
    recorder: Recorder = Recorder(CongestionAwareNetwork())
    recorder.open(line())
    recorder.advance(batch([group()], [(0, 0, 5, 0)]), 1_000)
    recorder.statistics()
    recorder.close()
    return recorder


def test_a_player_names_the_first_difference() -> None:
    recording = recorded().recording
    asked = {
        r"new groups is \[1\], recorded was \[0\]": (batch([group(1)], [(0, 0, 5, 0)]), 1_000),
        "number of starts is 0, recorded was 1": (batch([group()]), 1_000),
        r"start .* is \(0, 0, 6, 0\), recorded was \(0, 0, 5, 0\)": (
            batch([group()], [(0, 0, 6, 0)]),
            1_000,
        ),
        "horizon is 999 ps, recorded was 1000 ps": (batch([group()], [(0, 0, 5, 0)]), 999),
        "weight of group 0 is 2.0": (batch([replace(group(), weight=2.0)], [(0, 0, 5, 0)]), 1_000),
        r"size_bytes in the table of group 0 is \[7\]": (
            batch([group(table=flat_table([0], [1], [7]))], [(0, 0, 5, 0)]),
            1_000,
        ),
    }
    for message, (flows, horizon) in asked.items():
        player: NetworkSimulator = Player(recording)
        player.open(line())
        with pytest.raises(NetworkError, match=f"call 0 differs: .*{message}"):
            player.advance(flows, horizon)
    player = Player(recording)
    assert player.advance(batch([group()], [(0, 0, 5, 0)]), 1_000).granted_ps == 1_000
    assert player.statistics().flows_started == 1
    with pytest.raises(NetworkError, match="call 1 is beyond the 1"):
        player.advance(batch(), NEVER)
    with pytest.raises(NetworkError, match="no statistics"):
        Player(replace(recording, statistics=None)).statistics()
