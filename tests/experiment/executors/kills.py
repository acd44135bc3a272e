"""``python -m tests.experiment.executors.kills [TRIES]``: sweeps on Dask whose processes are killed.

In turns the worker, the scheduler and the client of a sweep of 12 runs are killed after 1 to 11 runs have
begun. The sweep has to end whole, or the same command has to, without running again what was kept.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

from tests.experiment.executors.test_executors import check_killed


def main() -> int:
    """The command line; 1 where something was lost."""
    tries = int(sys.argv[1]) if len(sys.argv) > 1 else 33
    tried: Counter[str] = Counter()
    lost = 0
    for number in range(tries):
        who, after = ("worker", "scheduler", "client")[number % 3], 1 + number // 3 % 11
        tried[who] += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                check_killed(Path(folder), who, after)
            except AssertionError:
                lost += 1
                print(f"{who} after {after}: {traceback.format_exc()}", flush=True)
        print(f"{who} killed after {after} runs: {lost} lost of {number + 1}", flush=True)
    print(", ".join(f"{who} {count}" for who, count in tried.items()), f": {lost} lost")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
