"""``python -m tests.lab.fuzz.edits --sequences 1000``: what a run reads is edited, and the store asked again.

Each sequence edits, at once and often back to what was there before, what a run depends on: the scenario, a
plug-in, what that imports, a file and a folder that it reads. After each edit the store's answer is held
against a run without one. Edits keep the size of a file where they can, and follow each other within a
millisecond: neither size nor time of a file tells of them.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from pathlib import Path
from random import Random

import cosim
from cosim.results.stored_run import StoredRun

_PLUGIN = """
from pathlib import Path
import numpy as np
from cosim.plugins import Placement
from beside import SHIFT

HERE = Path(__file__).parent
LOADED = int((HERE / "loaded.txt").read_text())

class Mine(Placement):
    '''Shifted by all that it reads'''
    def choose(self, wanted):
        shift = SHIFT + LOADED + OWN + int((HERE / "asked.txt").read_text())
        shift += len([*(HERE / "many").iterdir()])
        return np.roll(np.arange(6, dtype=np.int32), shift)[[0, 2, 3, 5]]
"""
_SCENARIO = """
topology: {kind: ring, endpoints: 6, rate: 80Gbps, latency: 0ns}
network: fair_share
events: [{at: 100us, link: "npu0 -> npu1", rate: 20Gbps, until: 300us}]
jobs:
  - workload: {kind: collective, collective: all_to_all, ranks: 4, size: SIZEMB}
    placement: mine.py:Mine
"""


class _Files:
    """Those of a sequence, and edits of them."""

    def __init__(self, folder: Path, draw: Random) -> None:
        self.folder, self.draw = folder, draw
        (folder / "many").mkdir()
        for edit in (self.scenario, self.plugin, self.beside, self.loaded, self.asked, self.many):
            edit()

    def _digit(self) -> str:
        return str(self.draw.randrange(6))

    def scenario(self) -> None:
        (self.folder / "s.yaml").write_text(_SCENARIO.replace("SIZE", str(self.draw.randint(4, 6))))

    def plugin(self) -> None:
        (self.folder / "mine.py").write_text(f"{_PLUGIN}\nOWN = {self._digit()}\n")

    def beside(self) -> None:
        (self.folder / "beside.py").write_text(f"SHIFT = {self._digit()}\n")

    def loaded(self) -> None:
        (self.folder / "loaded.txt").write_text(self._digit())

    def asked(self) -> None:
        """Sometimes under its old time."""
        file = self.folder / "asked.txt"
        before = file.stat().st_mtime_ns if file.exists() else 0
        file.write_text(self._digit())
        if before and self.draw.random() < 0.3:
            os.utime(file, ns=(before, before))

    def many(self) -> None:
        file = self.folder / "many" / self._digit()
        if file.exists():
            file.unlink()
        else:
            file.touch()

    def edit(self) -> str:
        name = self.draw.choice(("scenario", "plugin", "beside", "loaded", "asked", "many"))
        getattr(self, name)()
        return name


def sequence(number: int, steps: int = 8) -> tuple[int, int, list[str]]:
    """One of edits: how many answers, how many of those were the store's, and which of them were stale."""
    draw = Random(number)
    answers, stored, stale = 0, 0, []
    with tempfile.TemporaryDirectory() as place:
        files = _Files(Path(place), draw)
        done = []
        for _ in range(steps):
            done.append(files.edit())
            found = cosim.run(files.folder / "s.yaml", store=files.folder / "store")
            right = cosim.run(files.folder / "s.yaml").digest
            answers += 1
            stored += isinstance(found, StoredRun)
            if found.digest != right:
                stale.append(f"sequence {number}: after {', '.join(done)}")
    return answers, stored, stale


def main() -> int:
    """The command line; 1 where an answer was stale."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.fuzz.edits", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    answers, stored, stale = 0, 0, list[str]()
    for number in range(given.first, given.first + given.sequences):
        found = sequence(number)
        answers, stored, stale = answers + found[0], stored + found[1], stale + found[2]
    print(*stale, sep="\n")
    print(f"{given.sequences:,} sequences, {answers:,} answers, {stored:,} of the store, {len(stale)} stale")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
