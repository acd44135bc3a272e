"""Shipped scenarios by other names and in other units take the same time, to the picosecond."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cosim.engine.records import Records
from tests.examples.answers import SCENARIOS, SWEEPS
from tests.lab.fuzz.shipped import doubled, renamed, scenario_of

ELSEWHERE = {"closed-loop-ns3", "hybrid-ns3", "incast-rdma"}
"""What runs in ns-3."""
NOT_THERE = {"simai-sharing"}
"""What reads files that are beside the checkout."""
DEAR = {"failures-54-days"}
"""It is the same by both, too: 16,384 GPUs, 6 CPU-seconds."""
TRIED = [path for path in (*SCENARIOS, *SWEEPS) if path.stem not in ELSEWHERE | NOT_THERE | DEAR]
BY_NUMBER = {"background", "cluster-queue", "direct-connect", "tacos"}
"""Jobs of a queue go to the free endpoints with the lowest numbers, which others have by other names. Of two
equal messages of an incast that are sent to the picosecond alike, the one of the lower endpoint ends first.
On links from endpoint to endpoint, ranks by other names have other neighbours.
"""
OWN_SIZES = {"parameter-server", "circuits", "slow-link"}
"""How much is sent is in a process, and not to be doubled from outside; nor is the rate that a process gives
a circuit, or an event a link.
"""


def ends(records: Records) -> list[list[list[int]]]:
    """When each rank ended each iteration of each job."""
    return [np.asarray(one).tolist() for one in records.iteration_end_ps]


def name_of(path: Path) -> str:
    return path.stem


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in TRIED if path.stem not in OWN_SIZES], ids=name_of)
def test_twice_the_bytes_at_twice_the_rate(path: Path) -> None:
    one, other = doubled(scenario_of(path))
    assert ends(one) == ends(other)


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in TRIED if path.stem not in BY_NUMBER], ids=name_of)
def test_endpoints_by_other_names(path: Path) -> None:
    one, other = renamed(scenario_of(path))
    assert ends(one) == ends(other)
    assert one.digest == other.digest
