"""Sums of times that leave 64 bits are as Python adds them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import cosim
from cosim.results.sums import ExactSums, exact_sum
from cosim.units import PS_PER_S

_VALUES = st.integers(-(1 << 63), (1 << 63) - 1)
_FIFTY_DAYS_PS = 50 * 86_400 * PS_PER_S


@given(st.lists(st.tuples(st.integers(0, 3), _VALUES)))
def test_each_sum_is_python_s(given: list[tuple[int, int]]) -> None:
    places, values = (np.array([one[k] for one in given], np.int64) for k in (0, 1))
    sums = ExactSums(4)
    sums.add(places[:1], values[:1])
    sums.add(places[1:], values[1:])
    right = [sum(value for place, value in given if place == wanted) for wanted in range(4)]
    assert sums.total().tolist() == right
    assert exact_sum(values) == sum(right)


def test_what_a_rank_computes_at_once_for_weeks_is_summed() -> None:
    """ASTRA-sim's exposed time is the span less all computations, which here run beside each other."""
    work = [{"name": f"w{k}", "kind": "compute", "duration": "50d", "stream": f"s{k}"} for k in range(3)]
    fabric = {"topology": {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"}}
    workload = {"kind": "operations", "world_size": 1, "programs": [{"operations": work}]}
    done = cosim.run({**fabric, "network": "fair_share", "jobs": [{"workload": workload}]})
    (job,) = done.summary.jobs
    assert job.compute.max_ps == _FIFTY_DAYS_PS
    assert job.exposed_astra.min_ps == -2 * _FIFTY_DAYS_PS
    assert "4320000 s" in str(done)
