"""Who used a link: pairs whose bytes add up to the link's own counters, or nothing."""

from __future__ import annotations

import numpy as np

import cosim
from cosim.results.link_users import MOST_OF_A_LINK, link_users

TEXT = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 500ns}
network: fair_share
jobs:
  - {name: a, workload: {kind: collective, collective: all_to_all, ranks: 4, size: 4MB}, placement: spread}
  - {name: b, workload: {kind: collective, collective: all_to_all, ranks: 4, size: 2MB}, placement: spread}
"""


def test_pairs_of_a_link_add_up_to_what_it_carried() -> None:
    records = cosim.run(TEXT).records
    found = link_users(records)
    assert found is not None
    few = found.pairs <= MOST_OF_A_LINK
    assert few.any()
    sums = np.bincount(found.link, weights=found.size_bytes, minlength=len(few))
    assert np.array_equal(sums[few], records.links.link_bytes[few])
    assert (sums <= records.links.link_bytes).all()
    assert np.bincount(found.link).max() <= MOST_OF_A_LINK + 1  # the other job's largest
    shared = np.flatnonzero(found.pairs > MOST_OF_A_LINK)
    assert all(set(found.job[found.link == link].tolist()) == {0, 1} for link in shared)
    names = np.array(records.jobs[0].endpoints), np.array(records.jobs[1].endpoints)
    for src, dst, job in zip(found.src, found.dst, found.job, strict=True):
        assert src in names[job]
        assert dst in names[job]


def test_with_a_load_balancer_nothing_is_said() -> None:
    run = cosim.run(TEXT, {"network": {"model": "fair_share", "balancer": "spray"}})
    assert link_users(run.records) is None


def test_without_traffic_nothing_is_said() -> None:
    alone = {"jobs": [{"workload": {"kind": "periodic", "compute": "1ms", "size": "0B"}}]}
    text = "topology: {kind: ring, endpoints: 2, rate: 80Gbps, latency: 0ns}\nnetwork: fair_share\n"
    assert link_users(cosim.run(text + f"jobs: {alone['jobs']}\n").records) is None
