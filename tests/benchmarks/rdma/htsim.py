"""Mean completion times beside those of csg-htsim, built by hand: fat-trees, 100 Gb/s, 2 MB, MTU 4000."""

from __future__ import annotations

import numpy as np

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.topology.graph import Topology
from tests.benchmarks.ns3_congestion import Case, Flow
from tests.benchmarks.rdma.sessions import packets

SIZE = 2_000_000
SEEDS = 3
HTSIM = {
    "incast 8:1, 16 hosts": {"hpcc": 1203.0, "swift": 1280.0},
    "incast 32:1, 128 hosts": {"hpcc": 4892.0},
    "permutation, 16 hosts": {"hpcc": 343.0, "swift": 329.0},
    "permutation, 128 hosts": {"hpcc": 412.0, "swift": 399.0},
    "all-to-all, 16 hosts": {"hpcc": 2414.0, "swift": 2449.0},
}
"""Its means, us."""


def _fat_tree(k: int) -> Topology:
    text = f"""
topology: {{kind: fat_tree, k: {k}, rate: 100Gbps, latency: 1us}}
network: fair_share
jobs: [{{workload: {{kind: collective, collective: barrier, ranks: 2}}}}]
"""
    return build(loads(text)).topology


def _flows(name: str, hosts: int, seed: int) -> tuple[Flow, ...]:
    if name.startswith("incast"):
        senders = int(name.split()[1].split(":")[0])
        return tuple((hosts - 1 - n, 0, SIZE, 0.0) for n in range(senders))
    if name.startswith("all-to-all"):
        return tuple((a, b, SIZE, 0.0) for a in range(hosts) for b in range(hosts) if a != b)
    to = np.random.default_rng(seed).permutation(hosts).tolist()
    return tuple((src, dst, SIZE, 0.0) for src, dst in enumerate(to) if src != dst)


def section() -> str:
    """A row for each pattern and control."""
    lines = [
        f"mean completion time in us of {SIZE // 1_000_000} MB flows; permutations: mean of {SEEDS} drawn",
        "",
        f"{'':<26}{'control':<8}{'csg-htsim':>10}{'ns3_rdma':>10}{'':>4}{'last':>9}{'drops':>7}{'CPU-s':>7}",
    ]
    for name, theirs in HTSIM.items():
        hosts = int(name.split(", ")[1].split()[0])
        topology = _fat_tree(4 if hosts == 16 else 8)
        for control in ("hpcc", "swift"):
            seeds = range(SEEDS if name.startswith("permutation") else 1)
            ran = [packets(control, Case(name, topology, _flows(name, hosts, s), 4000)) for s in seeds]
            mean = float(np.mean([one.us.mean() for one in ran]))
            other = theirs.get(control)
            shown = f"{other:>10.0f}" if other else f"{'-':>10}"
            error = f"{mean / other - 1:>+6.0%}" if other else f"{'':>6}"
            drops = sum(one.statistics.extra["drops"].sum() for one in ran)
            last = max(one.us.max() for one in ran)
            cpu = sum(one.cpu_s for one in ran)
            lines.append(
                f"{name:<26}{control:<8}{shown}{mean:>10.0f}{error}{last:>8.0f}{drops:>7.0f}{cpu:>7.1f}"
            )
    return "\n".join([*lines, ""])
