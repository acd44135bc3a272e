"""The trials of a sweep, wherever they are run: the results are the same."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from cosim.errors import InfeasibleError, InputError
from cosim.experiment.drawn import may_draw
from cosim.experiment.executors.contract import Executor, run_all
from cosim.experiment.executors.local import LocalExecutor
from cosim.experiment.facts import FactFinder
from cosim.experiment.idle import idle_choices
from cosim.experiment.progress import OnProgress, RunProgress, told_in
from cosim.experiment.sizes import is_large_allowed
from cosim.experiment.store.runs import Keeper, open_store
from cosim.experiment.store.trials import InterruptedRunError, Task, TrialAnswer, run_task, stored_answers
from cosim.experiment.sweep import Sweep
from cosim.files.folder import claimed
from cosim.results.quantities import DesignFacts, quantity_of
from cosim.results.sweep import SWEEP_FILES, SweepRun, Trial, kept_folder

_log = logging.getLogger("cosim")


class TaskRunner:
    """Answers tasks of sweeps, searches and studies: from the store what it has, the rest by the executor.

    Parameters
    ----------
    store
        Address of the store; None: there is none.
    executor, workers
        Where runs are run; or how many processes on this machine, 1 if not given.
    again
        Take nothing from the store.
    call
        Runs a task.

    Raises
    ------
    InputError
        The store can't be opened, or ``executor`` and ``workers`` are both given.
    """

    def __init__(
        self,
        store: str | Path | None,
        executor: Executor | None = None,
        workers: int | None = None,
        *,
        again: bool = False,
        call: Callable[[Task], TrialAnswer] = run_task,
    ) -> None:
        if executor is not None and workers is not None:
            raise InputError("workers doesn't go with an executor, which has settings of its own")
        self.store = None if store is None else open_store(store)
        self.again, self._call = again, call
        self._executor = executor or LocalExecutor(workers=workers or 1)
        self._keeper = Keeper(self.store)

    def stored(self, tasks: Sequence[Task]) -> dict[int, TrialAnswer]:
        """Answers that the store has, by the task's number."""
        return {} if self.store is None or self.again else stored_answers(self.store, tasks)

    def run(
        self, tasks: Sequence[Task], left: Sequence[int]
    ) -> Generator[tuple[int, TrialAnswer], None, None]:
        """Answers of the tasks ``left`` as they come, by number, each kept.

        A run that was lost, or went beyond its limits, is a failed one.
        """
        with closing(run_all(self._executor, self._call, [tasks[number] for number in left])) as results:
            for at, result in results:
                task = tasks[left[at]]
                if result.failed:
                    answer = TrialAnswer(Trial(task.labels, task.seed, {}, "", result.failed))
                else:
                    answer = result.value
                id_ = self._keeper.keep(answer.kept)
                yield left[at], replace(answer, trial=replace(answer.trial, run=id_)) if id_ else answer


def run_sweep(
    sweep: Sweep,
    out: str | Path | None = None,
    *,
    store: str | Path | None = None,
    again: bool = False,
    executor: Executor | None = None,
    workers: int | None = None,
    overwrite: bool = False,
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
    store
        Where runs are kept, and taken from; the sweep's own, if not given.
    again
        Run also what the store has.
    executor
        Where runs are run; the sweep's own, if not given.
    workers
        Without an executor: processes, 1 if not given. With more than one, a script needs
        ``if __name__ == "__main__":``, as for :mod:`multiprocessing`.
    overwrite
        Replace files in ``out`` that cosim did not write.
    progress
        Called after each trial.

    Raises
    ------
    InputError
        A mistake in one of the scenarios, or ``out`` can't be written.
    SimulationError
        The executor can't go on.
    """
    if sweep.keep_runs and out is None:
        raise InputError("keep_runs: there is no folder for them", hint="give one: --out DIR")
    kept = Path(out) if out is not None and sweep.keep_runs else None
    runner = TaskRunner(
        store or sweep.store_address,
        executor or sweep.executor,
        workers,
        again=again or kept is not None,  # the store has no whole runs
    )
    tasks = list(_tasks(sweep, runner, kept))
    facts = _facts(sweep, tasks)
    of_each = zip(sweep.combinations(), tasks[:: len(sweep.seeds)], strict=True)
    for said in idle_choices((labels, changes, task.scenario) for (labels, changes), task in of_each):
        _log.warning(said)
    if out is None:
        result = _run_all(sweep, tasks, facts, runner, progress)
    else:
        with claimed(out, SWEEP_FILES, inputs=sweep.files, overwrite=overwrite) as target:
            with told_in(target, progress) as told:
                result = _run_all(sweep, tasks, facts, runner, told)
            _log.info("written to %s: %s", out, ", ".join(result.write(target)))
    return result


def _run_all(
    sweep: Sweep,
    tasks: list[Task],
    facts: Mapping[tuple[str, ...], DesignFacts],
    runner: TaskRunner,
    progress: OnProgress | None,
) -> SweepRun:
    address = "" if runner.store is None else runner.store.address
    done = {number: answer.trial for number, answer in runner.stored(tasks).items()}
    if done:
        _log.info("%d of %d runs are in the store %s", len(done), len(tasks), address)
    same = {} if sweep.keep_runs else _same_runs(tasks)
    if same:
        _log.info(
            "%d of %d runs draw nothing from their seed: they are those of the first", len(same), len(tasks)
        )
    left = [number for number in range(len(tasks)) if number not in done and number not in same]
    interrupted = ""
    try:
        with closing(runner.run(tasks, left)) as ran:
            for number, answer in ran:
                trial = done[number] = answer.trial
                if progress is not None:
                    count = len(tasks) - sum(other not in done for other in same)
                    text = f"run {len(done)} of {count}: {' / '.join(trial.labels)}"
                    progress(RunProgress(len(done), count, text))
    except (KeyboardInterrupt, InterruptedRunError):
        interrupted = KeyboardInterrupt.__name__
        if not done:
            raise KeyboardInterrupt from None
    done |= {
        number: replace(done[first], seed=tasks[number].seed)
        for number, first in same.items()
        if first in done
    }
    if done and all(trial.is_infeasible for trial in done.values()):
        raise InfeasibleError(f"no choice can be: {done[min(done)].reason}")
    return SweepRun(
        sweep.name or "sweep",
        sweep.labels,
        sweep.measures,
        tuple(_measured(done[number], sweep, facts) for number in sorted(done)),
        interrupted,
        len(tasks),
        address,
        sweep.description,
        sweep.baseline,
    )


def _facts(sweep: Sweep, tasks: Sequence[Task]) -> dict[tuple[str, ...], DesignFacts]:
    """What measures need of each combination beside its runs, found before the first run."""
    if not sweep.facts:
        return {}
    finder, found = FactFinder(sweep.facts, sweep.cost), {}
    for task in tasks[:: len(sweep.seeds)]:
        with suppress(InfeasibleError):  # its run says so
            found[task.labels] = finder.of(task.scenario)
    return found


def _measured(trial: Trial, sweep: Sweep, facts: Mapping[tuple[str, ...], DesignFacts]) -> Trial:
    """The trial with all measures of the sweep, of what was measured of its run and what is known beside."""
    if trial.error or not facts:
        return trial
    known = facts[trial.labels]
    return replace(
        trial, measures={name: quantity_of(name, known, trial.measures) for name in sweep.measures}
    )


def _same_runs(tasks: list[Task]) -> dict[int, int]:
    """Tasks that need no run of their own, as nothing is drawn: each one's first seed."""
    by_labels: dict[tuple[str, ...], list[int]] = {}
    for number, task in enumerate(tasks):
        by_labels.setdefault(task.labels, []).append(number)
    return {
        number: first
        for first, *others in by_labels.values()
        if others and not may_draw(tasks[first].scenario)
        for number in others
    }


def _tasks(sweep: Sweep, runner: TaskRunner, kept: Path | None) -> Iterator[Task]:
    for labels, merged in sweep.combinations():
        for seed in sweep.seeds:
            yield Task(
                sweep.trial(labels, {**merged, "seed": seed}),
                labels,
                seed,
                sweep.run_measures,
                is_large_allowed(),
                runner.store,
                runner.again,
                None if kept is None else kept.absolute() / kept_folder(labels, seed),
            )
