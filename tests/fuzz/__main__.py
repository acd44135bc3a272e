"""``python -m tests.fuzz``: a table of what was tried, and everything that ended otherwise than it should.

Each kind runs in processes of its own, one after the other, with its share of the minutes; a process that
does not come back is a find, too.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.tally import Tally, run

KINDS = ("scenarios", "importers", "wire", "store", "signals", "plug-ins")
_SLICE_S = 120.0
_LATE_S = 180.0
"""So much longer than its slice a process may take, to be made ready and for its last inputs."""


def tried_here(kind: str, seconds: float, seed: int) -> Tally:
    """Inputs of one kind, in this process."""
    logging.disable(logging.CRITICAL)
    module = importlib.import_module(f"tests.fuzz.{kind.replace('-', '_')}")
    targets = module.targets()
    tally, until, number = Tally(), time.monotonic() + seconds, 0
    while (left := until - time.monotonic()) > 0:
        # hypothesis learns from a thousand examples, and takes longer for each further one
        tally.add(run(targets, 500, seed * 10_000 + number, seconds=left))
        number += 1
    return tally


def tried(kind: str, seconds: float, seed: int) -> Tally:
    """The same in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        answer = Path(place) / "tally"
        command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--here", kind, str(answer)]
        command += ["--seconds", str(seconds), "--seed", str(seed)]
        tally = Tally()
        try:
            done = subprocess.run(command, timeout=seconds + _LATE_S, check=False)
            if done.returncode == 0:
                found: Tally = pickle.loads(answer.read_bytes())
                return found
            how = f"ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            how = "did not come back"
        tally.failed[kind] += 1
        tally.failures.append(f"{kind}, seed {seed}: the process {how}")
        return tally


def main() -> int:
    """The command line; the number of finds, at most 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="of all kinds together")
    parser.add_argument("--only", choices=KINDS, action="append", help="one kind; repeatable")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--here", nargs=2, metavar=("KIND", "FILE"), help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=60.0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        Path(given.here[1]).write_bytes(pickle.dumps(tried_here(given.here[0], given.seconds, given.seed)))
        return 0
    kinds = given.only or list(KINDS)
    total, began = Tally(), time.monotonic()
    share = 60 * given.minutes / len(kinds)
    for kind in kinds:
        left, number = share, given.seed
        while left > 1:
            total.add(tried(kind, min(left, _SLICE_S), number))
            left, number = left - _SLICE_S, number + 1
        print(f"{kind}: {time.monotonic() - began:.0f} s gone by", file=sys.stderr, flush=True)
    print(total)
    for failure in total.failures:
        print(f"\n{failure}")
    return int(bool(total.failures))


if __name__ == "__main__":
    sys.exit(main())
