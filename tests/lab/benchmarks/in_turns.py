"""Small flow lists by another version and by this one: ``python -m tests.lab.benchmarks.in_turns FOLDER``.

``FOLDER`` is a checkout of the other version. CPU milliseconds of a whole run that reads a flow list from a
file, and of ``fair_share`` alone (``by_run`` and ``by_network`` of :mod:`tests.lab.benchmarks.simgrid`, on 64
hosts), of a process for each version that has run all of it before, without the garbage collector. The
processes take turns, each with the least of three runs a turn, so that whatever else the machine does meets
both: ``ratio`` is the median, over sixty turns, of this version's to the other's. Before it are the least and
the median of both.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tests.lab.benchmarks.simgrid import by_network, by_run, fabric, permutation, poisson

TURNS, RUNS, HOSTS = 60, 3, 64
_TAKE_TURNS = "--take-turns"
CASES = {
    "star permutation": ("star", permutation, 0),
    "star poisson 500": ("star", poisson, 500),
    "star poisson 1000": ("star", poisson, 1000),
    "star poisson 2000": ("star", poisson, 2000),
    "star poisson 4000": ("star", poisson, 4000),
    "4:1 permutation": ("fat-tree", permutation, 0),
    "4:1 poisson 500": ("fat-tree", poisson, 500),
}


def take_turns() -> None:
    """What a version's process does: for each line with a case, print its milliseconds, whole and alone."""
    made = {name: (fabric(on, HOSTS), traffic(HOSTS, count)) for name, (on, traffic, count) in CASES.items()}
    with tempfile.TemporaryDirectory() as folder:
        for topology, flows in made.values():
            by_run(topology, flows, Path(folder))
            by_network(topology, flows)
        gc.disable()
        print("ready", flush=True)
        for line in sys.stdin:
            topology, flows = made[line.strip()]
            by_run(topology, flows, Path(folder))  # what the other one left in the caches is gone
            whole = min(by_run(topology, flows, Path(folder)) for _ in range(RUNS))
            alone = min(by_network(topology, flows)[0] for _ in range(RUNS))
            gc.collect(0)
            print(1e3 * whole, 1e3 * alone, flush=True)


def start(folder: Path) -> subprocess.Popen[str]:
    """A process of the version in a folder."""
    return subprocess.Popen(
        [sys.executable, "-P", __file__, _TAKE_TURNS],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "COSIM_LOOPS": "compiled"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(process: subprocess.Popen[str], case: str = "") -> list[str]:
    """The words of a process' next line, to a case if one is given."""
    assert process.stdin is not None
    assert process.stdout is not None
    if case:
        print(case, file=process.stdin, flush=True)
    return process.stdout.readline().split()


def main(names: Sequence[str]) -> None:
    """Measure in turns, and print a line for each case."""
    if len(names) != 1:
        sys.exit(__doc__)
    processes = [start(Path(names[0]).resolve()), start(Path(__file__).parents[3])]
    for process in processes:
        assert ask(process) == ["ready"]
    print(f"{'':<20}{'':>6}{'other':>16}{'this':>16}{'ratio':>8}")
    for case in CASES:
        turns = []
        for turn in range(TURNS):
            order = processes if turn % 2 else processes[::-1]
            said = {id(one): [*map(float, ask(one, case))] for one in order}
            turns.append([said[id(one)] for one in processes])
        for k, what in enumerate(("whole", "alone")):
            other, this = ([turn[version][k] for turn in turns] for version in (0, 1))
            ratio = median(b / a for a, b in zip(other, this, strict=True))
            columns = "".join(f"{min(one):>8.2f}{median(one):>8.2f}" for one in (other, this))
            print(f"{case:<20}{what:>6}{columns}{ratio:>8.3f}", flush=True)
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    if sys.argv[1:] == [_TAKE_TURNS]:
        take_turns()
    else:
        main(sys.argv[1:])
