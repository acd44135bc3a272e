"""What each single cable of a 1,024-GPU fabric costs one iteration of a Llama when it is dead: ranked.

``python -m tests.lab.benchmarks.failures [cables]``: of so many cables, evenly spread; else of all. Cables
between switches are tried one by one, two at a time; those that carry nothing cost nothing, and a GPU's only
cable stops the job, so neither is run. Folding can't be used: one dead cable leaves no two ranks alike.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import cosim
from cosim.units import format_time

SCENARIO = """
topology:
  kind: leaf_spine
  leaves: 16
  spines: 8
  endpoints_per_leaf: 64
  latency: 500ns
  oversubscription: 2
  hosts: {gpus: 8, nvlink_rate: 450GB/s, nvlink_latency: 300ns, nics: 8, nic_rate: 400Gbps}
network: fair_share
fold: never
record: {operations: 0}
jobs:
- workload:
    kind: model
    model: llama3-70b
    gpu: h100-sxm
    parallel: {tp: 8, pp: 8, dp: 16}
    batch: 32
    sequence: 4096
    sharded_optimizer: true
"""


def iteration_ps(cable: str) -> tuple[str, int, float]:
    """(Cable, time of the iteration while it is dead, CPU-seconds); none is dead where its name is empty."""
    events = [{"link": cable, "down": True}] if cable else []
    begin = time.process_time()
    run = cosim.run(SCENARIO, set={"events": events})
    return cable, int(run.summary.jobs[0].iteration_ps[0]), time.process_time() - begin


def cables() -> list[str]:
    """Those between switches that carry anything, as ``leaf0 <-> spine3``."""
    run = cosim.run(SCENARIO)
    topology, sent = run.records.topology, run.records.links.link_bytes
    names = topology.node_names
    ends = zip(topology.link_src.tolist(), topology.link_dst.tolist(), sent.tolist(), strict=True)
    found = {
        f"{names[min(a, b)]} <-> {names[max(a, b)]}"
        for a, b, carried in ends
        if carried and names[a].startswith(("leaf", "spine")) and names[b].startswith(("leaf", "spine"))
    }
    return sorted(found)


def main() -> None:
    """Print the table."""
    begin = time.monotonic()
    found = cables()
    if len(sys.argv) > 1:
        found = [found[k] for k in np.linspace(0, len(found) - 1, int(sys.argv[1])).astype(int).tolist()]
    with ProcessPoolExecutor(2) as pool:
        whole, *rows = pool.map(iteration_ps, ["", *found])
    for name, took, _ in sorted(rows, key=lambda row: (-row[1], row[0])):
        print(f"{name:22} {format_time(took):>9}  {took / whole[1] - 1:+7.2%}")
    cpu = sum(row[2] for row in (whole, *rows))
    print(f"{'none':22} {format_time(whole[1]):>9}")
    print(f"{len(rows)} cables, {cpu:.0f} CPU-s, {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
