"""``python -m tests.lab.fuzz``: a table of what was tried, and all that ended otherwise than it should.

Each kind runs in processes of its own, with its share of the time, several kinds side by side. Such a process
makes its world ready once and tries inputs in it, tens of thousands a minute where they are read only; it may
take no more than so much memory, and one that does not come back, or dies, is a find, too. Minutes are the
processor's, so that a busy machine tries as much, later. What is found is told at once, on standard error,
and again below the table.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import pickle
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.lab.fuzz.tally import Tally, cpu_s, run, table

SHARES = {
    "scenarios": 3,
    "importers": 3,
    "traces": 2,
    "captures": 2,
    "models": 2,
    "wire": 3,
    "store": 3,
    "runs": 2,
    "plug-ins": 2,
    "signals": 1,
}
"""Kinds, and how they share the minutes: inputs of the first cost a millisecond, of the last a second."""
_TURN_S = 600.0
"""CPU seconds of all kinds until the first one's next turn, in a process of its own."""
_LATE_S = 3600.0
"""So long, by the wall's clock, a process may take for what is a turn of seconds: others are busy, too."""
_ROUND = 1000
"""Inputs of each target before the next one's turn; a few seconds of each."""
_ROUND_S = 20.0
_MOST_BYTES = 4 << 30
"""What a process may take beside what it had when it was ready; more is a MemoryError, and a find."""


def tried_here(kind: str, seconds: float, seed: int, place: Path) -> None:
    """Inputs of one kind, in this process; how many so far is written to ``place`` after each round."""
    logging.disable(logging.CRITICAL)
    targets = importlib.import_module(f"tests.lab.fuzz.{kind.replace('-', '_')}").targets()
    if kind != "signals":  # its commands have limits of their own
        ready = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (ready + _MOST_BYTES, ready + _MOST_BYTES))
    tally, until, number = Tally(), cpu_s() + seconds, 0
    while (left := until - cpu_s()) > 0:
        tally.add(run(targets, _ROUND, seed * 10_000 + number, seconds=min(left, _ROUND_S * len(targets))))
        number += 1
        whole = place.with_suffix(".new")
        whole.write_bytes(pickle.dumps(tally))
        whole.rename(place)


def _in_memory() -> dict[str, str]:
    """An environment whose temporary files lie in memory, where there is such a place: none is to stay."""
    return {**os.environ, "TMPDIR": "/dev/shm"} if Path("/dev/shm").is_dir() else {**os.environ}


def tried(kind: str, seconds: float, seed: int) -> Tally:
    """The same in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "tally"
        command = [sys.executable, "-W", "ignore", "-m", "tests.lab.fuzz", "--here", kind, str(place)]
        command += ["--seconds", str(seconds), "--seed", str(seed)]
        how = ""
        try:
            done = subprocess.run(command, timeout=_LATE_S, check=False, env=_in_memory())
            if done.returncode:
                how = f"ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            how = "did not come back"
        tally: Tally = pickle.loads(place.read_bytes()) if place.exists() else Tally()
        if how:
            tally.failed[kind] += 1
            tally.failures.append(f"{kind}, seed {seed}: the process {how}")
        return tally


def turns(kinds: Sequence[str], seconds: float, seed: int) -> Iterator[tuple[str, float, int]]:
    """Kind, CPU seconds and seed of one process after the other: each kind in each turn."""
    count = max(1, round(seconds / _TURN_S))
    share = seconds / count / sum(SHARES[kind] for kind in kinds)
    for number in range(count):
        yield from ((kind, share * SHARES[kind], seed + number) for kind in kinds)


def main() -> int:
    """The command line; the number of finds, at most 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="CPU minutes of all kinds together")
    parser.add_argument("--only", choices=SHARES, action="append", help="one kind; repeatable")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="kinds at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--here", nargs=2, metavar=("KIND", "FILE"), help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=60.0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        tried_here(given.here[0], given.seconds, given.seed, Path(given.here[1]))
        return 0
    kinds = [kind for kind in SHARES if kind in (given.only or SHARES)]
    tallies: dict[str, Tally] = defaultdict(Tally)
    planned = [*turns(kinds, 60 * given.minutes, given.seed)]
    with ThreadPoolExecutor(given.processes) as pool:
        for (kind, _, number), found in zip(planned, pool.map(lambda one: tried(*one), planned), strict=True):
            tallies[kind].add(found)
            told = [table(tallies)] if kind == kinds[-1] else []
            told += found.failures
            print(f"{kind}, seed {number}: tried", *told, sep="\n", file=sys.stderr, flush=True)
    print(table(tallies))
    failures = [failure for tally in tallies.values() for failure in tally.failures]
    for failure in failures:
        print(f"\n{failure}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
