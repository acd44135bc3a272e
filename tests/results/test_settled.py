"""Which iterations a job's mean is of, where iterations overlap."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.results.summary import settled
from cosim.workload.program import Operation, OpKind, Workload
from tests.engine.worlds import workload


def with_lag(lag: int) -> Workload:
    one = Operation("step", OpKind.COMPUTE, duration_ps=1)
    return workload([replace(one, lagged=((0, lag),)) if lag else one])


def test_without_lags_it_is_all() -> None:
    assert settled(np.array([9, 1, 1]), with_lag(0)).tolist() == [9, 1, 1]


def test_filling_and_draining_are_left_out() -> None:
    times = np.array([90, 50, 20, 7, 7, 7, 7, 7, 7, 3])
    assert settled(times, with_lag(1)).tolist() == [7]


def test_of_what_repeats_it_is_one_repetition() -> None:
    times = np.array([100, 80, 60] + [4, 9, 2] * 5 + [1, 1])
    assert sorted(settled(times, with_lag(2)).tolist()) == [2, 4, 9]


def test_of_what_does_not_repeat_it_is_the_rest_of_the_second_half() -> None:
    assert settled(np.arange(1, 13) ** 2, with_lag(2)).tolist() == [49, 64, 81, 100]


def test_few_iterations_are_the_second_half() -> None:
    assert settled(np.array([5, 4, 3]), with_lag(2)).tolist() == [4, 3]
