"""Large fabrics: seconds to build, to route, and to run an all-to-all of 1,024 ranks, and memory.

``python -m tests.lab.benchmarks.fabrics`` prints the table of docs/howto/regular-fabrics.md.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

LINE = {"rate": "400Gbps", "latency": "500ns"}
RANKS = 1024
FABRICS: dict[str, dict[str, Any]] = {
    "fat-tree": {"kind": "fat_tree", "k": 36, **LINE},
    "dragonfly": {
        "kind": "dragonfly",
        "endpoints_per_switch": 6,
        "switches_per_group": 16,
        "links_per_switch": 7,
        **LINE,
    },
    "slim fly": {"kind": "slim_fly", "q": 19, **LINE},
    "torus": {"kind": "torus", "dims": [22, 22, 22], **LINE},
}


def row(name: str) -> str:
    """One line of the table; in a process of its own, for its memory."""
    import cosim

    topology = FABRICS[name]
    jobs = [
        {
            "workload": {"kind": "collective", "collective": "all_to_all", "ranks": RANKS, "size": "1GiB"},
            "placement": "spread",
        }
    ]
    from cosim.experiment.build import fabric
    from cosim.experiment.scenario import Scenario

    scenario = {"topology": topology, "network": "fair_share", "jobs": jobs}
    started = time.perf_counter()
    built = fabric(Scenario.model_validate(scenario))
    made = time.perf_counter()
    ends = np.linspace(0, built.num_endpoints - 1, RANKS).astype(np.int32)
    src, dst = np.repeat(ends, RANKS), np.tile(ends, RANKS)
    built.paths(src, dst, np.zeros(len(src), np.int32))
    routed = time.perf_counter()
    cosim.run(scenario)
    ran = time.perf_counter()
    gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return (
        f"| {name} | {built.num_endpoints:,} | {built.num_links:,} | {made - started:.1f} s | "
        f"{routed - made:.1f} s | {ran - routed:.0f} s | {gb:.1f} GB |"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(row(sys.argv[1]))
    else:
        for each in FABRICS:
            subprocess.run([sys.executable, "-m", "tests.lab.benchmarks.fabrics", each], check=True)
