"""DeepSeek's trace of expert parallelism, beside ours: ``python -m tests.lab.validation.expert_trace TRACE``.

TRACE is ``train.json`` of github.com/deepseek-ai/profile-data: one of 64 H800s, a forward and a backward
chunk of four MoE layers each under DualPipe. It is a Kineto trace without an execution trace, and says no
bytes. These follow from DeepSeek-V3: 4,096 tokens of 7,168 numbers go to experts on four hosts each, once to
a host; dispatched as FP8 with a scale of four bytes for each 128 numbers, combined as BF16. DeepEP's own
figures, alone on 64 H800s with 400 Gb/s, count the same bytes: 46 and 45 GB/s (its README of 2025-02-24).

A row for each kernel: how often, milliseconds in the trace from least to most, how much of it another
stream computes meanwhile, ours on 8 hosts, and what DeepEP's figure makes.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import cosim

TOKENS, HOSTS_EACH, HIDDEN = 4096, 4, 7168
BYTES = {
    "dispatch": TOKENS * HOSTS_EACH * (HIDDEN + HIDDEN // 128 * 4),
    "combine": TOKENS * HOSTS_EACH * HIDDEN * 2,
}
ALONE_BYTES_PER_S = {"dispatch": 46e9, "combine": 45e9}
SCENARIO = """
topology:
  {{kind: leaf_spine, leaves: 8, spines: 8, endpoints_per_leaf: 8, latency: 1us, routing: dmodk,
    hosts: {{gpus: 8, nvlink_rate: 160GB/s, nvlink_latency: 300ns, nics: 8, nic_rate: 400Gbps, rails: true}}}}
network: fair_share
jobs:
  - workload:
      kind: pytorch
      kineto: {trace}
      libraries:
        - kind: names
          kernels: {{"internode::(dispatch|combine)": all_to_all, "internode::": barrier}}
          sizes: {{"internode::dispatch": {dispatch}B, "internode::combine": {combine}B, "internode::": 0B}}
"""


def measured(trace: Path, kernel: str) -> list[tuple[float, float]]:
    """(milliseconds, part of it that another stream computes) of each such kernel, from the plain JSON."""
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    kernels: list[dict[str, Any]] = [one for one in events if one.get("cat") == "kernel"]
    work = sorted(
        (one["ts"], one["ts"] + one["dur"]) for one in kernels if "ep::internode" not in one["name"]
    )
    found = []
    for one in kernels:
        if not re.search(rf"internode::{kernel}\b", one["name"]):
            continue
        begin, end = one["ts"], one["ts"] + one["dur"]
        beside = sum(max(0, min(end, last) - max(begin, first)) for first, last in work)
        found.append((one["dur"] / 1e3, beside / one["dur"]))
    return found


def main(trace: Path) -> None:
    """Print the table, and the step replayed on these bytes."""
    summary = cosim.run(cosim.loads(SCENARIO.format(trace=trace.resolve(), **BYTES))).summary
    ours = {one.size_bytes: one for one in summary.collectives if one.collective == "all_to_all"}
    print("kernel    count  trace, ms    computes  ours, ms  DeepEP alone, ms")
    for kernel, size in BYTES.items():
        found = measured(trace, kernel)
        times = [time for time, _ in found]
        beside = sum(time * part for time, part in found) / sum(times)
        one = ours[size]
        assert one.count == len(found)
        alone = size / ALONE_BYTES_PER_S[kernel] * 1e3
        print(
            f"{kernel:9} {len(found):5}  {min(times):.2f} to {max(times):.2f}  {beside:8.0%}  "
            f"{one.mean_ps / 1e9:8.2f}  {alone:16.2f}"
        )
    print(f"the step: {summary.end_ps / 1e9:.1f} ms on ours")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
