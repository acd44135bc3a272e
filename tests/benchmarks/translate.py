"""Importers fed with broken files, and a pattern of 16,384 ranks streamed out: what became of it, in figures.

::

    python -m tests.benchmarks.translate fuzz --cases 20000 [--seed 1] [--only goal]
    python -m tests.benchmarks.translate large [--ranks 16384] [--iterations 1] [--to goal,csv]

``fuzz`` damages valid files (bytes, words and lines are changed, dropped, doubled, swapped between files)
and gives them to every importer. A file is read, or refused with a CosimError; anything else is counted as
a failure and shown with the seed that makes it again. ``large`` runs each format in a process of its own:
its peak is that of the process.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cosim
from cosim.context import Context
from cosim.errors import CosimError
from cosim.formats.chakra.read import ChakraWorkload, RemoteMemory
from cosim.formats.flow_list.read import FlowListWorkload
from cosim.formats.goal.read import GoalWorkload
from cosim.formats.htsim.read import HtsimWorkload
from cosim.formats.tables.read import CsvWorkload, ParquetWorkload

SLOW_S = 5.0
"""Longer than this for a small file counts as a hang."""

_SEEDS = """
topology: {kind: ring, endpoints: 4, rate: 400Gbps, latency: 500ns}
network: fair_share
collectives: {endpoint_delay: 10ns, all_reduce: direct}
jobs:
  - workload:
      kind: operations
      mesh: {dp: 2, tp: 2}
      programs:
        - operations:
            - {name: work, kind: compute, duration: 3us}
            - {name: sum, kind: collective, collective: all_reduce, size: 64KiB, axes: [tp], deps: [work]}
            - {name: all, kind: collective, collective: all_gather, size: 1KiB, deps: [sum]}
"""

READERS: dict[str, Callable[[Path], Any]] = {
    "chakra": lambda folder: ChakraWorkload(
        path="trace", comm_groups="comm_groups.json", memory=RemoteMemory.model_validate(
            {"latency": "1ns", "rate": "50GB/s"}
        )
    ).build(Context(folder)),
    "chakra-messages": lambda folder: ChakraWorkload(path="trace").build(Context(folder)),
    "goal": lambda folder: GoalWorkload(path="schedule.goal").build(Context(folder)),
    "htsim": lambda folder: HtsimWorkload(path="traffic.cm").build(Context(folder)),
    "flow-list": lambda folder: FlowListWorkload(path="flow.txt").build(Context(folder)),
    "csv": lambda folder: CsvWorkload(path=".").build(Context(folder)),
    "parquet": lambda folder: ParquetWorkload(path=".").build(Context(folder)),
}  # fmt: skip
"""Format -> its importer, on a folder that the format wrote."""

_WORDS = (
    b"-1", b"0", b"999999999999999999999", b"1e9", b"nan", b"", b"\x00", b"\xff\xfe", b'"', b"{", b"}",
    b"\n", b",", b"1e999999999", b"rank 0 {", b"trigger", b"->", b"requires", b"num_ranks", b"Nodes",
    b"4294967296", b"inf", b"[[",
)  # fmt: skip


@dataclass
class Fuzzed:
    """What became of the damaged files."""

    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest_s: float = 0.0

    @property
    def cases(self) -> int:
        """Files tried."""
        return sum(self.read.values()) + sum(self.refused.values()) + len(self.failures)

    def __str__(self) -> str:
        lines = [f"{'importer':<16} {'read':>8} {'refused':>8}"]
        lines += [f"{name:<16} {self.read[name]:>8} {self.refused[name]:>8}" for name in READERS]
        lines.append(
            f"{self.cases} damaged files: {len(self.failures)} tracebacks or hangs; "
            f"slowest {self.slowest_s:.2f} s; peak {peak_mb():.0f} MB"
        )
        return "\n".join([*lines, *self.failures])


def peak_mb() -> float:
    """Of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seed_files(folder: Path) -> dict[str, dict[str, bytes]]:
    """Valid files of each format."""
    scenario = cosim.loads(_SEEDS)
    found = {}
    for name in READERS:
        cosim.translate(scenario, name, folder / name)
        files = {file.name: file.read_bytes() for file in sorted((folder / name).iterdir()) if file.is_file()}
        files.pop("translation.json")
        READERS[name](folder / name)  # valid
        found[name] = files
    return found


def damaged(body: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A file with one to four things wrong."""
    made = bytearray(body)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(made) + 1)
        to = min(len(made), at + rng.choice((1, 1, 2, 4, 16, 64)))
        what = rng.randrange(8)
        if what == 0 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            made[at:to] = b""
        elif what == 2:
            made[at:at] = made[at:to] * rng.choice((1, 2, 50))
        elif what == 3:
            made[at:to] = rng.choice(_WORDS)
        elif what == 4:
            made[at:] = b""
        elif what == 5:
            made[at:to] = bytes(rng.randrange(256) for _ in range(to - at))
        elif what == 6:
            made = _lines(made, rng)
        else:
            other = rng.choice(others)
            start = rng.randrange(len(other) + 1)
            made[at:to] = other[start : start + rng.choice((4, 16, 64))]
    return bytes(made)


def _lines(body: bytearray, rng: random.Random) -> bytearray:
    lines = bytes(body).split(b"\n")
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    way = rng.randrange(3)
    if way == 0:
        lines[one], lines[two] = lines[two], lines[one]
    elif way == 1:
        lines.insert(one, lines[two])
    else:
        del lines[one]
    return bytearray(b"\n".join(lines))


def fuzz(cases: int, seed: int, only: str | None = None) -> Fuzzed:
    """Damage files and read them; case n of a seed is always the same."""
    result = Fuzzed()
    signal.signal(signal.SIGALRM, _hangs)
    with tempfile.TemporaryDirectory() as place:
        seeds = seed_files(Path(place) / "seeds")
        folder = Path(place) / "case"
        everything = [body for files in seeds.values() for body in files.values()]
        chosen = [name for name in READERS if only in (None, name)]
        for number in range(cases):
            rng = random.Random(f"{seed}/{number}")
            name = chosen[number % len(chosen)]
            folder.mkdir(exist_ok=True)
            for file in folder.iterdir():
                file.unlink()
            victim = rng.choice(sorted(seeds[name]))
            for file_name, body in seeds[name].items():
                (folder / file_name).write_bytes(
                    damaged(body, rng, everything) if file_name == victim else body
                )
            _case(result, name, folder, f"seed {seed}, case {number}: {name}, {victim}")
    return result


def _case(result: Fuzzed, name: str, folder: Path, label: str) -> None:
    began = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, SLOW_S)
    try:
        READERS[name](folder)
        result.read[name] += 1
    except CosimError:
        result.refused[name] += 1
    except Exception:  # what is looked for
        result.failures.append(f"{label}\n{traceback.format_exc(limit=-4)}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    result.slowest_s = max(result.slowest_s, time.perf_counter() - began)


def _hangs(number: int, frame: object) -> None:
    raise TimeoutError(f"longer than {SLOW_S} s")


def large_scenario(ranks: int) -> cosim.Scenario:
    """A training step, data x tensor parallel: groups of 8 tensor parallel, gradients by halving-doubling."""
    return cosim.loads(
        f"""
name: large
topology: {{kind: switch, endpoints: {ranks}, rate: 400Gbps, latency: 500ns}}
network: fair_share
collectives:
  {{endpoint_delay: 10ns, all_gather: direct, reduce_scatter: direct, all_reduce: halving_doubling}}
jobs:
  - workload:
      kind: operations
      mesh: {{dp: {ranks // 8}, tp: 8}}
      programs:
        - operations:
            - {{name: gather, kind: collective, collective: all_gather, size: 1MiB, axes: [tp]}}
            - {{name: work, kind: compute, duration: 150us, deps: [gather]}}
            - {{name: scatter, kind: collective, collective: reduce_scatter, size: 8MiB, axes: [tp],
               deps: [work]}}
            - {{name: gradients, kind: collective, collective: all_reduce, size: 64MiB, axes: [dp],
               deps: [scatter]}}
"""
    )


def large(ranks: int, to: str, iterations: int) -> None:
    """Stream one format out, and say what it took."""
    scenario = large_scenario(ranks).with_settings({"jobs[0].iterations": iterations})
    from cosim.experiment.translate import source_of

    source_of(scenario)
    before = peak_mb()
    option = {"kind": to, "level": "messages"} if to in ("csv", "parquet") else to
    with tempfile.TemporaryDirectory() as place:
        began, cpu = time.perf_counter(), time.process_time()
        done = cosim.translate(scenario, option, place)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        size = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
    counted = ("messages", "operations", "nodes")
    messages, what = next((e.count, e.what) for e in done.report.entries("written") if e.what in counted)
    print(
        f"{ranks:>6} ranks  {to:<16} {messages:>10,} {what:<10} {took:7.1f} s  {cpu:7.1f} CPU-s  "
        f"{size / 1e6:8.1f} MB written  peak {peak_mb():6.0f} MB ({before:.0f} before)",
        flush=True,
    )


def main() -> None:
    """The command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True)
    fuzzing = commands.add_parser("fuzz")
    fuzzing.add_argument("--cases", type=int, default=7000)
    fuzzing.add_argument("--seed", type=int, default=1)
    fuzzing.add_argument("--only", choices=list(READERS))
    streaming = commands.add_parser("large")
    streaming.add_argument("--ranks", type=int, default=16384)
    streaming.add_argument("--to", default="goal,csv,chakra-messages")
    streaming.add_argument("--iterations", type=int, default=1)
    streaming.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    if given.command == "fuzz":
        result = fuzz(given.cases, given.seed, given.only)
        print(result)
        sys.exit(1 if result.failures else 0)
    for to in given.to.split(","):
        if given.here:
            large(given.ranks, to, given.iterations)
        else:
            command = [sys.executable, "-m", "tests.benchmarks.translate", "large", "--here"]
            command += ["--ranks", str(given.ranks), "--iterations", str(given.iterations), "--to", to]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
