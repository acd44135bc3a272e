"""What large runs with packets cost: an all-reduce of 64 ranks, an iteration of Llama 3 8B on 128 GPUs."""

from __future__ import annotations

import resource
import time

import cosim
from cosim.experiment.scenario import loads
from tests.benchmarks.rdma.fabric import FABRIC

ALL_REDUCE = """
topology: {kind: leaf_spine, leaves: 8, spines: 8, endpoints_per_leaf: 8, rate: 100Gbps, latency: 1us}
network: {model: ns3_rdma, control: dcqcn}
jobs:
  - workload: {kind: collective, collective: all_reduce, size: 64MB, ranks: 64}
collectives: {all_reduce: ring}
"""
LLAMA = (
    FABRIC
    + """
network: {model: hybrid, scale_up: fair_share, scale_out: {model: ns3_rdma, control: dcqcn, fast_forward: 1%}}
jobs:
  - workload:
      kind: model
      model: llama3-8b
      gpu: h100-sxm
      parallel: {tp: 8, dp: 16}
      batch: 128
      sequence: 8192
      sharded_optimizer: true
    iterations: 1
"""
)


def _row(title: str, text: str) -> str:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run = cosim.run(loads(text))
    wall_s = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    server_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (
        f"{title:<36}{run.records.num_messages:>11,}{run.records.links.events:>13,}{server_s:>10.1f}{wall_s:>8.0f}"
        f"{run.records.end_ps / 1e9:>12.2f}"
    )


def section() -> str:
    """A row for each."""
    head = f"{'':<36}{'messages':>11}{'events':>13}{'server s':>10}{'wall s':>8}{'simulated ms':>12}"
    rows = (
        ("all-reduce, 64 ranks, 64 MB", ALL_REDUCE),
        ("Llama 3 8B, 128 GPUs, hybrid, 1%", LLAMA),
    )
    return "\n".join([head, *(_row(*row) for row in rows), ""])
