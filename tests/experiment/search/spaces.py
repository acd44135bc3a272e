"""Small random designs."""

from __future__ import annotations

import random
from typing import Any

import cosim

PERIODIC = {"kind": "periodic", "compute": "10us", "size": "50kB"}


def small_space(chance: random.Random) -> cosim.Design:
    """What is computed, how much is sent, how fast, by which algorithm; some don't fit."""
    count = chance.randint(2, 4)
    splits: dict[str, dict[str, Any]] = {
        f"split {k}": {
            "jobs.0.workload.compute": f"{chance.randint(1, 40)}us",
            "jobs.0.workload.size": f"{chance.randint(1, 300)}kB",
        }
        for k in range(count)
    }
    if chance.random() < 0.5:
        splits["too many"] = {"jobs.0.workload.ranks": 9}
    rates = chance.sample([25, 50, 100, 200, 400], chance.randint(1, 3))
    axes: dict[str, Any] = {"split": splits, "rate": {"topology.rate": [f"{rate}Gbps" for rate in rates]}}
    if chance.random() < 0.5:
        axes["second"] = {"alone": {}, "shared": {"share_endpoints": True, "jobs.1.workload": PERIODIC}}
    return cosim.Design(
        scenario={
            "topology": {"kind": "switch", "endpoints": 8, "latency": "500ns", "rate": "100Gbps"},
            "network": chance.choice(["fair_share", "congestion_aware", "congestion_unaware"]),
            "jobs": [{"workload": {**PERIODIC, "ranks": 4}, "iterations": chance.randint(1, 3)}],
        },
        axes=axes,
        objective=chance.choice(["iteration", "slowest", "makespan"]),
    )
