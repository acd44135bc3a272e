"""Prepared runs: ``python -m tests.lab.benchmarks.prepared [--runs N]``.

A ring all-reduce of four ranks, 24 messages, of which rate and start are free: runs a second of
``run_many`` on one thread and on two, and of a loop in Python; by CPU time of the process, and by the wall.
The digests of some are held against ``cosim.run``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

import cosim

SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 500ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
CHECKED = 10


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.prepared", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--runs", type=int, default=10_000, help="so many (10000)")
    count = parser.parse_args(arguments).runs
    scenario = cosim.loads(SCENARIO)
    prepared = cosim.prepare(scenario, {"topology.rate": "Gbps", "jobs[0].start": "us"})
    draws = np.random.default_rng(1)
    table = {
        "topology.rate": draws.uniform(10, 400, count).tolist(),
        "jobs[0].start": np.round(draws.uniform(0, 100, count), 3).tolist(),
    }
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    runs = prepared.run_many(table)
    for row in range(0, count, max(count // CHECKED, 1)):
        given = {"topology.rate": f"{table['topology.rate'][row]!r}Gbps"}
        given["jobs[0].start"] = f"{table['jobs[0].start'][row]!r}us"
        assert cosim.run(scenario, given).records.digest == runs.digests[row]
    _row("run_many, one thread", count, lambda: prepared.run_many(table, threads=1))
    _row("run_many, two threads", count, lambda: prepared.run_many(table, threads=2))
    _row("a loop in Python", count, lambda: [prepared.run(row) for row in rows])


def _row(name: str, count: int, run: Callable[[], object]) -> None:
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"{name:22} {count / cpu:9,.0f} a CPU-s {count / wall:9,.0f} a s")


if __name__ == "__main__":
    main()
