"""The search: a sweep of which only that is run which may be the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from cosim.errors import InputError
from cosim.experiment.executors.contract import Executor, run_all
from cosim.experiment.executors.local import LocalExecutor
from cosim.experiment.progress import OnProgress, RunProgress
from cosim.experiment.search.bound import lower_bound
from cosim.experiment.search.optimizer import OPTIMIZERS, DesignPoint
from cosim.experiment.settings import Changes
from cosim.experiment.store.runs import Keeper, RunStore, open_store
from cosim.experiment.store.trials import InterruptedRunError, Task, run_task, stored_trials
from cosim.experiment.sweep import Sweep, is_sweep, sweep_from
from cosim.files.located_yaml import read
from cosim.registry import nearest
from cosim.results.measures import MEASURES
from cosim.results.search import SearchRun, TriedPoint
from cosim.results.sweep import Trial


def read_design(path: Path, changes: Changes = ()) -> Sweep:
    """A sweep of which some points may not fit together: those are refused, not the whole.

    Raises
    ------
    InputError
        It is none, or it has a mistake.
    """
    document = read(path)
    if not is_sweep(document):
        raise InputError(f"{path} has nothing to choose", hint="give a sweep, with axes")
    return sweep_from(document, path.parent, path.stem, changes, all_fit=False)


def search(
    sweep: Sweep,
    objective: str = "",
    *,
    runs: int | None = None,
    optimizer: str = "bounds",
    store: str | Path | None = None,
    executor: Executor | None = None,
    progress: OnProgress | None = None,
) -> SearchRun:
    """The best choice on all axes of a sweep, by the mean of a measure over its seeds.

    Parameters
    ----------
    sweep
        The design: its axes are what there is to choose.
    objective
        A measure of `cosim list sweep`; the sweep's first, if not given.
    runs
        How many points may be run; None: as many as it takes.
    optimizer
        Which points: of :data:`~cosim.experiment.search.optimizer.OPTIMIZERS`.
    store, executor, progress
        As for :func:`cosim.sweep`; the seeds of a point are run together.

    Raises
    ------
    InputError
        No such measure or optimizer, or no point of the design can be.
    """
    objective = objective or sweep.measures[0]
    _check(objective, optimizer)
    changes = dict(sweep.combinations())
    points = [_point(sweep, labels, changes[labels], objective) for labels in changes]
    if all(point.refused for point in points):
        raise InputError(f"no point of {sweep.name or 'the design'} can be; the first: {points[0].refused}")
    address = store or sweep.store_address
    tried = _Tries(
        sweep, objective, None if address is None else open_store(address), executor or sweep.executor
    )
    asked = OPTIMIZERS[optimizer](sweep.labels, points)
    sign = 1 if MEASURES[objective].less_is_better else -1
    best, found, interrupted = math.inf, dict[int, TriedPoint](), ""
    try:
        for number in _numbers(asked.ask, runs):
            found[number] = one = tried.run(points[number], changes[points[number].labels])
            asked.tell(number, sign * one.value)
            best = min(best, sign * one.value)
            if progress is not None:
                progress(RunProgress(len(found), runs, f"point {len(found)}: {' / '.join(one.labels)}"))
    except (KeyboardInterrupt, InterruptedRunError):
        interrupted = KeyboardInterrupt.__name__
    proven = all(
        point.refused or number in found or (sign > 0 and point.bound >= best)
        for number, point in enumerate(points)
    )
    refused = tuple((point.labels, point.refused) for point in points if point.refused)
    return SearchRun(
        sweep.name or "search", sweep.labels, objective, tuple(found.values()), refused, len(points), proven,
        interrupted,
    )  # fmt: skip


def _check(objective: str, optimizer: str) -> None:
    for name, known, what in ((objective, MEASURES, "measure"), (optimizer, OPTIMIZERS, "optimizer")):
        if name not in known:
            raise InputError(
                f"there is no {what} {name!r}{nearest(name, known)}", hint=f"there are: {', '.join(known)}"
            )


def _numbers(ask: Callable[[], int | None], most: int | None) -> Iterator[int]:
    count = 0
    while (most is None or count < most) and (number := ask()) is not None:
        count += 1
        yield number


def _point(sweep: Sweep, labels: tuple[str, ...], changes: Mapping[str, Any], objective: str) -> DesignPoint:
    try:
        return DesignPoint(labels, lower_bound(sweep.trial(labels, changes), objective))
    except InputError as error:
        return DesignPoint(labels, refused=error.message.removeprefix(f"{' / '.join(labels)}: "))


class _Tries:
    """Runs points, all seeds of one together."""

    def __init__(
        self, sweep: Sweep, objective: str, store: RunStore | None, executor: Executor | None
    ) -> None:
        self._sweep, self._objective, self._store = sweep, objective, store
        self._executor = executor or LocalExecutor(workers=1)
        self._keeper = Keeper(store)

    def run(self, point: DesignPoint, changes: Mapping[str, Any]) -> TriedPoint:
        """What comes of a point."""
        measures = tuple(dict.fromkeys((self._objective, *self._sweep.measures)))
        tasks = [
            Task(
                self._sweep.trial(point.labels, {**changes, "seed": seed}),
                point.labels,
                seed,
                measures,
                allow_large=False,
                store=self._store,
            )
            for seed in self._sweep.seeds
        ]
        trials = {} if self._store is None else stored_trials(self._store, tasks)
        left = [number for number in range(len(tasks)) if number not in trials]
        stored = not left
        with closing(run_all(self._executor, run_task, [tasks[number] for number in left])) as results:
            for at, result in results:
                task = tasks[left[at]]
                if result.failed:
                    trials[left[at]] = Trial(task.labels, task.seed, {}, "", result.failed)
                else:
                    trials[left[at]] = result.value.trial
                    self._keeper.keep(result.value.kept)
        return _tried(point, [trials[number] for number in sorted(trials)], self._objective, stored)


def _tried(point: DesignPoint, trials: list[Trial], objective: str, stored: bool) -> TriedPoint:
    error = next((trial.error for trial in trials if trial.error), "")
    worst = math.inf if MEASURES[objective].less_is_better else -math.inf
    value = worst if error else math.fsum(one.measures[objective] for one in trials) / len(trials)
    return TriedPoint(point.labels, point.bound, value, error, stored)
