"""What a run of a scenario takes: ``python -m tests.lab.benchmarks.quickstart``.

Each run is ``cosim run SCENARIO`` as a user starts it, in a process of its own, interpreter and imports
included. Python's own ``.pyc`` files are there.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.inputs import ROOT

SCENARIO = ROOT / "scenarios" / "quickstart.yaml"


def run(scenario: Path) -> tuple[float, float]:
    """(Wall seconds, CPU-seconds of all its processes) of one run."""
    program = "import sys; from cosim.cli import main; sys.exit(main())"
    used, begin = _children_s(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program, "run", str(scenario)],
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
    """Run the scenario, print the medians."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.quickstart", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("scenario", nargs="?", type=Path, default=SCENARIO, help="default: quickstart.yaml")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="how many (3)")
    parser.add_argument("--json", action="store_true", help="{runs, wall_s, cpu_s}, medians")
    given = parser.parse_args(arguments)
    wall, cpu = zip(*(run(given.scenario) for _ in range(given.runs)), strict=True)
    wall_s, cpu_s = round(statistics.median(wall), 2), round(statistics.median(cpu), 2)
    if given.json:
        print(json.dumps({"runs": given.runs, "wall_s": wall_s, "cpu_s": cpu_s}, indent=2))
    else:
        print(f"{given.runs} runs: {wall_s} s, {cpu_s} CPU-s")


if __name__ == "__main__":
    main()
