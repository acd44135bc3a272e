"""``python -m tests.network.referee --worlds 100000``: any number of worlds before the referee."""

from __future__ import annotations

import argparse
import sys

from tests.network.referee.compare import compare


def main() -> int:
    """How many worlds came to the same; 1 where one did not."""
    parser = argparse.ArgumentParser(prog="python -m tests.network.referee", description=__doc__)
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first one's number")
    given = parser.parse_args()
    found = compare(range(given.first, given.first + given.worlds))
    print(*found.wrong, sep="\n")
    print(found)
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
