"""Stores and executors: ``python -m tests.lab.benchmarks.sweeps [--trials N] [--runs N] [--stored N]
[--kills N]``; 0 leaves a part out.

What a trial of a sweep takes beside ``cosim.run`` with the same settings, which gives the same digest.

What two Dask workers take for runs that sleep (a machine at work has no cores to spare), over what they would
take at best; the same sweep again, of which nothing is run; listing a store of many runs; and what is left,
and what comes of it, when a worker, the scheduler or the client is killed at random moments.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import cosim
from cosim.experiment.store.runs import NewRun, open_store
from tests.experiment.executors.cluster import dask_cluster, write_sweep
from tests.experiment.executors.test_executors import check_killed

from .scale import JOBS, scenario

WHO = ("worker", "scheduler", "client")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.sweeps", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--trials", type=int, default=20, help="of each sweep beside cosim.run (20)")
    parser.add_argument("--runs", type=int, default=1000, help="of the sweep on two workers (1000; 0: none)")
    parser.add_argument("--seconds", type=float, default=1.0, help="that each of them sleeps (1)")
    parser.add_argument("--stored", type=int, default=10_000, help="of the store that is listed (10000)")
    parser.add_argument("--kills", type=int, default=10, help="of each of --who (10)")
    parser.add_argument("--who", nargs="+", default=WHO, choices=WHO, help="is killed (all three)")
    given = parser.parse_args(arguments)
    if given.trials:
        _trials(given.trials)
    if given.runs:
        with tempfile.TemporaryDirectory() as folder:
            _sweep(Path(folder), given.runs, given.seconds)
    if given.stored:
        with tempfile.TemporaryDirectory() as folder:
            _listing(Path(folder), given.stored)
    if given.kills:
        _kills(given.kills, given.who)


def _trials(count: int) -> None:
    latencies = [f"{500 + 10 * k}ns" for k in range(count)]
    scenarios = {
        "quickstart": cosim.load("scenarios/quickstart.yaml"),
        "llama3-70b, 64 GPUs": cosim.load("scenarios/llama3-70b.yaml"),
        "GPT-3 175B, 1,024 GPUs": cosim.loads(scenario(*JOBS["gpt3-175b-1024"])),
    }
    for name, one in scenarios.items():
        _summed_up(one, latencies[:1])
        single, digests = _cpu(partial(_summed_up, one, latencies))
        swept, done = _cpu(partial(cosim.sweep, one, {"latency": {"topology.latency": latencies}}))
        assert done.trials.digest.tolist() == digests
        print(f"{name}: {swept / count:.3f} CPU-s a trial, cosim.run and its summary {single / count:.3f}")


def _summed_up(scenario: cosim.Scenario, latencies: Sequence[str]) -> list[str]:
    return [cosim.run(scenario, {"topology.latency": one}).summary.digest for one in latencies]


def _sweep(folder: Path, runs: int, seconds: float) -> None:
    sweep = cosim.Sweep.load(write_sweep(folder, runs=runs, sleep=seconds))
    warm = sweep.with_settings({"seeds": [10**6, 10**6 + 1], "scenario.jobs[0].placement.sleep": 0.0})
    with dask_cluster(folder) as cluster:
        cosim.sweep(warm, executor=cluster.settings)  # both workers have compiled what they need
        took = _wall(lambda: cosim.sweep(sweep, executor=cluster.settings, store=folder / "store"))
    ideal = runs * seconds / 2
    print(f"{runs} runs of {seconds:g} s, two Dask workers: {took:.1f} s, {took / ideal:.3f} of the ideal")
    words = ["run", "sweep.yaml", "--store", "store", "--workers", "2", "--quiet"]
    print(f"the same again, from the store: {_command(folder, *words)}")


def _listing(folder: Path, count: int) -> None:
    cosim.sweep(_SMALL, store=folder)
    store = open_store(folder)
    [entry] = store.entries()[0]
    with mock.patch("os.fsync"):  # of so many, in a moment
        for seed in range(1, count):
            name = f"{hashlib.sha256(str(seed).encode()).hexdigest()[:32]}-{entry.id.partition('-')[2]}"
            settings = {**entry.settings, "seed": seed}
            store.keep(NewRun(dataclasses.replace(entry, id=name, settings=settings), {}))
    for words in (["list"], ["list", "--where", "seed=77"], ["list", "--csv"]):
        took = _command(folder, "runs", *words, "--store", ".")
        print(f"{count} stored runs, cosim runs {' '.join(words)}: {took}")


_SMALL = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""


def _kills(count: int, whom: Sequence[str]) -> None:
    for who in whom:
        chance, kept = random.Random(who), []
        for _ in range(count):
            with tempfile.TemporaryDirectory() as folder:
                kept.append(check_killed(Path(folder), who, chance.randrange(1, 12)))
        print(f"{who} killed {count} times: same bytes, nothing that was kept run again; kept {kept} of 12")


def _cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    answer = call()
    return time.process_time() - begin, answer


def _wall(call: Callable[[], object]) -> float:
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


def _command(folder: Path, *words: str) -> str:
    """What a command takes, imports and all."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-c", "from cosim.cli import main; main()", *words]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return f"{time.monotonic() - begin:.2f} s, {after.ru_utime - before.ru_utime:.2f} CPU-s"


if __name__ == "__main__":
    main()
