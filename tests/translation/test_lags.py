"""Iterations that wait for each other, told to simulators that know no lags."""

from __future__ import annotations

from pathlib import Path

import pytest

import cosim
from cosim.errors import InputError

SCENARIO = """
topology: {kind: ring, endpoints: 2, rate: 400Gbps, latency: 500ns}
network: congestion_unaware
jobs:
  - iterations: 5
    workload:
      kind: operations
      world_size: 2
      programs:
        - operations:
            - {name: step, kind: compute, duration: 100us, lagged: {step: 1, average: 2}}
            - {name: average, kind: collective, collective: all_reduce, size: 4MB, deps: [step]}
"""


@pytest.mark.parametrize(("name", "path"), [("csv", "."), ("goal", "schedule.goal")])
def test_iterations_are_unrolled_and_take_as_long(tmp_path: Path, name: str, path: str) -> None:
    scenario = cosim.loads(SCENARIO)
    done = cosim.translate(scenario, name, tmp_path)
    assert not done.report.entries("lost")
    again = cosim.run(
        scenario, set={"jobs": [{"workload": {"kind": name, "path": str(tmp_path / path)}}]}
    ).records
    assert again.end_ps == cosim.run(scenario).records.end_ps == 581_000_000


def test_so_many_iterations_that_the_files_would_be_endless_are_refused(tmp_path: Path) -> None:
    scenario = cosim.loads(SCENARIO).with_settings({"jobs[0].iterations": 1_000_001})
    with pytest.raises(
        InputError, match="1000001 iterations that wait for each other are 2,000,002 operations"
    ):
        cosim.translate(scenario, "csv", tmp_path)
