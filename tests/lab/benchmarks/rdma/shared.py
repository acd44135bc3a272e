"""The fluid network's scenarios of jobs that share links, beside the same with packets."""

from __future__ import annotations

from typing import Any

import cosim

SCENARIOS: dict[str, tuple[str, dict[str, Any]]] = {
    "DCQCN, 55 us beside 300 us": ("unfair-dcqcn", {}),
    "... both 55 us": ("unfair-dcqcn", {"jobs[1].weight": 1}),
    "MLTCP over DCTCP": ("mltcp", {}),
    "... DCTCP alone": ("mltcp", {"network.control": "dctcp"}),
    "... decreasing": ("mltcp", {"network.control.slope": -1.75, "network.control.intercept": 2}),
}


def _means(name: str, setting: dict[str, Any]) -> str:
    run = cosim.run(cosim.load(f"scenarios/{name}.yaml"), set=setting)
    return " ".join(f"{(job.iteration_mean_ps or 0) / 1e9:>9.3f}" for job in run.summary.jobs)


def section() -> str:
    """A row for each scenario: mean iterations of both jobs, in the fluid and with packets."""
    lines = ["mean iteration of each job, ms", "", f"{'':<30}{'congestion':>19}{'ns3_rdma':>21}"]
    for title, (name, setting) in SCENARIOS.items():
        fluid = _means(name, setting)
        packets = _means(name, {**setting, "network.model": "ns3_rdma"})
        lines.append(f"{title:<30}{fluid}  {packets}")
    return "\n".join([*lines, ""])
