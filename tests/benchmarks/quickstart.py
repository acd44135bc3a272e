"""Wall time of the first and of later runs of a scenario: ``python -m tests.benchmarks.quickstart``.

Each run is ``cosim run SCENARIO`` as a user starts it, in a process of its own, interpreter and imports
included. *cold* has an empty numba cache (``NUMBA_CACHE_DIR``), as after installation; Python's own ``.pyc``
files are there. *warm* has the cache that a run before it left.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.inputs import ROOT

SCENARIO = ROOT / "scenarios" / "quickstart.yaml"
TARGETS = {"cold": "<= 10 s", "warm": "<= 2 s"}


def run(scenario: Path, cache: str) -> float:
    """Seconds that one run takes."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    program = "import sys; from cosim.cli import main; sys.exit(main())"
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, "run", str(scenario)],
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    took = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"cosim run {scenario} ended with {done.returncode}")
    return took


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the scenario cold and warm, print both."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.quickstart", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scenario", nargs="?", type=Path, default=SCENARIO, help="default: quickstart.yaml")
    parser.add_argument("--cold", type=int, default=3, metavar="N", help="runs with an empty cache (3)")
    parser.add_argument("--warm", type=int, default=5, metavar="N", help="runs with a full one (5)")
    parser.add_argument("--json", action="store_true", help="a list of {name, runs, best_s, median_s}")
    given = parser.parse_args(arguments)
    cold, warm = [], []
    for _ in range(given.cold):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(run(given.scenario, cache))
    with tempfile.TemporaryDirectory() as cache:
        run(given.scenario, cache)
        warm = [run(given.scenario, cache) for _ in range(given.warm)]
    rows = [
        {
            "name": name,
            "runs": len(times),
            "best_s": round(min(times), 2),
            "median_s": round(statistics.median(times), 2),
        }
        for name, times in (("cold", cold), ("warm", warm))
        if times
    ]
    if given.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'name':<6}{'runs':>5}{'best_s':>9}{'median_s':>10}  target")
    for row in rows:
        target = TARGETS[str(row["name"])]
        print(f"{row['name']:<6}{row['runs']:>5}{row['best_s']:>9}{row['median_s']:>10}  {target}")


if __name__ == "__main__":
    main()
