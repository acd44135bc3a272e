"""Which hosts a group is on doesn't hang on their numbers."""

from __future__ import annotations

import numpy as np
import pytest

import cosim
from cosim.engine.programs import grid_dims

HOSTS = """
topology:
  kind: leaf_spine
  leaves: 4
  spines: 1
  endpoints_per_leaf: 8
  latency: 500ns
  hosts: {gpus: 8, nvlink_rate: 450GB/s, nvlink_latency: 300ns, nics: 8, nic_rate: 400Gbps}
network: fair_share
jobs:
  - workload: {kind: collective, collective: all_reduce, ranks: 16, size: 64MiB}
"""


@pytest.mark.parametrize(
    ("endpoints", "dims"),
    [
        ([6, 14, 22, 30], (1, 4)),
        ([46, 14, 22, 6], (1, 4)),
        ([40, 41, 0, 1], (2, 2)),
        ([1, 0, 9, 8], (2, 2)),
        ([0, 1, 9, 8], None),  # not the same order in both hosts
        ([0, 8, 1, 9], None),  # hosts in turns
        ([0, 1, 8], None),
    ],
)
def test_a_full_grid_has_any_order_along_each_dimension(
    endpoints: list[int], dims: tuple[int, ...] | None
) -> None:
    assert grid_dims(np.array(endpoints, np.int32), (8, 8)) == dims


def test_an_all_reduce_takes_as_long_on_hosts_in_another_order() -> None:
    first = [*range(16)]
    other = [*range(24, 32), *range(8)]
    times = [
        cosim.run(HOSTS, {"jobs[0].placement": {"kind": "explicit", "endpoints": one}}).records.end_ps
        for one in (first, other)
    ]
    assert times[0] == times[1]
