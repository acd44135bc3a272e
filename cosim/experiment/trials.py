"""The runs of a sweep, one after another or in several processes; the results are the same."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from cosim.errors import CosimError, InputError, SimulationError
from cosim.experiment.scenario import Scenario
from cosim.experiment.sweep import LoadedSweep
from cosim.results.measures import MEASURES
from cosim.results.trials import Trial, Trials

INTERRUPTED = "KeyboardInterrupt"

Told = Callable[[int, Trial], None]
"""Told how many runs are done, and the last of them."""


@dataclass(frozen=True)
class _Task:
    """One run to be."""

    scenario: Scenario
    labels: tuple[str, ...]
    seed: int
    measures: tuple[str, ...]


class _InterruptedError(Exception):
    """A run was interrupted: its part of a result is no result."""


def run_sweep(loaded: LoadedSweep, told: Told | None = None, *, workers: int = 1) -> Trials:
    """Run every combination with every seed.

    A run that can't go on is kept as failed, and the others go on. An interrupt (Ctrl-C) gives the runs that
    were done.

    Parameters
    ----------
    loaded
        The sweep.
    told
        Called after each run, in order.
    workers
        Processes. With more than one, a script needs ``if __name__ == "__main__":``, as for
        :mod:`multiprocessing`.

    Raises
    ------
    InputError
        As :func:`cosim.experiment.run.run`.
    SimulationError
        A process was killed.
    """
    done: list[Trial] = []
    interrupted = ""
    runs = _in_processes(loaded, workers) if workers > 1 else map(_run, _tasks(loaded))
    try:
        for trial in runs:
            done.append(trial)
            if told is not None:
                told(len(done), trial)
    except (KeyboardInterrupt, _InterruptedError):
        interrupted = INTERRUPTED
        if not done:
            raise KeyboardInterrupt from None
    return Trials(loaded.name, loaded.axes, loaded.sweep.measures, tuple(done), interrupted)


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tasks(loaded: LoadedSweep) -> Iterator[_Task]:
    for labels, merged in loaded.combinations():
        for seed in loaded.sweep.seeds:
            scenario = loaded.scenario({**merged, "seed": seed})
            yield _Task(scenario, labels, seed, loaded.sweep.measures)


def _run(task: _Task) -> Trial:
    from cosim.experiment.alone import alone
    from cosim.experiment.build import build
    from cosim.experiment.run import simulate

    try:
        done = simulate(task.scenario, build(task.scenario))
        if done.records.interrupted:
            raise _InterruptedError
        with_alone = any(MEASURES[name].needs_alone for name in task.measures)
        by_itself = alone(task.scenario) if with_alone else {}
    except InputError as error:
        raise InputError(f"{' / '.join(task.labels)}, seed {task.seed}: {error}") from error
    except CosimError as error:
        return Trial(task.labels, task.seed, {}, "", f"{type(error).__name__}: {error}")
    measures = {name: MEASURES[name].of(done.summary, by_itself) for name in task.measures}
    return Trial(task.labels, task.seed, measures, done.digest)


def _in_processes(loaded: LoadedSweep, workers: int) -> Iterator[Trial]:
    """Results in the order of the runs. The first is run here: what it compiles, the others find on disk."""
    tasks = list(_tasks(loaded))
    yield _run(tasks[0])
    if len(tasks) == 1:
        return
    others = {*multiprocessing.active_children()}
    pool = ProcessPoolExecutor(
        min(workers, len(tasks) - 1),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=signal.signal,
        initargs=(
            signal.SIGINT,
            signal.SIG_IGN,
        ),  # Ctrl-C reaches all of a terminal's processes; this one acts
    )
    try:
        yield from pool.map(_run, tasks[1:])
    except BrokenProcessPool:
        raise SimulationError(
            "a process of the sweep was killed, by lack of memory perhaps; --workers 1 needs least"
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in {*multiprocessing.active_children()} - others:
            process.terminate()


def save_trials(trials: Trials, out: Path) -> list[Path]:
    """Write trials.csv (each run), figure.csv (what the figure shows), figure.png, figure.svg, table.txt.

    Raises
    ------
    InputError
        A file can't be written, or matplotlib is not installed (what needs none is written first).
    """
    from cosim.results.figure import draw_trials

    written = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("table.txt", str(trials)),
            ("trials.csv", trials.trials_csv()),
            ("figure.csv", trials.figure_csv()),
        ):
            (out / name).write_text(text, encoding="utf-8")
            written.append(out / name)
    except OSError as error:
        raise InputError(f"{out} can't be written: {error}") from error
    return [*written, draw_trials(trials, out / "figure.png"), draw_trials(trials, out / "figure.svg")]
