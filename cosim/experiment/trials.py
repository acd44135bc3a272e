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
from multiprocessing.connection import Connection
from pathlib import Path

from cosim.errors import SimulationError
from cosim.experiment.progress import OnProgress, RunProgress
from cosim.experiment.sizes import is_large_allowed
from cosim.experiment.store.runs import Keeper, RunStore, open_store
from cosim.experiment.store.trials import (
    InterruptedRunError,
    Task,
    TrialAnswer,
    run_task,
    stored_trials,
)
from cosim.experiment.sweep import Sweep
from cosim.files.folder import claimed, forget
from cosim.results.render.figure import check_figure
from cosim.results.sweep import SWEEP_FILES, SweepRun, Trial

_log = logging.getLogger("cosim")


def run_sweep(
    sweep: Sweep,
    out: str | Path | None = None,
    *,
    figure: str | Path | None = None,
    store: str | Path | None = None,
    again: bool = False,
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
    store
        Where runs are kept, and taken from; the sweep's own, if not given.
    again
        Run also what the store has.
    workers
        Processes. With more than one, a script needs ``if __name__ == "__main__":``, as for
        :mod:`multiprocessing`.
    progress
        Called after each trial.

    Raises
    ------
    InputError
        A mistake in one of the scenarios, or ``out`` can't be written.
    SimulationError
        A process was killed.
    """
    if figure is not None:
        check_figure(figure)
    runs = None if (address := store or sweep.store_address) is None else open_store(address)
    tasks = list(_tasks(sweep, runs, again))
    if out is None:
        result = _run_all(sweep, tasks, runs, again, workers, progress)
    else:
        with claimed(out) as target:
            forget(target, SWEEP_FILES)
            result = _run_all(sweep, tasks, runs, again, workers, progress)
            _log.info("written to %s: %s", out, ", ".join(file.name for file in result.save(out)))
    if figure is not None:
        _log.info("drawn: %s", result.draw(figure))
    return result


def _run_all(
    sweep: Sweep,
    tasks: list[Task],
    store: RunStore | None,
    again: bool,
    workers: int,
    progress: OnProgress | None,
) -> SweepRun:
    done: dict[int, Trial] = {} if store is None or again else stored_trials(store, tasks)
    if done:
        _log.info("%d of %d runs are in the store %s", len(done), len(tasks), store and store.address)
    left = [number for number in range(len(tasks)) if number not in done]
    interrupted = ""
    keeper = Keeper(store)
    try:
        waiting = [tasks[number] for number in left]
        answers = _in_processes(waiting, workers) if workers > 1 else map(run_task, waiting)
        for number, answer in zip(left, answers, strict=False):
            done[number] = answer.trial
            keeper.keep(answer.kept)
            if progress is not None:
                text = f"run {len(done)} of {len(tasks)}: {' / '.join(answer.trial.labels)}"
                progress(RunProgress(len(done), len(tasks), text))
    except (KeyboardInterrupt, InterruptedRunError):
        interrupted = KeyboardInterrupt.__name__
        if not done:
            raise KeyboardInterrupt from None
    name = sweep.name or "sweep"
    trials = tuple(done[number] for number in sorted(done))
    return SweepRun(name, sweep.labels, sweep.measures, trials, interrupted, len(tasks))


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tasks(sweep: Sweep, store: RunStore | None, again: bool) -> Iterator[Task]:
    for labels, merged in sweep.combinations():
        for seed in sweep.seeds:
            yield Task(
                sweep.trial(labels, {**merged, "seed": seed}),
                labels,
                seed,
                sweep.measures,
                is_large_allowed(),
                store,
                again,
            )


def _in_processes(tasks: list[Task], workers: int) -> Iterator[TrialAnswer]:
    """Results in the order of the tasks. The first is run here: what it compiles, the others find on disk."""
    yield run_task(tasks[0])
    if len(tasks) == 1:
        return
    others = {*multiprocessing.active_children()}
    spawning = multiprocessing.get_context("spawn")
    theirs, ours = spawning.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        min(workers, len(tasks) - 1), mp_context=spawning, initializer=_prepare_worker, initargs=(theirs,)
    )
    try:
        yield from pool.map(run_task, tasks[1:])
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
