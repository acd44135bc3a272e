"""The trials of a sweep, one after another or in several processes; the results are the same."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from cosim.errors import CosimError, InputError, SimulationError
from cosim.experiment.alone import run_alone
from cosim.experiment.build import build
from cosim.experiment.progress import OnProgress, RunProgress
from cosim.experiment.scenario import Scenario
from cosim.experiment.simulate import simulate
from cosim.experiment.sizes import allowing_large, is_large_allowed
from cosim.experiment.sweep import Sweep
from cosim.files.folder import claimed, forget
from cosim.results.measures import MEASURES
from cosim.results.render.figure import check_figure
from cosim.results.sweep import SWEEP_FILES, SweepRun, Trial

_log = logging.getLogger("cosim")


@dataclass(frozen=True)
class _Task:
    """One trial to be run."""

    scenario: Scenario
    labels: tuple[str, ...]
    seed: int
    measures: tuple[str, ...]
    allow_large: bool


class _InterruptedError(Exception):
    """A run was interrupted: its part of a result is no result."""


def run_sweep(
    sweep: Sweep,
    out: str | Path | None = None,
    *,
    figure: str | Path | None = None,
    workers: int = 1,
    progress: OnProgress | None = None,
) -> SweepRun:
    """Run every combination with every seed.

    A trial that can't go on is kept as failed, and the others go on. An interrupt (Ctrl-C) gives the trials
    that were done.

    Parameters
    ----------
    sweep
        What is run.
    out
        A folder for trials.csv, table.txt and figures.
    figure
        A file to draw to.
    workers
        Processes. With more than one, a script needs ``if __name__ == "__main__":``, as for
        :mod:`multiprocessing`.
    progress
        Called after each trial, in order.

    Raises
    ------
    InputError
        A mistake in one of the scenarios, or ``out`` can't be written.
    SimulationError
        A process was killed.
    """
    if figure is not None:
        check_figure(figure)
    tasks = list(_tasks(sweep))
    if out is None:
        result = _run_all(sweep, tasks, workers, progress)
    else:
        with claimed(out) as target:
            forget(target, SWEEP_FILES)
            result = _run_all(sweep, tasks, workers, progress)
            _log.info("written to %s: %s", out, ", ".join(file.name for file in result.save(out)))
    if figure is not None:
        _log.info("drawn: %s", result.draw(figure))
    return result


def _run_all(sweep: Sweep, tasks: list[_Task], workers: int, progress: OnProgress | None) -> SweepRun:
    done: list[Trial] = []
    interrupted = ""
    try:
        for trial in _in_processes(tasks, workers) if workers > 1 else map(_run, tasks):
            done.append(trial)
            if progress is not None:
                text = f"run {len(done)} of {len(tasks)}: {' / '.join(trial.labels)}"
                progress(RunProgress(len(done), len(tasks), text))
    except (KeyboardInterrupt, _InterruptedError):
        interrupted = KeyboardInterrupt.__name__
        if not done:
            raise KeyboardInterrupt from None
    name = sweep.name or "sweep"
    return SweepRun(name, sweep.labels, sweep.measures, tuple(done), interrupted, len(tasks))


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tasks(sweep: Sweep) -> Iterator[_Task]:
    for labels, merged in sweep.combinations():
        for seed in sweep.seeds:
            yield _Task(
                sweep.trial(labels, {**merged, "seed": seed}),
                labels,
                seed,
                sweep.measures,
                is_large_allowed(),
            )


def _run(task: _Task) -> Trial:
    try:
        with allowing_large(task.allow_large):
            done = simulate(task.scenario, build(task.scenario))
        if done.interrupted:
            raise _InterruptedError
        with_alone = any(MEASURES[name].needs_alone for name in task.measures)
        alone = run_alone(task.scenario) if with_alone else {}
    except InputError as error:
        raise InputError(f"{' / '.join(task.labels)}, seed {task.seed}: {error}") from error
    except CosimError as error:
        return Trial(task.labels, task.seed, {}, "", f"{type(error).__name__}: {error}")
    measures = {name: MEASURES[name].of(done.summary, alone) for name in task.measures}
    return Trial(task.labels, task.seed, measures, done.digest)


def _in_processes(tasks: list[_Task], workers: int) -> Iterator[Trial]:
    """Results in the order of the tasks. The first is run here: what it compiles, the others find on disk."""
    yield _run(tasks[0])
    if len(tasks) == 1:
        return
    others = {*multiprocessing.active_children()}
    spawning = multiprocessing.get_context("spawn")
    theirs, ours = spawning.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        min(workers, len(tasks) - 1), mp_context=spawning, initializer=_prepare_worker, initargs=(theirs,)
    )
    try:
        yield from pool.map(_run, tasks[1:])
    except BrokenProcessPool:
        raise SimulationError(
            "a process of the sweep was killed, by lack of memory perhaps; --workers 1 needs least"
        ) from None
    finally:
        ours.close()
        pool.shutdown(wait=False, cancel_futures=True)
        for process in {*multiprocessing.active_children()} - others:
            process.terminate()


def _prepare_worker(parent: Connection) -> None:
    """Ctrl-C reaches all of a terminal's processes: the parent acts. Where it is gone, so is the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    """Nothing is ever sent: a pipe of which one end is closed, by whatever death, can be read."""
    parent.poll(None)
    os._exit(1)
