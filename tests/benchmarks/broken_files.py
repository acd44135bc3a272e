"""Readers of algorithms and topologies fed with broken files: ``python -m tests.benchmarks.broken_files``.

Valid MSCCL, InfraGraph, NCCL, ASTRA-sim network and graph files are damaged (bytes changed, cut, doubled,
words and absurd numbers put in) and read, proved, built. Each is read, or refused with a CosimError; anything
else, or more than ten seconds, is a failure and is shown with its number. Prints how many were tried.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections import Counter

from cosim.errors import CosimError
from tests.formats import topology_files
from tests.formats.msccl import programs

WORDS = (
    b"[", b"{", b"*a", b"&a ", b": ", b"\n- ", b"!!x ", b"2020-99-99", b"-1", b"9" * 12, b"0", b"1e9", b".5",
    b"\xff", b"</", b'"', b"\t", b"~", b"nan", b"inf", b"65536", b"100000",
)  # fmt: skip
SLOW_S = 10.0


def damaged(body: bytes, rng: random.Random) -> bytes:
    """A file with one to six things wrong."""
    made = bytearray(body)
    for _ in range(rng.randint(1, 6)):
        if not made:
            break
        at = rng.randrange(len(made))
        digits = [place for place, byte in enumerate(made) if 48 <= byte <= 57]
        match rng.randrange(5):
            case 0:
                made[at] = rng.randrange(256)
            case 1:
                del made[at : at + rng.randint(1, 150)]
            case 2:
                made[at:at] = made[at : at + rng.randint(1, 400)]
            case 3 if digits:
                at = rng.choice(digits)
                made[at : at + 1] = rng.choice(WORDS)
            case _:
                made[at:at] = rng.choice(WORDS)
    return bytes(made)


def main(cases: int, seed: int) -> int:
    """Try so many files; the number of failures."""
    targets = [*programs.fuzz_targets(), *topology_files.fuzz_targets()]
    said: Counter[tuple[str, str]] = Counter()
    failures = 0
    slowest = 0.0
    for number in range(cases):
        rng = random.Random(f"{seed}/{number}")
        name, seeds, read = targets[number % len(targets)]
        content = damaged(rng.choice(seeds), rng)
        began = time.perf_counter()
        try:
            read(content)
            what = "read"
        except CosimError:
            what = "refused"
        except Exception as error:  # what is looked for
            what = "failed"
            print(f"case {number}: {name}: {type(error).__name__}: {error}")
        took = time.perf_counter() - began
        slowest = max(slowest, took)
        if took > SLOW_S:
            what = "failed"
            print(f"case {number}: {name}: took {took:.1f} s")
        said[name, what] += 1
        failures += what == "failed"
    for name, _, _ in targets:
        counts = ", ".join(f"{said[name, what]} {what}" for what in ("read", "refused", "failed"))
        print(f"{name}: {counts}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{cases} tried, {failures} failures; the slowest took {slowest:.2f} s; peak {peak:.0f} MB")
    return failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(main(given.cases, given.seed) > 0)
