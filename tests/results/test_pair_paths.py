"""What a message takes alone, and so its slowdown, against runs of one message and of two."""

from __future__ import annotations

import numpy as np

import cosim
from cosim.results.link_users import note_link_users
from cosim.results.pair_paths import pair_paths
from cosim.results.report.run_data import run_data
from cosim.results.report.source import source_of

INCAST = """
topology: {kind: switch, endpoints: 3, rate: 100Gbps, latency: 1us}
network: fair_share
jobs: [{workload: {kind: periodic, compute: 0ns, size: 4MB, communication: incast, ranks: RANKS}}]
"""


def test_alone_is_the_time_of_a_message_that_is_alone() -> None:
    run = cosim.run(INCAST.replace("RANKS", "2"), messages=True)
    sent = run.messages
    took = pair_paths(run.records).alone_ps(sent.src, sent.dst, sent.size_bytes)
    np.testing.assert_allclose(took, sent.end_ps - sent.start_ps, atol=1)


def test_two_that_share_a_link_take_nearly_twice_as_long() -> None:
    run = cosim.run(INCAST.replace("RANKS", "3"), messages=True)
    note_link_users(run.records)
    _, columns = run_data(source_of(run))
    # 640 us instead of 320, and 2 us of latency.
    assert set(columns["size_slowdowns"].tolist()) == {round(1000 * 642 / 322)}
