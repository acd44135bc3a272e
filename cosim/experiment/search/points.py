"""The points of a design before any is run: what each is known to have, and why some can't be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cosim.errors import InputError
from cosim.experiment.facts import FactFinder
from cosim.experiment.progress import OnProgress, RunProgress
from cosim.experiment.search.bound import Bounds
from cosim.experiment.search.contract import DesignPoint
from cosim.experiment.search.design import Design
from cosim.results.quantities import QUANTITIES, DesignFacts

_LOOK = 64
"""So many points are looked at between two reports of progress."""


@dataclass(frozen=True)
class KnownPoint:
    """A point, its axes' settings, its facts, what each quantity has at best (NaN: not known), and the error
    of the compute model.
    """

    point: DesignPoint
    changes: Mapping[str, Any]
    facts: DesignFacts
    at_best: Mapping[str, float]
    model_error: tuple[float, float] = (0.0, 0.0)


def known_points(design: Design, progress: OnProgress | None = None) -> list[KnownPoint]:
    """Every point of a design.

    Raises
    ------
    InputError
        No point can be: says which constraint is nearest to being kept, or why the first can't be. Or a fact
        that is asked for isn't known.
    """
    finder, found = PointFinder(design), []
    total = math.prod(len(labels) for _, labels in design.labels)
    for number, (labels, changes) in enumerate(design.combinations()):
        found.append(finder.known(labels, changes))
        if progress is not None and number % _LOOK == 0:
            progress(RunProgress(number, total, f"bounds: {number:,} of {total:,} points"))
    if all(one.point.refused for one in found):
        raise InputError(_why_none(design, found))
    return found


class PointFinder:
    """Finds out what is known of points, keeping what they have in common."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._facts = FactFinder(design.facts, design.cost)
        self._bounds = Bounds()

    def known(self, labels: tuple[str, ...], changes: Mapping[str, Any]) -> KnownPoint:
        """One point, by its labels and the settings that they stand for.

        Raises
        ------
        InputError
            A fact that is asked for isn't known.
        """
        design = self._design
        try:
            scenario = design.trial(labels, {**changes, **design.levels[0].settings})
            built = self._bounds.build(scenario)
        except InputError as error:
            why = error.message.removeprefix(f"{' / '.join(labels)}: ")
            return KnownPoint(DesignPoint(labels, refused=why), changes, DesignFacts(), {})
        facts = self._facts.facts(scenario, built)
        least: dict[str, float] = {}
        at_best: dict[str, float] = {}
        for name in (*design.objectives, *design.constraints):
            quantity = QUANTITIES[name]
            if quantity.needs and quantity.needs not in least:
                least[quantity.needs] = self._bounds.lower_bound(scenario, built, quantity.needs)
            known = not quantity.needs or least[quantity.needs] > 0
            at_best[name] = quantity.of(facts, least.get(quantity.needs, 0.0)) if known else math.nan
        point = DesignPoint(labels, losses_of(design, at_best), broken(design, at_best))
        errors = (job.workload.error for job in built.jobs if job.workload.error is not None)
        return KnownPoint(point, changes, facts, at_best, next(errors, (0.0, 0.0)))


def losses_of(design: Design, values: Mapping[str, float]) -> tuple[float, ...]:
    """What is to be small; minus infinity where a value isn't known."""
    losses = [QUANTITIES[name].sign * values[name] for name in design.objectives]
    return tuple(-math.inf if math.isnan(loss) else loss for loss in losses)


def broken(design: Design, values: Mapping[str, float]) -> str:
    """The first constraint that values break, in words; empty: none."""
    for name, limit in design.limits.items():
        quantity, value = QUANTITIES[name], values[name]
        if quantity.sign * value > quantity.sign * limit:
            side = "<=" if quantity.less_is_better else ">="
            return f"{name} is {quantity.unit.show(value)}, not {side} {quantity.unit.show(limit)}"
    return ""


def _why_none(design: Design, found: list[KnownPoint]) -> str:
    where = design.name or "the design"
    able = [one for one in found if one.at_best]
    for name, limit in design.limits.items() if able else ():
        quantity = QUANTITIES[name]
        known = [one for one in able if not math.isnan(one.at_best[name])]
        if known and all(quantity.sign * one.at_best[name] > quantity.sign * limit for one in known):
            best = min(known, key=lambda one: quantity.sign * one.at_best[name])
            side = "<=" if quantity.less_is_better else ">="
            return (
                f"no point of {where} keeps {name} {side} {quantity.unit.show(limit)}: the nearest has "
                f"{quantity.unit.show(best.at_best[name])} ({' / '.join(best.point.labels)})"
            )
    return f"no point of {where} can be; the first: {found[0].point.refused}"
