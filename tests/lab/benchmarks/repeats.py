"""Iterations that repeat, beside the same simulated: ``python -m tests.lab.benchmarks.repeats``.

CPU seconds of the simulation, the median of ``--times`` in turns; how many iterations were taken from an
earlier one; whether digests are the same. ``few`` is a run of 3 iterations.
"""

from __future__ import annotations

import argparse
import logging
from statistics import median
from unittest.mock import patch

import cosim
from cosim.engine.replay import Replay
from cosim.experiment.simulate import Run

ROWS = (
    ("quickstart", 300),
    ("nemotron-nano", 100),
    ("hierarchical", 1000),
    ("synthetic", 300),
    ("cluster-queue", 1000),
)


def repeated(name: str, iterations: int) -> Run:
    """The scenario, of so many iterations of each job."""
    jobs = 2 if name == "cluster-queue" else 1
    return cosim.run(f"scenarios/{name}.yaml", {f"jobs[{job}].iterations": iterations for job in range(jobs)})


def simulated(name: str, iterations: int) -> Run:
    """The same, every iteration simulated."""
    with patch.object(Replay, "_why_simulated", lambda _: "to compare"):
        return repeated(name, iterations)


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    logging.disable(logging.WARNING)
    print(
        f"{'':<16}{'iterations':>10}{'taken':>7}{'messages':>12}{'few':>8}{'repeated':>10}{'simulated':>11}"
    )
    for name, iterations in ROWS:
        rounds = [
            (repeated(name, 3), repeated(name, iterations), simulated(name, iterations)) for _ in range(times)
        ]
        few, some, whole = (
            median(run.records.cpu_s for run in column) for column in zip(*rounds, strict=True)
        )
        _, one, other = rounds[0]
        same = "same digest" if one.digest == other.digest else "ANOTHER DIGEST"
        taken, messages = sum(one.records.info["repeated"]), one.records.num_messages
        print(
            f"{name:<16}{iterations:>10}{taken:>7}{messages:>12,}"
            f"{few:>8.3f}{some:>10.3f}{whole:>11.3f}  {same}",
            flush=True,
        )


if __name__ == "__main__":
    main()
