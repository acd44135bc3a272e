"""Streams, events and groups, without torch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.errors import WorkloadError
from cosim.profiler.axes import NamedDim, grid, group_axes, infer_mesh, offset, positions
from cosim.profiler.ordering import Ordering


def test_a_stream_is_in_order_and_an_event_orders_two() -> None:
    order = Ordering()
    a = order.issue("compute")
    b = order.issue("compute")
    order.record(7, "compute")
    c = order.issue("compute")
    order.block(7, "copy")
    d = order.issue("copy")
    assert [order.deps[n] for n in (a, b, c, d)] == [(), (a,), (b,), (b,)]


def test_what_follows_anyway_is_left_out() -> None:
    order = Ordering()
    a = order.issue("compute")
    b = order.issue("comm", [a])
    order.wait("compute", [b])
    c = order.issue("compute")
    d = order.issue("comm", [a, c])
    assert order.deps[c] == (a, b)
    assert order.deps[d] == (b, c)
    assert order.covers("compute", b)


def test_a_host_that_waits_holds_up_every_stream() -> None:
    order = Ordering()
    a = order.issue("one")
    b = order.issue("two")
    order.host_waits(order.before("one"))
    c = order.issue("three")
    assert order.deps[c] == (a,)
    order.host_waits(order.latest())
    d = order.issue("four")
    assert set(order.deps[d]) == {b, c}, "the third ran after the first"


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["issue", "record", "block", "host"])), max_size=40)
)
def test_dependencies_that_are_left_out_follow(calls: list[tuple[int, str]]) -> None:
    order = Ordering()
    whole: list[set[int]] = []  # of each operation everything that it runs after, worked out naively
    events: dict[int, set[int]] = {}
    waits: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    last: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    host: set[int] = set()
    for stream, call in calls:
        name = str(stream)
        if call == "issue":
            after = waits[stream] | last[stream] | host
            after |= {m for n in after for m in whole[n]}
            whole.append(after)
            last[stream] = {order.issue(name)}
        elif call == "record":
            order.record(0, name)
            events[0] = waits[stream] | last[stream]
        elif call == "block":
            order.block(0, name)
            waits[stream] |= events.get(0, set())
        else:
            order.host_waits(order.before(name))
            host |= waits[stream] | last[stream]
    for number, after in enumerate(whole):
        found = set(order.deps[number])
        for dep in sorted(found, reverse=True):
            found |= whole[dep]
        assert found == after


def test_groups_become_axes() -> None:
    tensor, data, stages = tuple(range(8)), tuple(range(0, 64, 8)), (0, 64, 128, 192)
    mesh = infer_mesh(256, [tensor, data, stages], [NamedDim("pp", 64, 4), NamedDim("tp", 1, 8)])
    assert dict(mesh.axes) == {"pp": 4, "axis8": 8, "tp": 8}
    assert group_axes(mesh, tensor) == ("tp",)
    assert group_axes(mesh, tuple(range(64))) == ("axis8", "tp")
    assert group_axes(mesh, (0, 8)) is None
    assert positions(mesh, (3, 195)) == ("pp", (0, 3))
    assert offset(mesh, 64, 0) == ("pp", -1)
    assert offset(mesh, 0, 9) is None
    assert grid((0, 1, 8, 9)) == [(8, 2), (1, 2)]
    assert grid((0, 1, 3)) is None


def test_groups_that_do_not_nest_are_refused() -> None:
    with pytest.raises(WorkloadError, match="do not nest"):
        infer_mesh(12, [(0, 1, 2, 3), (0, 1, 2)], [])
