"""Optuna's samplers, its study kept in a journal where one is named."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

from pydantic import Field

from cosim.errors import InputError, install_extra
from cosim.experiment.search.contract import AskTell, DesignSpace, Optimizer

_FRUITLESS = 200
"""Points in a row that are known already: then a sampler has nothing new to ask for."""


class OptunaOptimizer(Optimizer):
    """Optuna's tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), of one objective or several

    A study in a journal goes on where it was: what it was told it knows, and asks for first, so that a search
    with a store has those runs at once.
    """

    seed: int = Field(0, ge=0, description="of the sampler")
    journal: Path | None = Field(
        None, description="file that keeps the study, from the working folder; omitted: nothing is kept"
    )

    def start(self, space: DesignSpace) -> AskTell:
        """See :class:`Optimizer`."""
        try:
            import optuna
        except ImportError as error:
            raise InputError("Optuna is not installed", hint=install_extra("optuna")) from error
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            return _OptunaStudy(optuna, self, space)
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"the journal {self.journal} can't be used: {error}") from error


class _OptunaStudy(AskTell):
    def __init__(self, optuna: Any, settings: OptunaOptimizer, space: DesignSpace) -> None:
        self._points, self._axes, self._states = space.points, space.axes, optuna.trial.TrialState
        self._space = {
            name: optuna.distributions.CategoricalDistribution(labels) for name, labels in space.axes
        }
        self._numbers = {point.labels: number for number, point in enumerate(space.points)}
        storage = None
        if settings.journal is not None:
            journal = optuna.storages.journal
            storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(settings.journal)))
        named = hashlib.sha256(repr((space.axes, space.objectives)).encode()).hexdigest()[:16]
        self._study = optuna.create_study(
            study_name=named,
            storage=storage,
            load_if_exists=True,
            directions=["minimize"] * len(space.objectives),
        )
        self._asked: dict[int, Any] = {}
        self._told: dict[int, tuple[float, ...]] = {}
        known = self._study.get_trials(deepcopy=False, states=(self._states.COMPLETE,))
        # A sampler that begins again with the same seed would ask for what it asked for then.
        self._study.sampler = optuna.samplers.TPESampler(seed=settings.seed + len(known))
        self._first = [number for trial in known if (number := self._number(trial)) is not None]
        self._first = list(dict.fromkeys(self._first))[::-1]
        self._kept = {*self._first}

    def _number(self, trial: Any) -> int | None:
        return self._numbers.get(tuple(trial.params.get(name) for name, _ in self._axes))

    def ask(self) -> int | None:
        if self._first:
            return self._first.pop()
        for _ in range(_FRUITLESS):
            trial = self._study.ask(self._space)
            number = self._number(trial)
            if number is None or self._points[number].refused or number in self._asked:
                self._study.tell(trial, state=self._states.FAIL)
            elif number in self._told:
                self._tell(trial, self._told[number])
            else:
                self._asked[number] = trial
                return number
        return None

    def tell(self, number: int, losses: tuple[float, ...]) -> None:
        self._told[number] = losses
        if number not in self._kept:
            self._tell(self._asked.pop(number), losses)

    def _tell(self, trial: Any, losses: tuple[float, ...]) -> None:
        if all(map(math.isfinite, losses)):
            self._study.tell(trial, losses)
        else:
            self._study.tell(trial, state=self._states.FAIL)
