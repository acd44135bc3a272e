"""Load balancers of the congestion network beside those of switches in ns-3.

``python -m tests.lab.benchmarks.ns3_balancers``: the same scenario twice but for ``network``: DCTCP over
ECMP, flowlets, adaptive routing and spray, on a leaf-spine and a fat-tree, for a permutation, an all-to-all
and a language model's training. Times are those of an iteration, the mean over seeds; where paths are drawn,
they are drawn apart. Two balancers that ns-3 has nearer to each other than 2 %, or than its own seeds are,
are a tie.
"""

from __future__ import annotations

import sys
import time
from itertools import combinations
from typing import Any

import numpy as np

import cosim

FABRICS: dict[str, dict[str, Any]] = {
    "leaf-spine": {"kind": "leaf_spine", "leaves": 4, "spines": 4, "endpoints_per_leaf": 4},
    "fat-tree": {"kind": "fat_tree", "k": 4},
}
TRAFFIC: dict[str, dict[str, Any]] = {
    "permutation": {
        "kind": "periodic",
        "compute": "10us",
        "size": "4MB",
        "communication": "permutation",
        "ranks": 16,
    },
    "all-to-all": {"kind": "collective", "collective": "all_to_all", "size": "16MB", "ranks": 16},
    "llm": {
        "kind": "transformer",
        "layers": 2,
        "hidden": 1024,
        "heads": 16,
        "vocabulary": 8192,
        "sequence": 512,
        "micro_batch": 4,
        "tensor_parallel": 4,
        "data_parallel": 4,
        "gpu": "a100-80gb",
    },
}
GAP = "5us"
BALANCERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ecmp": ({"balancer": "ecmp"}, {"routing": "given"}),
    "flowlet": (
        {"balancer": {"kind": "flowlet", "gap": GAP}},
        {"routing": "flowlet", "flowlet_gap": GAP},
    ),
    "adaptive": ({"balancer": "adaptive"}, {"routing": "adaptive"}),
    "spray": ({"balancer": "spray"}, {"routing": "spray"}),
}
SEEDS = (1, 2, 3)
TIE = 0.02
PORTS = {"control": "dctcp", "mtu": 4096, "buffer": "1MB"}


def iteration_us(fabric: str, traffic: str, network: dict[str, Any], seed: int) -> float:
    """The mean iteration of one run."""
    run = cosim.run(
        {
            "topology": FABRICS[fabric] | {"rate": "100Gbps", "latency": "1us", "routing": "ecmp"},
            "network": network,
            "jobs": [{"workload": TRAFFIC[traffic], "iterations": 3}],
            "seed": seed,
            "record": {"operations": 0},
        }
    )
    return float(np.mean(run.summary.jobs[0].iteration_ps)) / 1e6


def row(fabric: str, traffic: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """[balancers, seeds]: us here, and in ns-3."""
    here, there = np.zeros((2, len(BALANCERS), len(SEEDS)))
    for k, (fluid, packets) in enumerate(BALANCERS.values()):
        for s, seed in enumerate(SEEDS):
            here[k, s] = iteration_us(fabric, traffic, {"model": "congestion"} | PORTS | fluid, seed)
            more = {"shared_buffer": False} | packets
            if packets["routing"] != "given":
                more["routing_seed"] = seed
            there[k, s] = iteration_us(fabric, traffic, {"model": "ns3_rdma"} | PORTS | more, seed)
    return here, there


def main(names: list[str]) -> None:
    """A line for each fabric and traffic, then errors and pairs."""
    heads = "".join(f"{name:>26}" for name in BALANCERS)
    print(f"{'us: here, ns-3':24}{heads}")
    errors, alike, apart = [], 0, 0
    cpu = time.process_time()
    for fabric in FABRICS:
        for traffic in names or TRAFFIC:
            here, there = row(fabric, traffic)
            mine, its = here.mean(axis=1), there.mean(axis=1)
            errors.append(mine / its - 1)
            cells = "".join(
                f"{a:10.1f}{b:9.1f}{a / b - 1:+7.1%}"
                for a, b in zip(mine.tolist(), its.tolist(), strict=True)
            )
            print(f"{fabric + ', ' + traffic:24}{cells}", flush=True)
            for one, two in combinations(range(len(BALANCERS)), 2):
                spread = max(np.ptp(there[one]), np.ptp(there[two]), TIE * its[one]) if its.any() else 0.0
                if abs(its[one] - its[two]) > spread:
                    apart += 1
                    alike += bool((mine[one] - mine[two]) * (its[one] - its[two]) > 0)
    found = np.concatenate(errors)
    print(f"mean error {np.abs(found).mean():.1%}, worst {np.abs(found).max():.1%}")
    print(f"of {apart} pairs of balancers that ns-3 tells apart {alike} are in its order")
    print(f"{time.process_time() - cpu:.0f} CPU-s here")


if __name__ == "__main__":
    main(sys.argv[1:])
