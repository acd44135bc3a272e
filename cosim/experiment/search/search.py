"""``cosim.search``: a sweep of which only that is run which may be the best."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from cosim.errors import InputError, LaunchError
from cosim.experiment.executors.contract import Executor, read_executor
from cosim.experiment.progress import OnProgress, RunProgress
from cosim.experiment.save import resolved_yaml
from cosim.experiment.search.bound import Bounds
from cosim.experiment.search.contract import AskTell, DesignSpace, Optimizer
from cosim.experiment.search.design import Design, FidelityLevel, read_design
from cosim.experiment.search.points import KnownPoint, PointFinder, known_points, losses_of
from cosim.experiment.search.tries import Tries
from cosim.experiment.settings import Changes
from cosim.experiment.store.trials import InterruptedRunError
from cosim.experiment.sweep import Sweep
from cosim.plugin_file import plugin_errors
from cosim.results.fronts import is_beaten
from cosim.results.search import SearchRun, TriedPoint, WhatIf

MOST_WHAT_IFS = 3
"""Points that a design's ``what_if`` is tried on."""


@plugin_errors()
def search(
    source: Sweep | Mapping[str, Any] | str | Path,
    set: Changes = (),  # noqa: A002
    *,
    objective: str | Iterable[str] | None = None,
    runs: int | None = None,
    optimizer: Optimizer | Mapping[str, Any] | str | None = None,
    store: str | Path | None = None,
    executor: Executor | Mapping[str, Any] | str | None = None,
    progress: OnProgress | None = None,
) -> SearchRun:
    """Find the best choice on all axes of a design, without running all of it.

    Parameters
    ----------
    source
        A design: a sweep that also says what for. A YAML file, YAML text or its values, a
        :class:`cosim.Design` or a :class:`cosim.Sweep`.
    set
        Changes of the design: ``{"constraints.price": "10M"}``, or texts as the command line takes them.
    objective
        Instead of the design's: a quantity, or several, whose Pareto front is looked for.
    runs
        Instead of the design's: how many points may be run.
    optimizer
        Instead of the design's: which point is next, of `cosim list optimizer`.
    store, executor, progress
        As for :func:`cosim.run`.

    Returns
    -------
    SearchRun
        The best point, or the front; what was tried, refused, not needed; whether that is proven.

    Raises
    ------
    InputError
        A mistake in the design, or no point of it can be.

    Examples
    --------
    >>> import cosim
    >>> design = '''
    ... scenario:
    ...   topology: {kind: switch, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ...   network: fair_share
    ...   jobs: [{workload: {kind: periodic, compute: 1ms, size: 10MB, ranks: 4}}]
    ... axes: {rate: {topology.rate: [80Gbps, 40Gbps]}}
    ... constraints: {endpoint_rate: 50Gbps}
    ... '''
    >>> done = cosim.search(design)
    >>> done.best.labels, done.proven
    (('40Gbps',), True)
    >>> done.refused[0]
    (('80Gbps',), 'endpoint_rate is 80 Gbps, not <= 50 Gbps')
    """
    given: dict[str, Any] = {
        "objective": [objective] if isinstance(objective, str) else objective and [*objective],
        "runs": runs,
        "optimizer": optimizer,
    }
    design = read_design(source, set)
    own = {name: value for name, value in given.items() if value is not None}
    if own:
        design = design.with_settings(own)
    known = known_points(design, progress)
    _check_levels(design, known)
    tries = Tries(design, store, read_executor(executor))
    return _SearchUnderWay(design, known, tries, progress).result()


def _check_levels(design: Design, known: Sequence[KnownPoint]) -> None:
    """Refuse a fidelity that the scenario can't have, before the first run."""
    first = next(one for one in known if not one.point.refused)
    for number, level in enumerate(design.levels[1:], 1):
        try:
            scenario = design.trial(first.point.labels, {**first.changes, **level.settings})
            Bounds().build(scenario)
        except (InputError, LaunchError) as error:
            raise InputError(f"fidelity[{number}]: {error}") from error


class _SearchUnderWay:
    """A search under way."""

    def __init__(
        self, design: Design, known: Sequence[KnownPoint], tries: Tries, progress: OnProgress | None
    ) -> None:
        self._design, self._known, self._tries, self._progress = design, known, tries, progress
        self._found: dict[int, TriedPoint] = {}
        self._first: dict[int, tuple[float, ...]] = {}
        """Losses at the first level, which bounds are of."""

    def result(self) -> SearchRun:
        """Level after level, and what came of it."""
        design, interrupted = self._design, ""
        try:
            self._first_level()
            for level in range(1, len(design.levels)):
                self._next_level(level)
        except (KeyboardInterrupt, InterruptedRunError):
            interrupted = KeyboardInterrupt.__name__
        refused = [(one.point.labels, one.point.refused) for one in self._known if one.point.refused]
        untried = [
            (one.point.labels, {name: one.at_best[name] for name in design.objectives})
            for number, one in enumerate(self._known)
            if not one.point.refused and number not in self._found
        ]
        done = SearchRun(
            design.name or "search",
            design.labels,
            design.objectives,
            tuple(self._found.values()),
            tuple(refused),
            len(self._known),
            not interrupted and self._is_proven(),
            design.tolerance,
            tuple((_said(level, at), level.within) for at, level in enumerate(design.levels)),
            interrupted,
            untried=tuple(untried),
            description=design.description,
        )
        if done.best is not None:
            settings = {**done.best.changes, **design.levels[-1].settings}
            done = replace(done, winner=resolved_yaml(design.trial(done.best.labels, settings)))
        if interrupted or not design.what_if:
            return done
        try:
            return replace(done, what_ifs=tuple(self._what_ifs(done)))
        except (KeyboardInterrupt, InterruptedRunError):
            return replace(done, interrupted=KeyboardInterrupt.__name__)

    def _what_ifs(self, done: SearchRun) -> Iterator[WhatIf]:
        """What could happen to the first points, as closely as they were run."""
        design, level = self._design, len(self._design.levels) - 1
        finder = PointFinder(design)
        asked = [
            (label, finder.known(one.labels, {**one.changes, **changes}))
            for one in done.ranked[:MOST_WHAT_IFS]
            for label, changes in design.what_if.items()
        ]
        able = [number for number, (_, one) in enumerate(asked) if one.at_best]
        tried = dict(zip(able, self._tries.run([asked[number][1] for number in able], level), strict=True))
        for number, (label, one) in enumerate(asked):
            yield WhatIf(
                label, tried.get(number) or TriedPoint(one.point.labels, {}, error=one.point.refused)
            )

    @property
    def _slack(self) -> float:
        """How much worse than the first level's best a bound may be, so that its point may yet win."""
        levels = self._design.levels
        within = levels[0].within if len(levels) > 1 else 0.0
        return (1 + within) * (1 - self._design.tolerance) - 1

    def _first_level(self) -> None:
        design = self._design
        points = [one.point for one in self._known]
        asked = design.optimizer.start(DesignSpace(design.labels, design.objectives, points, self._slack))
        left = math.inf if design.runs is None else design.runs
        while left > 0 and (numbers := _ask(asked, min(design.at_once, left))):
            left -= len(numbers)
            self._run(numbers, 0)
            for number in numbers:
                self._first[number] = self._losses(number)
                asked.tell(number, self._first[number])

    def _next_level(self, level: int) -> None:
        """Run more closely what is within reach of the level's best, best first."""
        before = self._design.levels[level - 1].within
        reached = [number for number, one in self._found.items() if one.level == level - 1 and not one.error]
        losses = {number: self._losses(number) for number in reached}
        every = np.array([*losses.values()]).reshape(len(reached), -1)
        rising = [
            number
            for number, own in losses.items()
            if not is_beaten(own, every[(every < own).any(axis=1)], before)
        ]
        rising.sort(key=lambda number: losses[number])
        for first in range(0, len(rising), self._design.at_once):
            self._run(rising[first : first + self._design.at_once], level)

    def _run(self, numbers: Sequence[int], level: int) -> None:
        made = self._tries.run([self._known[number] for number in numbers], level)
        self._found |= dict(zip(numbers, made, strict=True))
        if self._progress is not None:
            text = f"point {len(self._found)}: {' / '.join(made[-1].labels)}"
            self._progress(RunProgress(len(self._found), self._design.runs, text))

    def _losses(self, number: int) -> tuple[float, ...]:
        one = self._found[number]
        if one.error:
            return (math.inf,) * len(self._design.objectives)
        return losses_of(self._design, one.values)

    def _is_proven(self) -> bool:
        """Whether all that wasn't run is refused, or can't be better than what was."""
        found = np.array([*self._first.values()])
        return all(
            one.point.refused or number in self._first or is_beaten(one.point.bounds, found, self._slack)
            for number, one in enumerate(self._known)
        )


def _ask(asked: AskTell, count: float) -> list[int]:
    return [*islice(iter(asked.ask, None), int(count))]


def _said(level: FidelityLevel, number: int) -> str:
    """What a level is called."""
    network = level.settings.get("network")
    if isinstance(network, dict):
        network = network.get("model") or network.get("plugin")
    return str(network or (f"level {number}" if level.settings else "the scenario as it is"))
