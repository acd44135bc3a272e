"""Exports run by the programs that they are written for, their times beside ours.

::

    HTSIM_ROOT=... LOGGOPSIM=... ASTRASIM_ROOT=... python -m tests.lab.validation.consumers

A row for each program that is there (``tests/formats/consumers.py`` says where each is looked for): its
version, the scenario, how many flows or ranks ended of how many, and when the last did, there and here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import cosim
from cosim.experiment.scenario import Scenario
from tests.formats.consumers import FAT_TREE, TRAINING, Ended, astra_sim, htsim, loggopsim

HIERARCHICAL = Path(__file__).parents[3] / "scenarios" / "hierarchical.yaml"


def version_of(path: str) -> str:
    """The commit of the clone that a path is in."""
    place = Path(path)
    found = subprocess.run(
        ["git", "-C", place if place.is_dir() else place.parent, "rev-parse", "--short=7", "HEAD"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return found.stdout.strip() or "unknown"


def main() -> int:
    """Print the table; 1 where something did not run to its end."""
    rows: tuple[tuple[str, str, Scenario, Callable[[Path, Scenario], tuple[Ended, int]]], ...] = (
        ("htsim", "HTSIM_ROOT", cosim.loads(FAT_TREE), htsim),
        ("goal", "LOGGOPSIM", cosim.loads(TRAINING), loggopsim),
        (
            "astra-sim",
            "ASTRASIM_ROOT",
            cosim.load(HIERARCHICAL, {"network": "congestion_unaware"}),
            astra_sim,
        ),
    )
    good = True
    print("format     version  scenario                     ended       theirs ms      ours ms        by")
    for name, variable, scenario, run in rows:
        with tempfile.TemporaryDirectory() as folder:
            try:
                theirs, count = run(Path(folder), scenario)
            except pytest.skip.Exception as why:
                print(f"{name:<9}  {why}")
                continue
        ours = cosim.run(scenario).records.end_ps
        good &= theirs.count == count
        print(
            f"{name:<9}  {version_of(os.environ[variable])}  {scenario.name:<26} {theirs.count:>4}/{count:<4}"
            f" {theirs.end_ps / 1e9:>14.6f} {ours / 1e9:>12.6f} {100 * (theirs.end_ps / ours - 1):>+8.3f} %"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
