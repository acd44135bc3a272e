"""What processes cost: ``python -m tests.lab.benchmarks.processes [MESSAGES]``, a million by default.

CPU seconds of so many transfers, each waited for by a process: by one (each at an instant of its own),
by 1,000 and by 10,000; the peak of memory so far; and CPU milliseconds of the quickstart, opened for
processes of which there are none, and run as ever.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Generator
from typing import Any

import simpy

import cosim
from tests.lab.benchmarks.tiny import cpu_ms

CLUSTER = {
    "topology": {
        "kind": "leaf_spine",
        "leaves": 4,
        "spines": 4,
        "endpoints_per_leaf": 16,
        "rate": "100Gbps",
        "latency": "1us",
    },
    "network": "congestion_unaware",
}
ENDPOINTS = 64
QUICKSTART = "scenarios/quickstart.yaml"


def sends(sim: Any, number: int, count: int) -> Generator[simpy.Event, Any, None]:
    """Sends messages from one endpoint to another, each after the last has come."""
    src, dst = number % ENDPOINTS, (7 * number + 1) % ENDPOINTS
    for _ in range(count):
        yield sim.transfer(src, dst if dst != src else (dst + 1) % ENDPOINTS, 1000)


def transfers(messages: int, processes: int) -> float:
    """CPU seconds of so many messages by so many processes."""
    with cosim.open(CLUSTER) as sim:
        for number in range(processes):
            sim.process(sends(sim, number, messages // processes))
        began = time.process_time()
        sim.run()
        return time.process_time() - began


def opened() -> str:
    """The digest of the quickstart with a simulation that has no process."""
    with cosim.open(QUICKSTART) as sim:
        digest: str = sim.run().digest
    return digest


def main() -> None:
    """Print a line for each."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for processes in (1, 1_000, 10_000):
        took = transfers(messages, processes)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{messages:,} transfers by {processes:6,} processes  {took:6.1f} CPU-s  {peak:5.0f} MiB")
    assert opened() == cosim.run(QUICKSTART).digest
    rows: list[tuple[str, Callable[[], object]]] = [
        ("run", lambda: cosim.run(QUICKSTART)),
        ("opened, without a process", opened),
    ]
    for name, make in rows:
        least, usual = cpu_ms(make, 15)
        print(f"quickstart, {name:28} {least:6.1f} CPU-ms at least, {usual:6.1f} the median")


if __name__ == "__main__":
    main()
