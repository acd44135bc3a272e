"""What the first and later runs of a scenario take: ``python -m tests.benchmarks.quickstart``.

Each run is ``cosim run SCENARIO`` as a user starts it, in a process of its own, interpreter and imports
included. *first* has an empty numba cache (``NUMBA_CACHE_DIR``), as after installation: what a small run
needs is interpreted. *compiled* has one, too, and compiles it (``COSIM_LOOPS=compiled``). *warm* has the
cache that such a run left. Python's own ``.pyc`` files are there. Runs go in turns, so that a machine that is
busy for a while is so for all.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.inputs import ROOT

SCENARIO = ROOT / "scenarios" / "quickstart.yaml"
KINDS = {"first": "", "compiled": "compiled", "warm": ""}
"""COSIM_LOOPS of each."""


def run(scenario: Path, cache: str, loops: str) -> tuple[float, float]:
    """(Wall seconds, CPU-seconds of all its processes) of one run."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "COSIM_LOOPS": loops}
    program = "import sys; from cosim.cli import main; sys.exit(main())"
    used, begin = _children_s(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, "run", str(scenario)],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    took = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"cosim run {scenario} ended with {done.returncode}")
    return took, _children_s() - used


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the scenario in all ways, print what each took."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.quickstart", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scenario", nargs="?", type=Path, default=SCENARIO, help="default: quickstart.yaml")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="of each kind (3)")
    parser.add_argument("--json", action="store_true", help="a list of {name, runs, wall_s, cpu_s}, medians")
    given = parser.parse_args(arguments)
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in KINDS}
    for _ in range(given.runs):
        with tempfile.TemporaryDirectory() as cache:
            took["first"].append(run(given.scenario, cache, KINDS["first"]))
        with tempfile.TemporaryDirectory() as cache:
            for name in ("compiled", "warm"):
                took[name].append(run(given.scenario, cache, KINDS[name]))
    rows = [
        {
            "name": name,
            "runs": len(times),
            "wall_s": round(statistics.median(wall for wall, _ in times), 2),
            "cpu_s": round(statistics.median(cpu for _, cpu in times), 2),
        }
        for name, times in took.items()
    ]
    if given.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'name':<9}{'runs':>5}{'wall_s':>8}{'cpu_s':>7}")
    for row in rows:
        print(f"{row['name']:<9}{row['runs']:>5}{row['wall_s']:>8}{row['cpu_s']:>7}")


if __name__ == "__main__":
    main()
