"""The same messages, sent when something arrived or when a recording says."""

from __future__ import annotations

import pytest

import cosim

SLOW = """
topology:
  kind: graph
  endpoints: [a, b, c, d]
  switches: [hub]
  links:
    - {from: a, to: hub, rate: 100Gbps, latency: 1us}
    - {from: b, to: hub, rate: 100Gbps, latency: 1us}
    - {from: c, to: hub, rate: 100Gbps, latency: 1us}
    - {from: d, to: hub, rate: 25Gbps, latency: 1us}
network: fair_share
jobs:
  - name: train
    workload:
      {kind: periodic, compute: 1ms, communication: all_reduce, size: 10MB, ranks: 2}
    iterations: 3
    placement: {kind: explicit, endpoints: [0, 3]}
collectives: {all_reduce: ring}
"""
HEALTHY = "topology.links[3].rate=100Gbps"


def test_without_changes_both_loops_are_the_same() -> None:
    [job] = cosim.study("open_loop", SLOW).jobs
    assert job.open_ps == job.closed_ps == job.recorded_ps
    assert job.fct_open_ps == job.fct_closed_ps
    assert job.early == 0


def test_an_open_loop_does_not_hold_back_what_waits_for_the_slow_link() -> None:
    loops = cosim.study({"kind": "open_loop", "changes": [HEALTHY]}, SLOW)
    [job] = loops.jobs
    # Closed: computation, then two steps of 5 MB at 25 Gb/s: 1 + 2 x 1.6 ms.
    assert job.closed_ps == pytest.approx([4.2e9] * 3, rel=0.005)
    assert job.recorded_ps == pytest.approx([1.8e9] * 3, rel=0.005)
    # Open: the slow link works through its backlog without a pause for computation.
    assert job.open_ps == pytest.approx([1e9 + 3.2e9, 3.2e9, 3.2e9], rel=0.1)
    assert sum(job.open_ps) < 0.9 * sum(job.closed_ps)
    assert job.early > 0.5
    assert job.fct_open_ps[-1] > 2 * job.fct_closed_ps[-1]  # the longest
    assert "the open loop says" in str(loops)
