"""A small sweep, and whether its runs are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.experiment.store import trials

SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}, jitter: 0.1}]
"""


def write_sweep(folder: Path, scenario: str = SCENARIO, name: str = "sweep") -> Path:
    indented = "\n".join(f"  {line}" for line in scenario.splitlines())
    path = folder / f"{name}.yaml"
    path.write_text(
        f"scenario:\n{indented}\naxes: {{rate: {{topology.rate: [80Gbps, 40Gbps]}}}}\n"
        "seeds: 2\nmeasures: [iteration, slowdown]\n"
    )
    return path


class Count:
    """How many trials were simulated since this was made."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.runs = 0
        inner = trials._simulated

        def counted(task: trials.Task) -> trials._Made:
            self.runs += 1
            return inner(task)

        patch.setattr(trials, "_simulated", counted)
