"""A job on thousands of GPUs, the network in the loop: ``python -m tests.lab.benchmarks.scale``.

GPT-3 175B on 1,024 A100s (tp 8, pp 8, dp 16, 1F1B) and Llama 3 405B on 16,384 H100s (tp 8, pp 16, dp 128),
on rail-optimised two-tier fat-trees of full bisection: NIC j of a host hangs on leaf switch j of its group.
1,024 GPUs: leaves of 64 hosts, HDR InfiniBand (64 up, 64 down). 16,384: leaves of 128 hosts, 256 of the 288
ports at 400 Gbps of an NVIDIA Quantum-X800, NDR; gradients in bf16, as with fp32 ones the fullest GPU would
need 83 GB. Each run is a process of its own that has run a small job before, so that nothing is compiled in
it; seconds are of building, folding, simulating and summing up.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

FABRIC = """
topology:
  kind: leaf_spine
  leaves: {leaves}
  spines: {ports}
  endpoints_per_leaf: {ports}
  latency: 500ns
  routing: dmodk
  hosts:
    gpus: 8
    nvlink_rate: {nvlink}
    nvlink_latency: 300ns
    nics: 8
    nic_rate: {nic}
    rails: true
network: fair_share
collectives: {{all_reduce: ring, all_gather: ring, reduce_scatter: ring, all_to_all: direct}}
"""
A100 = {"nvlink": "300GB/s", "nic": "200Gbps"}
H100 = {"nvlink": "450GB/s", "nic": "400Gbps"}
JOBS = {
    "gpt3-175b-1024": (
        FABRIC.format(leaves=16, ports=64, **A100),
        "{kind: model, model: gpt3-175b, gpu: a100-80gb, parallel: {tp: 8, pp: 8, dp: 16}, batch: 512}",
    ),
    "llama3-405b-16384": (
        FABRIC.format(leaves=128, ports=128, **H100),
        "{kind: model, model: llama3-405b, gpu: h100-sxm, parallel: {tp: 8, pp: 16, dp: 128}, batch: 2048,"
        " sharded_optimizer: true, gradient_dtype: bf16}",
    ),
}
"""Fabric and workload of each."""
TARGETS = {"gpt3-175b-1024": "<= 10 s", "llama3-405b-16384": "aim 60 s, 8 GB"}
WARM = "{kind: model, model: {kind: gpt3-1.7b, layers: 4}, gpu: a100-80gb, parallel: {tp: 8, pp: 2, dp: 4}}"


def scenario(fabric: str, workload: str, fold: str = "auto") -> str:
    """A scenario's text."""
    return f"{fabric}fold: {fold}\njobs: [{{name: job, workload: {workload}}}]\n"


def measure(name: str) -> dict[str, object]:
    """Run one here, after a small one, and say what it took."""
    from cosim.experiment.run import run
    from cosim.experiment.scenario import loads

    run(loads(scenario(FABRIC.format(leaves=8, ports=8, **A100), WARM, "always")))
    wall, cpu = time.perf_counter(), time.process_time()
    done = run(loads(scenario(*JOBS[name])))
    job = done.summary.jobs[0]
    assert job.iteration_mean_ps is not None
    return {
        "name": name,
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "ranks": job.num_ranks,
        "messages": done.records.num_messages,
        "iteration_s": job.iteration_mean_ps / 1e12,
        "folding": list(job.folding),
        "target": TARGETS[name],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each in a process of its own, print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.scale", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", default=list(JOBS), help=f"some of {', '.join(JOBS)}")
    parser.add_argument("--here", action="store_true", help="in this process; prints JSON")
    given = parser.parse_args(arguments)
    for name in given.names:
        if given.here:
            print(json.dumps(measure(name)))
            continue
        program = [sys.executable, "-m", "tests.lab.benchmarks.scale", "--here", name]
        done = subprocess.run(program, stdout=subprocess.PIPE, check=True, text=True)
        row = json.loads(done.stdout)
        print(
            f"{name}: {row['iteration_s']:.3f} s simulated in {row['wall_s']:.1f} s"
            f" ({row['cpu_s']:.1f} CPU-s, {row['peak_gb']:.2f} GB at most; {row['target']}),"
            f" {row['messages']:,} messages of {row['ranks']:,} ranks"
        )
        for line in row["folding"]:
            print(f"  {line}")


if __name__ == "__main__":
    main()
