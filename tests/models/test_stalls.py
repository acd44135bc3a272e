"""What a GPU's queue hides of its host's stops, beside closed forms and a host that is stopped by hand."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.models.frameworks import PyTorch
from cosim.models.stalls import seen
from cosim.workload.program import COMPUTE_STREAM, CPU_STREAM, Operation, OpKind, Program

Kernels = list[tuple[int, int, bool]]
"""Of each: picoseconds to issue it, to compute it, and whether the host then waits for it."""


def program(kernels: Kernels) -> Program:
    """A rank that issues them one after the other."""
    made: list[Operation] = []
    waited: tuple[int, ...] = ()
    for issue, takes, waits in kernels:
        made.append(Operation("issued", OpKind.COMPUTE, CPU_STREAM, waited, duration_ps=issue))
        launch = len(made) - 1
        made.append(Operation("kernel", OpKind.COMPUTE, COMPUTE_STREAM, (launch,), duration_ps=takes))
        waited = (launch + 1,) if waits else ()
    return Program("rank", tuple(made))


def end(kernels: Kernels, moment: float = 0, length: float = 0) -> float:
    """When all is done and the host there, where it does nothing from ``moment`` on for ``length``."""
    resumed = moment + length
    host = gpu = 0.0
    for issue, takes, waits in kernels:
        if moment <= host < resumed:
            host = resumed
        host += issue + (length if host < moment < host + issue else 0)
        gpu = max(gpu, host) + takes
        if waits:
            host = max(host, gpu)
    return max(gpu, resumed) if moment < gpu else gpu


def test_a_host_that_is_never_ahead_hides_nothing() -> None:
    """Each kernel waited for, and gone as soon as it is issued."""
    assert seen([program([(1000, 0, True)] * 5)], 100) == 1


def test_all_given_at_once() -> None:
    """A queue of ``whole`` at the start: stops are seen as it runs out."""
    whole, length = 1000, 300
    expected = length / whole * (1 - exp(-whole / length))
    assert seen([program([(0, 100, False)] * 10)], length) == pytest.approx(expected, rel=1e-8)


def test_stops_of_no_length_to_speak_of_are_hidden_and_length_zero_hides_nothing() -> None:
    queued = program([(0, 10**9, False)] * 10)
    assert seen([queued], 1) == pytest.approx(0, abs=1e-8)
    assert seen([queued], 0) == 1
    assert PyTorch(stalls=0.001).stretch(1, lambda: [queued]) == 1
    assert PyTorch().stretch(512, lambda: pytest.fail("nothing stalls")) == 1


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(10, 60), st.booleans()), min_size=2, max_size=10),
    st.integers(10, 200),
)
def test_stopped_by_hand(kernels: Kernels, length: int) -> None:
    """Stops of every length at every moment: how much later all ends, on average.

    The GPU is slower than its host throughout, so that whatever it waits for makes all end later.
    """
    normal, step = end(kernels), length / 10
    lengths = np.arange(step / 2, 14 * length, step)  # the middles of pieces, of lengths and of moments
    likely = np.exp(-lengths / length)
    late = [
        np.average([end(kernels, moment + 0.5, each) - normal for each in lengths.tolist()], weights=likely)
        for moment in range(int(normal))
    ]
    assert seen([program(kernels)], length) == pytest.approx(np.mean(late) / length, abs=0.02)
