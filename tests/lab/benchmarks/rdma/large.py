"""What large runs with packets cost: an all-reduce of 64 ranks, an iteration of Llama 3 8B on 128 GPUs."""

from __future__ import annotations

import resource
import time

import numpy as np

import cosim
from cosim.engine.records import OpRecords, Records
from cosim.experiment.scenario import loads
from tests.lab.benchmarks.rdma.fabric import FABRIC

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


FORWARD = ", fast_forward: 1%"


def _row(title: str, text: str) -> tuple[str, Records]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run = cosim.run(loads(text)).records
    wall_s = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    server_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row = (
        f"{title:<36}{run.num_messages:>11,}{run.links.events:>15,}{server_s:>10.1f}{wall_s:>8.0f}"
        f"{run.end_ps / 1e9:>16.6f}"
    )
    return row, run


def _apart(plain: OpRecords, quick: OpRecords) -> str:
    """How much longer or shorter operations are, relative."""
    took = plain.end_ps - plain.start_ps
    error = np.abs((quick.end_ps - quick.start_ps)[took > 0] / took[took > 0] - 1)
    return f"operations apart by fast-forward: mean {error.mean():.1e}, worst {error.max():.1e}"


def section() -> str:
    """A row for each; the last takes seven minutes of CPU."""
    head = f"{'':<36}{'messages':>11}{'events':>15}{'server s':>10}{'wall s':>8}{'simulated ms':>16}"
    reduced, _ = _row("all-reduce, 64 ranks, 64 MB", ALL_REDUCE)
    quick_row, quick = _row("Llama 3 8B, 128 GPUs, hybrid, 1%", LLAMA)
    exact_row, _ = _row("Llama 3 8B, 128 GPUs, hybrid, exact", LLAMA.replace("1%", "exact"))
    plain_row, plain = _row("Llama 3 8B, 128 GPUs, hybrid", LLAMA.replace(FORWARD, ""))
    return "\n".join([head, reduced, quick_row, exact_row, plain_row, _apart(plain.ops, quick.ops), ""])
