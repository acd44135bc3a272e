"""Replay the cases of an ASTRA-sim reference file and compare the times, message by message.

::

    python -m tests.lab.validation.astra_sim shared/data/reference/astra_sim_analytical.json

Every case becomes the scenario that a user would write for it, goes through ``cosim``'s own scenario loader
and run, and has every message simulated; nothing is taken from closed forms. Compared are the last and the
first rank's finish, the largest exposed time as ASTRA-sim reports it, and each rank's finish where the case
has them. Exit status 0 if at least 99 % match within 1 ns.

Where cosim means to differ:

- A direct all-reduce on links that make a rank's messages arrive apart. ASTRA-sim lets its second round go
  message by message as reductions end, so that sums leave before they are complete; here all must be there.
- A double binary tree for anything but an all-reduce is refused. ASTRA-sim runs an all-reduce instead.
- Of operations that become ready at one instant, the lowest starts first. ASTRA-sim takes them as the events
  come, so that another may have taken the stream.
- A process group of some of the ranks is carried as one of all is. ASTRA-sim gives it an endpoint delay of
  10 ns, one ring over all dimensions, and chunks of at least a byte for each NPU of the system.
- Ties at a link that only the order of events further back would break, and the order in which the queues of
  two operations without a pause between them begin.
- Chunks of ranks that are out of step, over several dimensions, where first come, first served could have
  them wait for each other in a circle.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from cosim import CosimError, loads, run
from cosim.units import PS_PER_NS
from tests.inputs import BESIDE
from tests.lab.validation.astra_sim_case import Case, scenario_of

ENOUGH = 0.99
WITHIN_PS = PS_PER_NS


@dataclass(frozen=True)
class Outcome:
    """One replayed case. ``differences`` are (what, ours in ns, theirs in ns) of those beyond 1 ns."""

    name: str
    differences: tuple[tuple[str, float, float], ...] = ()
    error: str = ""
    messages: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def matches(self) -> bool:
        """Every time agrees."""
        return not self.differences and not self.error

    def __str__(self) -> str:
        if self.error:
            return f"{self.name}: {self.error}"
        return "\n".join(
            f"{self.name}: {what}: ours {ours:.3f}, theirs {theirs:.0f} ns"
            for what, ours, theirs in self.differences
        )


def replay(case: Case, folders: Sequence[Path], release: str = "network") -> Outcome:
    """Run one case as ``cosim run`` would; ``folders`` are where its files may be."""
    began = time.process_time()
    scenario, notes = scenario_of(case, *folders)
    scenario["release"] = release
    try:
        # Through YAML text, so that nothing goes by another way than a user's file.
        done = run(loads(yaml.safe_dump(scenario), base=folders[0], name=str(case["name"])))
    except CosimError as error:
        return Outcome(case["name"], error=f"{type(error).__name__}: {error}", notes=tuple(notes))
    finish = done.records.finish_ps[0]
    ours = {
        "sim_ns_max": int(finish.max()),
        "sim_ns_min": int(finish.min()),
        "exposed_max": done.summary.jobs[0].exposed_astra.max_ps,
    }
    theirs = {key: case[key] for key in ours if case.get(key) is not None}
    for rank, ns in (case.get("per_npu") or {}).items():
        ours[f"rank {rank}"], theirs[f"rank {rank}"] = int(finish[int(rank)]), ns
    return Outcome(
        case["name"],
        differences=tuple(
            (key, ours[key] / PS_PER_NS, float(ns))
            for key, ns in theirs.items()
            if abs(ours[key] - ns * PS_PER_NS) > WITHIN_PS
        ),
        messages=done.records.num_messages,
        seconds=time.process_time() - began,
        notes=tuple(notes),
    )


def read(file: Path) -> list[Case]:
    """The cases of a reference file: its ``cases``, or a bare list."""
    found = json.loads(file.read_text(encoding="utf-8"))
    cases: list[Case] = found["cases"] if isinstance(found, dict) else found
    return cases


def data_folders(file: Path) -> list[Path]:
    """Where the files that a reference file names may be: beside its folder, or the shared data."""
    return [file.resolve().parent.parent, BESIDE]


def replay_all(cases: Sequence[Case], folders: Sequence[Path], release: str, jobs: int) -> Iterator[Outcome]:
    """Each case's outcome, in order, on ``jobs`` processes."""
    one = partial(replay, folders=folders, release=release)
    if jobs == 1:
        yield from map(one, cases)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, cases, chunksize=4)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "file", type=Path, help="reference file; its `workload` paths start at its folder's parent"
    )
    parser.add_argument("--only", metavar="SUBSTRING", default="", help="cases whose name has this in it")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N of them")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="processes")
    parser.add_argument("--release", choices=["network", "engine"], default="network")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="list the N that took longest")
    given = parser.parse_args(arguments)
    cases = [case for case in read(given.file) if given.only in case["name"]][: given.limit]
    if not cases:
        parser.error(f"{given.file} has no case with {given.only!r} in its name")
    began = time.perf_counter()
    outcomes = list(replay_all(cases, data_folders(given.file), given.release, given.jobs))
    wall = time.perf_counter() - began

    for outcome in outcomes:
        if not outcome.matches:
            print(outcome)
    for note, count in Counter(note for outcome in outcomes for note in outcome.notes).items():
        print(f"note, {count} cases: {note}")
    for outcome in sorted(outcomes, key=lambda o: -o.seconds)[: given.slowest]:
        print(f"{outcome.seconds:.2f} s, {outcome.messages} messages: {outcome.name}")
    messages, seconds = sum(o.messages for o in outcomes), sum(o.seconds for o in outcomes)
    matched = sum(outcome.matches for outcome in outcomes)
    print(f"{messages} messages simulated in {seconds:.1f} CPU-s ({wall:.1f} s)")
    print(f"matched {matched} of {len(outcomes)} within 1 ns")
    return 0 if matched >= ENOUGH * len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
