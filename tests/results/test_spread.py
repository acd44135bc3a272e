"""Bytes put back to when a link carried them: closed forms, and messages that say when it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cosim
from cosim.results.link_users import link_users
from cosim.results.spread import sent_over, spread

TWO = """
topology: {kind: leaf_spine, leaves: 2, spines: 1, endpoints_per_leaf: 2, rate: 100Gbps, latency: 500ns}
network: fair_share
jobs:
  - name: one
    workload: {kind: periodic, compute: 3ms, size: 40MB}
    iterations: 4
    placement: {kind: explicit, endpoints: [0, 2]}
  - name: two
    workload: {kind: periodic, compute: 1ms, size: 25MB}
    iterations: 6
    placement: {kind: explicit, endpoints: [1, 3]}
"""


EDGES = np.arange(7) * 10
RATE = np.array([8e12])  # a byte a picosecond


def sent(arrived: np.ndarray, busy: np.ndarray, bin_ps: int = 10, end_ps: int = 60) -> list[list[int]]:
    edges = EDGES[: arrived.shape[1] + 1]
    found: list[list[int]] = sent_over(arrived, busy[:, None], bin_ps, RATE, edges, end_ps).tolist()
    return found


def test_one_behind_the_other() -> None:
    arrived = np.array([[0, 0, 0, 40, 0, 0], [0, 0, 0, 0, 0, 20]])
    assert sent(arrived, np.full(6, 10)) == [[10, 10, 10, 10, 0, 0], [0, 0, 0, 0, 10, 10]]


def test_side_by_side_as_a_link_is_shared_evenly() -> None:
    # Both begin at 0 and have half each, until the smaller has arrived after four bins.
    arrived = np.array([[0, 0, 0, 20, 0, 0], [0, 0, 0, 0, 0, 40]])
    assert sent(arrived, np.full(6, 10)) == [[5, 5, 5, 5, 0, 0], [5, 5, 5, 5, 10, 10]]


def test_headers_and_links_that_were_not_busy() -> None:
    assert sent(np.array([[0, 0, 9]]), np.array([5, 0, 5])) == [[4, 0, 4]]  # 4.5 each, and half a byte even
    assert sent(np.array([[0, 7]]), np.zeros(2)) == [[0, 0]]
    assert spread(np.zeros((0, 3), np.int64), [np.ones(3)]).shape == (0, 3)


def test_a_links_bins_may_be_others() -> None:
    assert sent(np.array([[0, 0, 0, 30]]), np.array([20, 10]), bin_ps=20) == [[10, 10, 5, 5]]
    assert sent(np.array([[0, 0, 0, 30]]), np.array([30]), bin_ps=40, end_ps=30) == [[10, 10, 10, 0]]
    # Too coarse to say when: back from the arrival, at the link's rate.
    assert sent(np.array([[0, 0, 0, 0, 25, 0]]), np.array([25]), bin_ps=80) == [[0, 0, 5, 10, 10, 0]]


def test_a_link_never_carries_more_than_its_rate_and_all_that_arrived() -> None:
    run = cosim.run(TWO, messages=True)
    known, found = link_users(run.records), link_users(replace(run.records, messages=None))
    assert known is not None
    assert found is not None
    assert set(found.shared_job.tolist()) == {0, 1}
    traffic = run.records.traffic
    most = run.records.topology.link_rate_bps * traffic.bin_ps / 8e12
    for users in (known, found):
        for link in np.unique(users.shared_link):
            mine = users.shared_sent_bytes[users.shared_link == link]
            assert (mine.sum(axis=0) <= most[link] * (1 + 1e-9) + 2).all()
            assert mine.sum() == pytest.approx(run.records.links.link_bytes[link], rel=0.001)
    # Messages say who it was where they are kept: less than a tenth of what was put back is in another bin.
    moved = np.abs(known.shared_sent_bytes - found.shared_sent_bytes).sum() / 2
    assert moved < 0.1 * known.shared_sent_bytes.sum()
    # Booked on arrival, the link would have carried more than it can.
    assert traffic.size_bytes.sum(axis=1).max() > 1.5 * most.max()
