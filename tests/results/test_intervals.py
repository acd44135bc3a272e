from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cosim.results.intervals import lanes, time_in_states

INTERVAL = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 40), st.integers(0, 15))


def columns(rows: list[tuple[int, int, int, int]]) -> tuple[np.ndarray, ...]:
    key, layer, start, length = np.array(rows, np.int64).reshape(-1, 4).T
    return key, layer.astype(np.int8), start, start + length


@given(st.lists(INTERVAL, max_size=40))
def test_time_in_states_equals_counting_every_instant(rows: list[tuple[int, int, int, int]]) -> None:
    key, layer, start, end = columns(rows)
    expected = np.zeros((4, 8), np.int64)
    for k in range(4):
        for t in range(60):
            on = (key == k) & (start <= t) & (t < end)
            state = sum(1 << bit for bit in range(3) if (on & (layer == bit)).any())
            expected[k, state] += state > 0
    np.testing.assert_array_equal(time_in_states(key, layer, start, end, 4, 3), expected)


@given(st.lists(INTERVAL, min_size=1, max_size=20), st.sampled_from([1, 10**17]))
def test_late_times_and_many_keys_stay_exact(rows: list[tuple[int, int, int, int]], late: int) -> None:
    key, layer, start, end = columns(rows)
    plain = time_in_states(key, layer, start, end, 4, 3)
    # 1e17 ps apart over four thousand keys overflow one combined sorting key.
    far = time_in_states(key * 1000, layer, start * late, end * late, 4000, 3)
    np.testing.assert_array_equal(far[::1000], plain * late)


@given(st.lists(INTERVAL, max_size=30))
def test_lanes_never_overlap_and_are_as_few_as_possible(rows: list[tuple[int, int, int, int]]) -> None:
    _, _, start, end = columns(rows)
    end = np.maximum(end, start + 1)
    lane = lanes(start, end)
    for k in set(lane.tolist()):
        mine = np.argsort(start[lane == k])
        assert (start[lane == k][mine][1:] >= end[lane == k][mine][:-1]).all()
    at_once = max((int(((start <= t) & (t < end)).sum()) for t in start), default=0)
    assert int(lane.max(initial=-1)) + 1 == at_once
