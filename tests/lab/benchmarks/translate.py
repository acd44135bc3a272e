"""A pattern of 16,384 ranks streamed out to other formats, in figures.

::

    python -m tests.lab.benchmarks.translate large [--ranks 16384] [--iterations 1] [--to goal,csv]

Each format runs in a process of its own: its peak is that of the process.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cosim


def peak_mb() -> float:
    """Of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def large_scenario(ranks: int) -> cosim.Scenario:
    """A training step, data x tensor parallel: groups of 8 tensor parallel, gradients by halving-doubling."""
    return cosim.loads(
        f"""
name: large
topology: {{kind: switch, endpoints: {ranks}, rate: 400Gbps, latency: 500ns}}
network: fair_share
collectives:
  {{endpoint_delay: 10ns, all_gather: direct, reduce_scatter: direct, all_reduce: halving_doubling}}
jobs:
  - workload:
      kind: operations
      mesh: {{dp: {ranks // 8}, tp: 8}}
      programs:
        - operations:
            - {{name: gather, kind: collective, collective: all_gather, size: 1MiB, axes: [tp]}}
            - {{name: work, kind: compute, duration: 150us, deps: [gather]}}
            - {{name: scatter, kind: collective, collective: reduce_scatter, size: 8MiB, axes: [tp],
               deps: [work]}}
            - {{name: gradients, kind: collective, collective: all_reduce, size: 64MiB, axes: [dp],
               deps: [scatter]}}
"""
    )


def large(ranks: int, to: str, iterations: int) -> None:
    """Stream one format out, and say what it took."""
    scenario = large_scenario(ranks).with_settings({"jobs[0].iterations": iterations})
    from cosim.experiment.translate import source_of

    source_of(scenario)
    before = peak_mb()
    option = {"kind": to, "level": "messages"} if to in ("csv", "parquet") else to
    with tempfile.TemporaryDirectory() as place:
        began, cpu = time.perf_counter(), time.process_time()
        done = cosim.translate(scenario, option, place)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        size = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
    counted = ("messages", "operations", "nodes")
    messages, what = next((e.count, e.what) for e in done.report.entries("written") if e.what in counted)
    print(
        f"{ranks:>6} ranks  {to:<16} {messages:>10,} {what:<10} {took:7.1f} s  {cpu:7.1f} CPU-s  "
        f"{size / 1e6:8.1f} MB written  peak {peak_mb():6.0f} MB ({before:.0f} before)",
        flush=True,
    )


def main() -> None:
    """The command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    streaming = commands.add_parser("large")
    streaming.add_argument("--ranks", type=int, default=16384)
    streaming.add_argument("--to", default="goal,csv,chakra-messages")
    streaming.add_argument("--iterations", type=int, default=1)
    streaming.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    for to in given.to.split(","):
        if given.here:
            large(given.ranks, to, given.iterations)
        else:
            command = [sys.executable, "-m", "tests.lab.benchmarks.translate", "large", "--here"]
            command += ["--ranks", str(given.ranks), "--iterations", str(given.iterations), "--to", to]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
