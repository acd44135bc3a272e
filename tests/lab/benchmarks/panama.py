"""PANAMA's mix, smaller: large data-parallel jobs beside short flows, by rings and by switches that add up.

``python -m tests.lab.benchmarks.panama`` prints the table of docs/validation/fabrics.md; ``shares``, what
docs/howto/in-network.md says of who gets what of a link. N. Gebara, M.
Ghobadi and P. Costa, "In-network Aggregation for Shared Machine Learning Clusters", MLSys 2021: iterations of
large jobs go down by up to 1.34 times, the 99th percentile of short flows by up to 4.5. Their simulator isn't
public. So here: 64 hosts at 8 leaves and 4 spines, 100 Gb/s, oversubscribed by two, ECMP; jobs of
ResNet-50's gradients (102 MB), two hosts of each leaf, and web search flows among all hosts.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import cosim

SHORT = 100_000
"""Bytes of a short flow, at most."""
ALGORITHMS = {
    "ring": "ring",
    "in_network": {"algorithm": "in_network", "slots": 64, "slot_size": "8KiB", "trees": 4},
}


def mix(algorithm: Any, control: str, jobs: int, compute: str) -> dict[str, Any]:
    """The scenario."""
    train = {
        "kind": "periodic",
        "compute": compute,
        "size": "102MB",
        "communication": "all_reduce",
        "ranks": 16,
    }
    flows = {
        "kind": "background",
        "ranks": 64,
        "duration": "60ms",
        "load": 0.1,
        "rate": "100Gbps",
        "sizes": "web_search",
    }
    return {
        "topology": {
            "kind": "leaf_spine",
            "leaves": 8,
            "spines": 4,
            "endpoints_per_leaf": 8,
            "rate": "100Gbps",
            "latency": "1us",
            "oversubscription": 2,
            "routing": "ecmp",
        },
        "network": {"model": "congestion", "control": control},
        "collectives": {"all_reduce": algorithm},
        "share_endpoints": True,
        "jobs": [
            *(
                {
                    "name": f"train{k}",
                    "workload": train,
                    "iterations": 3,
                    # Two hosts of each leaf.
                    "placement": {
                        "kind": "explicit",
                        "endpoints": [8 * leaf + 2 * k + i for leaf in range(8) for i in (0, 1)],
                    },
                }
                for k in range(jobs)
            ),
            {
                "name": "flows",
                "workload": flows,
                "placement": {"kind": "explicit", "endpoints": [*range(64)]},
            },
        ],
    }


def measured(algorithm: Any, control: str, jobs: int, compute: str) -> tuple[float, float, float]:
    """Mean iteration of the jobs in ms; mean and 99th percentile of short flows, us."""
    run = cosim.run(mix(algorithm, control, jobs, compute), set={"record.messages": True})
    iterations = [one.iteration_mean_ps or 0 for one in run.summary.jobs if one.name != "flows"]
    messages = run.records.messages
    assert messages is not None
    mine = (messages.job == jobs) & (messages.size_bytes <= SHORT)
    took = (messages.end_ps - messages.start_ps)[mine] / 1e6
    return float(np.mean(iterations)) / 1e9, float(took.mean()), float(np.percentile(took, 99))


def table() -> str:
    """A row for each mix."""
    lines = [
        "| control | jobs | computing | iteration, ring | added up | | short flows, ring | added up | | p99, "
        "ring | added up | |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for control, jobs, compute in (
        ("dctcp", 2, "10ms"),
        ("dctcp", 4, "10ms"),
        ("dctcp", 4, "0ms"),
        ("hpcc", 4, "10ms"),
    ):
        ring, added = (measured(one, control, jobs, compute) for one in ALGORITHMS.values())
        cells = [
            f"{one:,.1f} {unit} | {other:,.1f} {unit} | {one / other:.2f}"
            for one, other, unit in zip(ring, added, ("ms", "us", "us"), strict=True)
        ]
        lines.append(f"| {control} | {jobs} | {compute} | {' | '.join(cells)} |")
    return "\n".join(lines)


def shares() -> str:
    """What an all-reduce of 50 MB gets of a link of 100 Gb/s, beside a flow of 50 MB that is always there."""
    send, recv = (
        {"name": "all", "kind": kind, "peer": peer, "size": "50MB"}
        for kind, peer in (("send", 1), ("recv", 0))
    )
    programs = [{"ranks": [0], "operations": [send]}, {"ranks": [1], "operations": [recv]}]
    work = {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "50MB"}
    scenario: dict[str, Any] = {
        "topology": {
            "kind": "leaf_spine",
            "leaves": 2,
            "spines": 1,
            "endpoints_per_leaf": 4,
            "rate": "100Gbps",
            "latency": "1us",
            "uplink_rate": "100Gbps",
            "uplink_latency": "1us",
        },
        "jobs": [
            {"name": "sum", "workload": work, "placement": {"kind": "explicit", "endpoints": [0, 1, 4, 5]}},
            {
                "name": "flow",
                "workload": {"kind": "operations", "world_size": 2, "programs": programs},
                "placement": {"kind": "explicit", "endpoints": [2, 6]},
            },
        ],
    }
    lines = []
    for control, slots in (("dctcp", 64), ("dctcp", 256), ("dctcp", 1024), ("hpcc", 1024)):
        algorithm = {"algorithm": "in_network", "slots": slots, "slot_size": "8KiB"}
        network = {"model": "congestion", "control": control}
        run = cosim.run(scenario | {"network": network, "collectives": {"all_reduce": algorithm}})
        took = run.summary.jobs[0].finish_max_ps
        lines.append(f"{control}, {slots} slots of 8 KiB: {50e6 * 8e12 / took / 1e9:.1f} Gbps")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write((shares if "shares" in sys.argv else table)() + "\n")
