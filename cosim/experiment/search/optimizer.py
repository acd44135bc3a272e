"""Which point of a design to try next: asked for a point's number, told what came of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cosim.errors import InputError

_FRUITLESS = 200
"""Points in a row that are known already: then a sampler has nothing new to ask for."""


@dataclass(frozen=True)
class DesignPoint:
    """One choice on every axis: what it has at least of the objective, or why it can't be."""

    labels: tuple[str, ...]
    bound: float = 0.0
    refused: str = ""


class Optimizer(ABC):
    """``points`` are in the order of the design; those that are refused are not to be asked for."""

    def __init__(self, axes: Sequence[tuple[str, Sequence[str]]], points: Sequence[DesignPoint]) -> None:
        self.axes = axes
        self.points = points

    @abstractmethod
    def ask(self) -> int | None:
        """The number of a point that was not asked for before; None: there is none to try."""

    @abstractmethod
    def tell(self, number: int, value: float) -> None:
        """What a point has of the objective, less is better; infinite where it could not go on."""


class InOrder(Optimizer):
    """Every point, in the order of the design"""

    def __init__(self, axes: Sequence[tuple[str, Sequence[str]]], points: Sequence[DesignPoint]) -> None:
        super().__init__(axes, points)
        self._left = iter(number for number, point in enumerate(points) if not point.refused)

    def ask(self) -> int | None:
        """See :class:`Optimizer`."""
        return next(self._left, None)

    def tell(self, number: int, value: float) -> None:
        """See :class:`Optimizer`."""


class BestFirst(Optimizer):
    """The least bound first, until no bound is below the best: then that is the best of all"""

    def __init__(self, axes: Sequence[tuple[str, Sequence[str]]], points: Sequence[DesignPoint]) -> None:
        super().__init__(axes, points)
        able = [number for number, point in enumerate(points) if not point.refused]
        self._left = sorted(able, key=lambda number: points[number].bound, reverse=True)
        self._best = math.inf

    def ask(self) -> int | None:
        """See :class:`Optimizer`."""
        if not self._left or 0 < self.points[self._left[-1]].bound >= self._best:
            return None
        return self._left.pop()

    def tell(self, number: int, value: float) -> None:  # noqa: ARG002 - which it was doesn't matter
        """See :class:`Optimizer`."""
        self._best = min(self._best, value)


class OptunaOptimizer(Optimizer):
    """Optuna's tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), its seed fixed"""

    def __init__(self, axes: Sequence[tuple[str, Sequence[str]]], points: Sequence[DesignPoint]) -> None:
        super().__init__(axes, points)
        try:
            import optuna
        except ImportError as error:
            raise InputError("Optuna is not installed", hint="pip install 'cosim-net[optuna]'") from error
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._failed = optuna.trial.TrialState.FAIL
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        self._space = {name: optuna.distributions.CategoricalDistribution(labels) for name, labels in axes}
        self._numbers = {point.labels: number for number, point in enumerate(points)}
        self._asked: dict[int, Any] = {}
        self._told: dict[int, float] = {}

    def ask(self) -> int | None:
        """See :class:`Optimizer`."""
        for _ in range(_FRUITLESS):
            trial = self._study.ask(self._space)
            number = self._numbers[tuple(trial.params[name] for name, _ in self.axes)]
            if self.points[number].refused:
                self._study.tell(trial, state=self._failed)
            elif number in self._told:
                self._tell(trial, self._told[number])
            else:
                self._asked[number] = trial
                return number
        return None

    def tell(self, number: int, value: float) -> None:
        """See :class:`Optimizer`."""
        self._told[number] = value
        self._tell(self._asked.pop(number), value)

    def _tell(self, trial: Any, value: float) -> None:
        if math.isfinite(value):
            self._study.tell(trial, value)
        else:
            self._study.tell(trial, state=self._failed)


OPTIMIZERS: dict[str, type[Optimizer]] = {
    "bounds": BestFirst,
    "all": InOrder,
    "optuna": OptunaOptimizer,
}
