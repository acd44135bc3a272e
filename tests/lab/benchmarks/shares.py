"""Whose the CPU time of a simulation is: ``python -m tests.lab.benchmarks.shares [ROW ...]``.

Rows are those of :mod:`tests.lab.benchmarks.unfolded`, by default ``128``: issue 12's bar is half a
microsecond an operation for everything but the network, each operation's messages included. Samples of Linux'
``perf``, 4,000 a second, while ``Replay.run`` runs, after a small job, so that everything is imported: of the
kernel's functions in ``engine_*.c`` (``engine``), of its others (``network``), and of all else, which is
Python (``python``). ``us/op`` is the simulation's CPU time by operations, ``but`` that without the network's
part.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence

from cosim.engine.replay import Replay
from cosim.kernel.build import SOURCES
from tests.lab.benchmarks.unfolded import ROWS, measure

_DEFINITION = re.compile(r"^(?:static )?(?:inline )?[\w ]+?[ *](\w+)\([^;]*?\) \{$", re.MULTILINE)


def rooms() -> dict[str, str]:
    """Whose each function of the kernel is. One that is inlined counts for its caller."""
    return {
        name: "engine" if path.name.startswith("engine_") else "network"
        for path in SOURCES.glob("*.c")
        for name in _DEFINITION.findall(path.read_text())
    }


def simulate(name: str) -> None:
    """Run a row here, and print what it took and when it was simulated."""
    spans = []
    run = Replay.run

    def timed(self: Replay) -> object:
        begin = time.monotonic()
        try:
            return run(self)
        finally:
            spans.append((begin, time.monotonic()))

    Replay.run = timed  # type: ignore[assignment, method-assign]
    (row,) = (row for row in ROWS if row.name == name)
    done = measure(row)
    print(json.dumps(done | {"begin": spans[-1][0], "end": spans[-1][1]}))


def shares(name: str) -> tuple[dict[str, object], Counter[str]]:
    """(What a row took, samples by whose they are)."""
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/perf.data"
        here = [sys.executable, "-m", "tests.lab.benchmarks.shares", "--here", name]
        record = ["perf", "record", "-q", "-F", "4000", "-k", "mono", "-e", "cpu-clock:u", "-o", data, *here]
        out = subprocess.run(record, check=True, stdout=subprocess.PIPE, text=True).stdout
        done = json.loads(out.splitlines()[-1])
        script = ["perf", "script", "-i", data, "-F", "time,ip,sym"]
        lines = subprocess.run(script, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    whose, known = Counter[str](), rooms()
    for line in lines:
        when, _, symbol = line.strip().partition(": ")
        if done["begin"] <= float(when) <= done["end"]:
            # The compiler names parts of a function name.part.0, and the like.
            function = (symbol.split() or [""])[-1].partition(".")[0]
            whose[known.get(function, "python")] += 1
    return done, whose


def main(names: Sequence[str]) -> None:
    """Print the shares of the rows asked for."""
    if shutil.which("perf") is None:
        sys.exit("perf is not installed: apt-get install linux-perf")
    print(f"{'':<18}{'operations':>11}{'CPU-s':>7}{'network':>9}{'engine':>8}{'python':>8}{'us/op':>7}  but")
    for name in names or ["128"]:
        done, whose = shares(name)
        operations, seconds = int(str(done["operations"])), float(str(done["replay_s"]))
        part = {room: whose[room] / whose.total() for room in ("network", "engine", "python")}
        each = 1e6 * seconds / operations
        print(
            f"{name:<18}{operations:>11,}{seconds:>7.2f}"
            + "".join(
                f"{100 * part[room]:>{width}.0f}%"
                for room, width in (("network", 8), ("engine", 7), ("python", 7))
            )
            + f"{each:>7.2f}{each * (1 - part['network']):>5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        simulate(sys.argv[2])
    else:
        main(sys.argv[1:])
