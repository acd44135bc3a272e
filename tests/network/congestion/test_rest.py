"""Rounds that are left out while nothing waits: who waits to learn of a loss goes on, and whole jobs end the
same, to the picosecond, whether rounds are left out or not.

Jobs that share a fabric are chaotic: the last bit of a sum, or a round that ends an eighth of a round trip
later, is a millisecond at the end. So what agrees here is the same throughout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import cosim

SCENARIO = """
topology: {kind: leaf_spine, leaves: 4, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us,
           oversubscription: 2, routing: ecmp}
network: {model: congestion, control: newreno}
seed: 0
jobs:
  - workload: {kind: transformer, layers: 2, hidden: 1024, heads: 16, vocabulary: 8192, sequence: 1024,
               micro_batch: 6, data_parallel: 4, tensor_parallel: 4, gpu: a100-80gb}
    placement: spread
    iterations: 4
    jitter: 0.02
"""
FABRIC: dict[str, Any] = {
    "kind": "leaf_spine",
    "leaves": 4,
    "endpoints_per_leaf": 4,
    "rate": "100Gbps",
    "latency": "1us",
    "routing": "ecmp",
}
EXPERTS: dict[str, Any] = {
    "workload": {
        "kind": "periodic",
        "compute": "250us",
        "size": "4MB",
        "communication": "all_to_all",
        "ranks": 8,
        "steps": 8,
    },
    "iterations": 3,
    "jitter": 0.02,
    "count": 2,
    "arrival": {"kind": "offsets", "within": "2ms"},
    "placement": "spread",
}


def test_a_loss_in_the_last_packets_of_a_settled_connection_is_sent_again() -> None:
    """With this seed a connection whose window no longer changes loses its last three packets."""
    run = cosim.run(cosim.loads(SCENARIO))
    assert len(run.summary.jobs[0].iteration_ps) == 4


def digest_of(folder: Path, rest: bool, control: Any, spines: int, oversubscription: int, seed: int) -> str:
    """Of two jobs with experts, whose rounds are left out or not."""
    scenario = {
        "name": "experts",
        "topology": FABRIC | {"spines": spines, "oversubscription": oversubscription},
        "network": {"model": "congestion", "control": control, "rest": rest},
        "jobs": [EXPERTS],
        "seed": seed,
    }
    path = folder / "experts.yaml"
    path.write_text(yaml.safe_dump(scenario))
    return cosim.run(path).digest


@pytest.mark.parametrize(
    ("control", "spines", "seed"),
    [
        ("dctcp", 2, 0),  # links that begin to queue in the instant in which a round that was left out ends
        ("swift", 4, 0),  # ... and a port on the way passes on less from then on
        ("newreno", 2, 1),
        ("timely", 2, 0),
        ("dcqcn", 4, 0),  # whose ports pause
        ({"kind": "mltcp", "over": "dctcp"}, 2, 0),  # whose growth hangs on what all have sent
    ],
    ids=str,
)
def test_whole_jobs_are_the_same_without_rests(tmp_path: Path, control: Any, spines: int, seed: int) -> None:
    both = {digest_of(tmp_path, rest, control, spines, 4 // spines, seed) for rest in (True, False)}
    assert len(both) == 1
