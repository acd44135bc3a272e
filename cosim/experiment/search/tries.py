"""Points of a design, run: all seeds of one, and several together where the design says so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from cosim.errors import InputError
from cosim.experiment.executors.contract import Executor
from cosim.experiment.search.design import Design
from cosim.experiment.search.points import KnownPoint, broken
from cosim.experiment.store.trials import Task, TrialAnswer, run_task
from cosim.experiment.trials import TaskRunner
from cosim.results.quantities import QUANTITIES
from cosim.results.search import TriedPoint
from cosim.results.sweep import Trial


def try_task(task: Task) -> TrialAnswer:
    """As :func:`run_task`, but that a mistake which only a run finds is of its point, and ends no search."""
    try:
        return run_task(task)
    except InputError as error:
        return TrialAnswer(Trial(task.labels, task.seed, {}, "", error.message))


class Tries:
    """Runs points of a design."""

    def __init__(self, design: Design, store: str | Path | None, executor: Executor | None) -> None:
        self._design = design
        self._runner = TaskRunner(store or design.store_address, executor or design.executor, call=try_task)

    def run(self, points: Sequence[KnownPoint], level: int) -> list[TriedPoint]:
        """What comes of points at a level of fidelity, in their order."""
        tasks = [task for one in points for task in self._tasks(one, level)]
        answers = self._runner.stored(tasks)
        stored = {*answers}
        left = [number for number in range(len(tasks)) if number not in stored]
        with closing(self._runner.run(tasks, left)) as ran:
            answers |= dict(ran)
        seeds = len(self._design.seeds)
        made = []
        for k, one in enumerate(points):
            mine = range(k * seeds, (k + 1) * seeds)
            made.append(self._tried(one, [answers[n].trial for n in mine], level, stored={*mine} <= stored))
        return made

    def _tasks(self, one: KnownPoint, level: int) -> Iterator[Task]:
        design = self._design
        settings: dict[str, Any] = {**one.changes, **design.levels[level].settings}
        for seed in design.seeds:
            scenario = design.trial(one.point.labels, {**settings, "seed": seed})
            yield Task(
                scenario,
                one.point.labels,
                seed,
                design.run_measures,
                allow_large=False,
                store=self._runner.store,
            )

    def _tried(self, one: KnownPoint, trials: Sequence[Trial], level: int, *, stored: bool) -> TriedPoint:
        error = next((trial.error for trial in trials if trial.error), "")
        values: Mapping[str, float] = {} if error else self._values(one, trials)
        bounds = {
            name: one.at_best[name]
            for name in self._design.objectives
            if QUANTITIES[name].needs and not math.isnan(one.at_best[name])
        }
        return TriedPoint(
            one.point.labels,
            values,
            bounds,
            error or broken(self._design, values),
            stored,
            level,
            "; ".join(dict.fromkeys(trial.doubtful for trial in trials if trial.doubtful)),
            {} if error else self._of_seeds(one, trials),
            one.model_error,
            one.changes,
        )

    def _of_seeds(self, one: KnownPoint, trials: Sequence[Trial]) -> dict[str, tuple[float, ...]]:
        asked = dict.fromkeys((*self._design.objectives, *self._design.constraints, *self._design.measures))
        found = {}
        for name in asked:
            quantity = QUANTITIES[name]
            found[name] = tuple(
                quantity.of(one.facts, trial.measures.get(quantity.needs, 0.0)) for trial in trials
            )
        return found

    def _values(self, one: KnownPoint, trials: Sequence[Trial]) -> dict[str, float]:
        values = {}
        for name in (*self._design.objectives, *self._design.constraints):
            quantity = QUANTITIES[name]
            mean = 0.0
            if quantity.needs:
                mean = math.fsum(trial.measures[quantity.needs] for trial in trials) / len(trials)
            values[name] = quantity.of(one.facts, mean)
        return values
