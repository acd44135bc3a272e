"""MLTCP over each control; jobs that share a link: ``python -m tests.lab.benchmarks.mltcp [SECTION ...]``.

``settle``: does a control let the one who is further on have more, and how soon? ``parting``: from random
offsets, how many jobs part within twenty iterations, by control, iteration length and number of jobs, beside
an ideal fluid. ``unequal``: jobs of different periods, which can't part. ``unfair``: DCQCN with two timers,
by how much of an iteration is communication.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.results.render.text import align

# As pytest does: helpers of other rooms' tests are modules of their own.
from tests.lab.validation.interleaved import Job, alone, ideal, mltcp, run, shares

GBPS, MTU = 50, 4096
OVER = ("dctcp", "newreno", "cubic", "hpcc", "dcqcn", "timely", "swift", "{kind: swift, fs_range: 0us}")
_NAMES = {"{kind: swift, fs_range: 0us}": "swift, fs_range 0"}
LENGTHS_MS = (10, 100, 1000)
OFFSETS = 8
_LAST = 10


def settle() -> str:
    """A row for each control: its shares, and how long they take."""
    rows = [["over", "its share", "from 1 / 2 to 8 / 9", "63 % of it after", "90 % of it"]]
    for over in OVER:
        found = shares(over, GBPS, MTU, 1000, 100)
        final = float(found[len(found) // 2 :].mean())
        smooth = np.convolve(found, np.ones(10) / 10, "valid")
        cells = [f"{np.argmax(smooth >= part * final) * 0.1 + 0.5:.1f} ms" for part in (0.63, 0.9)]
        rows.append([_NAMES.get(over, over), f"{final:.3f}", f"{(final - 0.5) / (8 / 9 - 0.5):.0%}", *cells])
    note = f"of {GBPS} Gb/s (MTU {MTU}), a flow at r = 1 that joins one at r = 0: by F it would have 8 / 9"
    return "\n".join([note, "", *align(rows)])


def trials(count: int, length_us: int, used: float) -> list[list[Job]]:
    """Jobs that communicate for ``used`` of the time together, at random offsets."""
    rng = np.random.default_rng(1)
    send = int(length_us * used / count)
    return [
        [Job(length_us - send, send, int(at)) for at in rng.integers(0, length_us, count)]
        for _ in range(OFFSETS)
    ]


def parted(times: Sequence[NDArray[np.float64]], length_ms: float) -> bool:
    """The mean of each job's last ten iterations is within 1 % of what it takes alone."""
    return all(float(one[-_LAST:].mean()) <= 1.01 * length_ms for one in times)


def parting() -> str:
    """Fractions parted."""
    head = [f"{count} x {length} ms" for count in (2, 3) for length in LENGTHS_MS]
    rows = [["over", *head]]
    row = ["ideal fluid"]
    for count in (2, 3):
        for length in LENGTHS_MS:
            tried = [ideal(jobs) for jobs in trials(count, 1000 * min(length, 100), 0.85)]
            row.append(f"{sum(parted(one, min(length, 100)) for one in tried)}/{OFFSETS}")
    rows.append(row)
    for over in OVER:
        row = [_NAMES.get(over, over)]
        for count in (2, 3):
            for length in LENGTHS_MS:
                tried_jobs = trials(count, 1000 * length, 0.85)
                own = alone(mltcp(over), tried_jobs[0][0], GBPS, MTU)
                found = [parted(run(mltcp(over), jobs, GBPS, MTU), own) for jobs in tried_jobs]
                row.append(f"{sum(found)}/{OFFSETS}")
        print(*row, file=sys.stderr, flush=True)
        rows.append(row)
    note = (
        f"jobs x iteration, 85 % of {GBPS} Gb/s wanted, MTU {MTU}, {OFFSETS} random offsets, 30 iterations: "
        "how often\neach job's last ten take no more than 1.01 of one alone"
    )
    return "\n".join([note, "", *align(rows)])


LONG, SHORT = Job(65_000, 35_000, 0, 24), Job(17_500, 32_500, 0, 48)
"""100 and 50 ms with 35 and 65 % communication: all of the link, if they could be placed."""


def unequal() -> str:
    """Their iterations, in periods: the means of both, and the longest of the short one."""
    rows = [["over", "long: mean", "short: mean", "short: longest", "of offsets: mean", "longest"]]
    offsets = [round(100_000 * k / OFFSETS) for k in range(OFFSETS)]
    for over in ("", *OVER[:5], OVER[7]):
        tried = []
        for at in offsets:
            jobs = [LONG._replace(start_us=at), SHORT]
            long, short = run(mltcp(over), jobs, GBPS, MTU) if over else ideal(jobs)
            tried.append([long[10:20].mean() / 100, short[20:40].mean() / 50, short[20:40].max() / 50])
        mean = np.median(tried, axis=0)
        worst = np.max(tried, axis=0)
        cells = [*mean.tolist(), max(worst[:2]), worst[2]]
        rows.append([_NAMES.get(over, over) or "ideal fluid", *(f"{one:.3f}" for one in cells)])
    note = (
        "periods of 100 and 50 ms with 35 and 65 % communication, iterations 20 to 40 of the short job;\n"
        f"median and most of {OFFSETS} offsets"
    )
    return "\n".join([note, "", *align(rows)])


def unfair() -> str:
    """Two equal jobs of 255 ms under DCQCN: with equal timers and with 55 beside 300 us."""
    rows = [["communication", "equal, together", "equal, any offset", "55 and 300 us", "faster", "at most"]]
    for send in (51_000, 76_500, 102_000, 114_000, 127_500):
        job = Job(255_000 - send, send, 0, 16)
        together = run("dcqcn", [job, job], GBPS, MTU)
        rng = np.random.default_rng(1)
        anywhere = [
            np.mean(
                [one[8:].mean() for one in run("dcqcn", [job, job._replace(start_us=int(at))], GBPS, MTU)]
            )
            for at in rng.integers(0, 255_000, OFFSETS)
        ]
        slow = job._replace(weight=55 / 300)
        apart = run("dcqcn", [job, slow], GBPS, MTU)
        fair, better = (np.mean([one[8:].mean() for one in times]) for times in (together, apart))
        cells = [f"{one:.0f} ms" for one in (fair, np.mean(anywhere), better)]
        rows.append([f"{send / 2550:.0f} %", *cells, f"{fair / better:.2f}x", f"{1 + send / 255_000:.2f}x"])
    note = f"c + d = 255 ms, {GBPS} Gb/s, iterations 9 to 16; at most: from c + 2 d to c + d"
    return "\n".join([note, "", *align(rows)])


SECTIONS = {"settle": settle, "parting": parting, "unequal": unequal, "unfair": unfair}


def main(names: Sequence[str]) -> None:
    """Print the sections asked for, or all."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        sys.exit(f"no section {unknown[0]}; there are: {', '.join(SECTIONS)}")
    for name in names or SECTIONS:
        began = time.process_time()
        print(f"== {name}\n\n{SECTIONS[name]()}\n\n{time.process_time() - began:.0f} CPU-s\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
