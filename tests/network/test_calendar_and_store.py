"""The kernel's own parts, against lists and dictionaries."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.errors import NetworkError
from cosim.kernel import kernel
from cosim.network.core import ChannelNumbers
from cosim.network.flows import ON_COMPLETION, FlowGroup, FlowTable, flat_table
from cosim.network.store import COMPLETED, STARTED, FlowStore
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing.strategies.traffic import tables
from cosim.units import NEVER
from tests.network.worlds import batch, graph, unrolled

many = settings(max_examples=60, deadline=None)


@many
@given(st.lists(st.tuples(st.one_of(st.integers(0, 40), st.integers(0, 2**61)), st.booleans()), max_size=200))
def test_calendar_hands_out_whole_instants_in_order(steps: list[tuple[int, bool]]) -> None:
    """A number is pushed as a time, unless it is over; True runs the next instant."""
    network = CongestionUnawareNetwork()
    network.open(graph(2, 2, [(0, 1, 1e9, 0)]))
    table = flat_table([0] * 200, [0] * 200, [0] * 200, reaction_ps=NEVER)
    network.advance(batch([FlowGroup(0, table, np.zeros(1, np.int32), (0, 0))], []), 0)
    calendar = network.core.calendar
    model: dict[int, list[int]] = defaultdict(list)
    now = -1
    for tag, (time, runs) in enumerate([*steps, *[(0, True)] * len(steps)]):
        if time > now and tag < len(steps):
            network.advance(batch([], [(0, tag, time, time)]), max(now, 0))
            model[time].append(tag)
        if runs and model:
            now = min(model)
            assert calendar.heap[0]["time"] == now
            done = network.advance(batch(), now + 1).completions
            assert done.index.tolist() == model.pop(now)
            now += 1
        assert calendar.state["num_instants"][0] == len(model)
        assert calendar.state["num_events"][0] == sum(map(len, model.values()))


@many
@given(tables(3))
def test_store_releases_each_flow_at_its_last_dependency_plus_delay(table: FlowTable) -> None:
    """Flows take a random time each; the store's starts are those of a walk over the unrolled table."""
    take_ps = {f: (f * 7919) % 13 * 100 for f in range(table.num_flows)}
    flat = unrolled(table)
    start: dict[int, int] = {}
    cause: dict[int, int] = {}
    for flow in range(flat.num_flows):
        edges = range(flat.dep_ptr[flow], flat.dep_ptr[flow + 1])
        before = []
        for e in edges:
            other = flow - int(flat.dep_distance[e])
            ended = start[other] + take_ps[other]
            before.append(ended if flat.dep_kind[e] == ON_COMPLETION else start[other])
        cause[flow] = max(before, default=0)
        start[flow] = cause[flow] + (int(flat.delay_ps[flow]) if before else 0)

    store = FlowStore()
    store.open(FlowGroup(0, table, np.zeros(3, np.int32), (0, 0)))
    given_ones = [f for f in range(flat.num_flows) if flat.dep_ptr[f] == flat.dep_ptr[f + 1]]
    got = dict.fromkeys(given_ones, 0)
    causes = dict.fromkeys(given_ones, 0)
    waiting = [(f, COMPLETED) for f in given_ones] + [(f, STARTED) for f in given_ones]
    while waiting:
        flow, kind = waiting.pop((len(waiting) * 31) // 57)
        rep, row = store.locate(np.zeros(1, np.int32), np.array([flow]))
        time = got[flow] + (take_ps[flow] if kind == COMPLETED else 0)
        at = np.array([0], np.int32), rep, row, np.array([time])
        kernel.note_flows(store.columns, 1, *at, kind)
        more = True
        while more:
            more = kernel.drain_some(store.columns) != 0
            columns = store.columns
            out = columns.released[: int(columns.state["num_released"][0])].copy()
            columns.state["num_released"] = 0
            for one in out:
                place = columns.reps[one["rep"]]
                made = int(place["base"] + one["row"] - place["row"])
                assert made not in got
                got[made], causes[made] = int(one["start"]), int(one["cause"])
                waiting.append((made, COMPLETED))
    assert got == start
    assert causes == cause
    store.close(0)
    assert store.open_handles() == []


def test_store_uses_a_table_and_its_pages_again() -> None:
    store = FlowStore()
    table = flat_table([0] * 100, [1] * 100, [1] * 100)
    sizes = set()
    for number in (0, 1, 0, 1, 0):
        store.open(FlowGroup(number, table, np.zeros(2, np.int32), (0, 0)))
        store.close(number)
        view = store.columns
        sizes.add((len(view.rows), len(view.reps), len(view.pages), len(view.cells)))
    assert len(sizes) == 1


def test_store_finds_flows_of_many_groups() -> None:
    store = FlowStore()
    table = flat_table([0] * 5, [1] * 5, [1] * 5)
    for number in range(4):
        store.open(FlowGroup(number, table, np.zeros(2, np.int32), (0, 0)))
    handle, index = np.array([3, 0, 3, 1, 0], np.int32), np.array([4, 0, 1, 2, 3])
    rep, row = store.locate(handle, index)
    assert row.tolist() == index.tolist()
    assert rep.tolist() == [0] * 5
    with pytest.raises(NetworkError, match="unknown group handle 9"):
        store.locate(np.array([0, 9], np.int32), np.array([0, 0]))
    assert [len(c) for c in store.locate(np.zeros(0, np.int32), np.zeros(0, np.int64))] == [0, 0]


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(*[st.integers(0, 3)] * 4), max_size=60), max_size=8))
def test_channels_are_numbered_by_job_ends_and_channel(
    batches: list[list[tuple[int, int, int, int]]],
) -> None:
    numbers = ChannelNumbers()
    known: dict[tuple[int, int, int, int], int] = {}
    for rows in batches:
        for job in range(4):
            mine = [r for r in rows if r[0] == job]
            columns = [np.array([r[k] for r in mine], np.int32) for k in (1, 2, 3)]
            got = numbers.number(job, *columns).tolist()
            assert got == [known.setdefault(r, len(known)) for r in mine]
    assert len(numbers) == len(known)


@pytest.mark.parametrize(
    ("remaining", "rate", "expected"),
    [
        (1_000.0, 0.001, 1_000_000),  # whole picoseconds stay whole
        (1_000.0, 0.001 / 3, 3_000_000),
        (1_000.0, 0.003, 333_334),  # a third of one is rounded up
        (1e-9, 1.0, 1),  # something is left: not now
        (1.0, 0.0, NEVER),
        (1e9, 1e-12, NEVER),
    ],
)
def test_drains_are_rounded_up_but_dust_is_not(remaining: float, rate: float, expected: int) -> None:
    assert kernel.when_drained(0, remaining, rate) == expected
    assert kernel.when_drained(5, remaining, rate) == min(expected + 5, NEVER)
