"""What runs without a balancer and without events cost beside an older checkout's.

``python -m tests.lab.benchmarks.balancers_beside CHECKOUT [NETWORK ...]``, for instance of 4553334, the
commit before load balancers came (``git worktree add CHECKOUT 4553334``), or of e3e8538, before links changed
in the last two networks: CPU-seconds of runs with one path, both checkouts in turns, seven pairs, and whether
both have the same digest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

PAIRS = 7
NETWORKS: dict[str, dict[str, Any]] = {
    "fair_share": {"model": "fair_share"},
    "congestion": {"model": "congestion", "control": "dctcp"},
    "congestion_aware": {"model": "congestion_aware"},
    "congestion_unaware": {"model": "congestion_unaware"},
}
ALGORITHMS = {"ring": "all_reduce", "all-to-all": "all_to_all"}
ITERATIONS = {
    ("fair_share", "ring"): 300,
    ("fair_share", "all-to-all"): 50,
    ("congestion", "ring"): 200,
    ("congestion", "all-to-all"): 2,
    ("congestion_aware", "ring"): 600,
    ("congestion_aware", "all-to-all"): 300,
    ("congestion_unaware", "ring"): 800,
    ("congestion_unaware", "all-to-all"): 800,
}
"""Of each network and job: some half a CPU-second of each."""


def once(network: str, job: str, iterations: int) -> tuple[float, str]:
    """CPU-seconds of one run in this process, and its digest."""
    import cosim

    scenario = {
        "topology": {
            "kind": "leaf_spine",
            "leaves": 8,
            "spines": 4,
            "endpoints_per_leaf": 8,
            "rate": "100Gbps",
            "latency": "1us",
            "routing": "ecmp",
        },
        "network": NETWORKS[network],
        "jobs": [
            {
                "workload": {
                    "kind": "collective",
                    "collective": ALGORITHMS[job],
                    "size": "64MB",
                    "ranks": 64,
                },
                "iterations": iterations,
            }
        ],
        "seed": 1,
        "record": {"operations": 0},
    }
    start = time.process_time()
    run = cosim.run(scenario)
    return time.process_time() - start, run.summary.digest


def here(networks: Sequence[str]) -> None:
    """Print of each network and job [CPU-seconds, digest], as JSON, after short runs that compile."""
    found = {}
    for (network, job), iterations in ITERATIONS.items():
        if network not in networks:
            continue
        once(network, job, 1)
        found[f"{network}, {job}"] = once(network, job, iterations)
    print(json.dumps(found))


def of(checkout: Path, networks: Sequence[str]) -> dict[str, tuple[float, str]]:
    """The same of a checkout, by this file's text, in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", Path(__file__).read_text(), "--here", *networks],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout), "COSIM_LOOPS": "compiled"},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, tuple[float, str]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def main(older: Path, networks: Sequence[str]) -> None:
    """A line for each network and job: medians, and the median of the pairs' ratios."""
    mine = Path(__file__).resolve().parents[3]
    # The first of each compiles, and counts for nothing.
    of(older, networks), of(mine, networks)
    pairs = [(of(older, networks), of(mine, networks)) for _ in range(PAIRS)]
    print(f"{'CPU-s':32}{'older':>8}{'here':>8}  ratio, from to   digest")
    for name in pairs[0][0]:
        old, new = (np.array([pair[k][name][0] for pair in pairs]) for k in (0, 1))
        ratio = new / old
        same = "same" if pairs[0][0][name][1] == pairs[0][1][name][1] else "another"
        spread = f"{np.median(ratio):.2f}, {ratio.min():.2f} {ratio.max():.2f}"
        print(f"{name:32}{np.median(old):8.3f}{np.median(new):8.3f}  {spread:17} {same}")


if __name__ == "__main__":
    chosen = sys.argv[2:] or [*NETWORKS]
    here(chosen) if sys.argv[1] == "--here" else main(Path(sys.argv[1]), chosen)
