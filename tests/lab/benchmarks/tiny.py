"""What a run costs that has next to nothing to simulate: ``python -m tests.lab.benchmarks.tiny``.

CPU milliseconds in a process that has run it before, as in a sweep or a search: the least and the median of
many, of the whole ``cosim.run`` (``run``), of that with its summary (``summed up``), and of its simulation
alone (``replay``). ``all-reduce`` is a ring of four ranks from a text, ``quickstart`` the scenario.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from statistics import median

import cosim
from cosim.experiment.simulate import Run

ALL_REDUCE = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
ROWS = (("all-reduce", ALL_REDUCE, 60), ("quickstart", "scenarios/quickstart.yaml", 15))


def cpu_ms(make: Callable[[], object], times: int) -> tuple[float, float]:
    """The least, and the median."""

    def each() -> Iterator[float]:
        for _ in range(times):
            began = time.process_time()
            make()
            yield 1e3 * (time.process_time() - began)

    found = list(each())
    return min(found), median(found)


def main() -> None:
    """Print a line for each."""
    logging.disable(logging.WARNING)
    print(f"{'':<12}{'messages':>9}{'run':>16}{'summed up':>16}{'replay':>9}")
    for name, source, times in ROWS:

        def run(source: str = source) -> Run:
            return cosim.run(source)

        def summed_up(source: str = source) -> str:
            return cosim.run(source).summary.digest

        summed_up()
        whole, summary = cpu_ms(run, times), cpu_ms(summed_up, times)
        replays = [run().records.cpu_s for _ in range(times)]
        columns = "".join(f"{one[0]:>9.1f}{one[1]:>7.1f}" for one in (whole, summary))
        print(f"{name:<12}{run().records.num_messages:>9}{columns}{1e3 * min(replays):>9.1f}", flush=True)


if __name__ == "__main__":
    main()
