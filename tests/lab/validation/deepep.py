"""DeepEP's published kernels between hosts beside simulated ones: ``python -m tests.lab.validation.deepep``.

A token goes once to each host that has one of its experts, to the GPU of its sender's rail, which hands it on
over NVLink to each rank that has one; combine goes the same way back. Both run at once, as two exchanges of
which the longer is the kernel's time. The published figure is the bytes of a rank's tokens, one for each
host, its own counted too, by that time. Nothing is fitted.

Sources (MIT): deepseek-ai/DeepEP, README (V2: "SM90", "SM100", CX7 of 400 Gb/s; its test's 8,192 tokens of
7,168 numbers, 8 of 256 experts) and docs/legacy.md (V1: H800, 4,096 tokens; with more than four hosts a token
goes to four of them); issue 82 for RoCE (four hosts of H100, no adaptive routing, V1 of 2025-03).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario

HIDDEN, EXPERTS, TOP, GPUS = 7168, 256, 8, 8
BYTES = {"dispatch": HIDDEN + HIDDEN // 128 * 4, "combine": 2 * HIDDEN}
"""Bytes of a token: FP8 with a scale for each 128 numbers there, BF16 back."""
NVLINK = {"h800": "200GB/s", "h100": "450GB/s", "b200": "900GB/s"}
SEEDS = 16
"""So many ways to hash connections to paths are tried."""


@dataclass(frozen=True)
class Row:
    """A published figure, GB/s of a rank; ``paths``: flows are hashed to leaves' uplinks."""

    version: str
    gpu: str
    hosts: int
    kernel: str
    gb_s: float
    tokens: int = 8192
    paths: bool = False

    @property
    def reached(self) -> tuple[float, float]:
        """Hosts and ranks that a token goes to, in expectation, its sender's among them."""
        most = min(self.hosts, 4) if self.version == "V1" else self.hosts
        experts = EXPERTS * most // self.hosts
        return _places(experts, most), _places(experts, most * GPUS)


ROWS = (
    Row("V2", "h100", 2, "dispatch", 90),
    Row("V2", "h100", 2, "combine", 81),
    Row("V2", "h100", 4, "dispatch", 61),
    Row("V2", "h100", 4, "combine", 61),
    Row("V2", "b200", 2, "dispatch", 90),
    Row("V2", "b200", 2, "combine", 91),
    Row("V1", "h800", 2, "dispatch", 43, 4096),
    Row("V1", "h800", 2, "combine", 43, 4096),
    Row("V1", "h800", 4, "dispatch", 58, 4096),
    Row("V1", "h800", 4, "combine", 57, 4096),
    Row("V1", "h800", 8, "dispatch", 51, 4096),
    Row("V1", "h800", 8, "combine", 50, 4096),
    Row("V1", "h100", 4, "dispatch", 29.92, 4096, paths=True),
    Row("V1", "h100", 4, "combine", 13.59, 4096, paths=True),
)


def _places(experts: int, groups: int) -> float:
    """How many of the groups that share ``experts`` alike have one of a token's, in the mean."""
    return groups * (1 - comb(experts - experts // groups, TOP) / comb(experts, TOP))


def simulated_gb_s(row: Row, seed: int = 0) -> float:
    """What DeepEP's test would print, in the full path."""
    each = row.tokens * BYTES[row.kernel]
    to_hosts, to_ranks = row.reached
    exchanges = [
        {"name": axis, "kind": "collective", "collective": "all_to_all", "axes": [axis], "size": int(size)}
        for axis, size in (("host", each * to_hosts), ("gpu", each * to_ranks))
    ]
    nics = {"leaves": row.hosts, "endpoints_per_leaf": GPUS, "routing": {"kind": "ecmp", "seed": seed}}
    rails = {"leaves": GPUS, "endpoints_per_leaf": row.hosts}
    scenario = {
        "topology": {
            "kind": "leaf_spine",
            "spines": GPUS if row.paths else 1,
            **(nics if row.paths else rails),
            "latency": "500ns",
            "fabric": "infiniband-ndr",
            "hosts": {
                "gpus": GPUS,
                "nvlink_rate": NVLINK[row.gpu],
                "nvlink_latency": "300ns",
                "nics": GPUS,
                "nic_rate": "400Gbps",
                "rails": not row.paths,
            },
        },
        "network": "fair_share",
        "collectives": {"all_to_all": {"algorithm": "nccl"}},
        "jobs": [
            {
                "workload": {
                    "kind": "operations",
                    "mesh": {"host": row.hosts, "gpu": GPUS},
                    "programs": [{"operations": [{**one, "stream": one["name"]} for one in exchanges]}],
                }
            }
        ],
        "fold": "never",
    }
    seconds = run(Scenario.model_validate(scenario)).records.end_ps / 1e12
    return each * to_hosts / seconds / 1e9


def main() -> None:
    """Print each row; of hashed paths the median, and the range."""
    print("    GPU   hosts kernel    published  simulated   time")
    errors = []
    for row in ROWS:
        found = np.array([simulated_gb_s(row, seed) for seed in range(SEEDS if row.paths else 1)])
        middle = float(np.median(found))
        error = row.gb_s / middle - 1
        errors += [] if row.paths else [error]
        figures = f"{row.gb_s:4.0f} GB/s  {middle:4.0f} GB/s  {error:+6.1%}"
        spread = f"  ({found.min():.0f} to {found.max():.0f} GB/s by hash)" if row.paths else ""
        print(f"{row.version}  {row.gpu:5s} {row.hosts:5d} {row.kernel:8s}  {figures}{spread}")
    print(f"{len(errors)} over InfiniBand: mean error {np.abs(errors).mean():.1%}")


if __name__ == "__main__":
    main()
