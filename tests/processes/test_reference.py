"""Processes on the reference engine: the kernel's digest, and what a user sees. Random ones: ``worlds``."""

from __future__ import annotations

from typing import Any

import pytest

import cosim
from tests.inputs import ROOT

RING = {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "1us"}
ENGINES = ("kernel", "reference")
FILES = ROOT / "docs" / "howto" / "files"


@pytest.mark.parametrize(
    "scenario",
    [
        ROOT / "scenarios" / "circuit.yaml",
        ROOT / "scenarios" / "circuits.yaml",
        ROOT / "scenarios" / "parameter-server.yaml",
        pytest.param(ROOT / "scenarios" / "in-network.yaml", marks=pytest.mark.slow),
        FILES / "my-carrier.yaml",
        FILES / "my-controller.yaml",
        FILES / "my-driver.yaml",
    ],
    ids=lambda path: path.stem,
)
def test_a_scenario_has_the_digest_of_the_kernel(scenario: Any) -> None:
    found = [cosim.run(scenario, engine=engine) for engine in ENGINES]
    one, other = (run.records for run in found)
    assert one.digest == other.digest
    assert [job.name for job in one.jobs] == [job.name for job in other.jobs]
    assert [job.iteration_mean_ps for job in found[0].summary.jobs] == [
        job.iteration_mean_ps for job in found[1].summary.jobs
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_call_of_run_saw_what_had_arrived_at_its_end(engine: str) -> None:
    """10 kB at 10 bytes/ns arrive at 2 us: a call that ends then has seen them arrive."""
    for until, messages in (("1999999ps", 0), ("2us", 1)):
        with cosim.open({"topology": RING, "network": "fair_share"}, engine=engine) as sim:
            sim.transfer(0, 1, 10_000)
            records = sim.run(until=until).records
            assert (records.num_messages, records.end_ps) == (messages, sim.now)
            assert sim.run().records.end_ps == 2_000_000


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_goes_on_where_nothing_was_left_to_do(engine: str) -> None:
    with cosim.open({"topology": RING, "network": "fair_share"}, engine=engine) as sim:
        for at in (2_000_000, 4_000_000):
            sim.transfer(0, 1, 10_000)
            assert sim.run().records.end_ps == at
