"""Branch and bound on a list: the most promising first, until none is."""

from __future__ import annotations

import numpy as np

from cosim.experiment.search.contract import AskTell, DesignSpace, Optimizer
from cosim.results.fronts import is_beaten


class BestFirst(Optimizer):
    """The best bound first, until no bound is better than what was found: then that is the best of all"""

    def start(self, space: DesignSpace) -> AskTell:
        """See :class:`Optimizer`."""
        return _ByBound(space)


class _ByBound(AskTell):
    """With several objectives, the least sum of places in the orders of each comes first."""

    def __init__(self, space: DesignSpace) -> None:
        self._space = space
        able = space.able
        bounds = np.array([space.points[number].bounds for number in able], np.float64)
        bounds = bounds.reshape(len(able), len(space.objectives))
        places = sum(
            (np.unique(column, return_inverse=True)[1].ravel() for column in bounds.T),
            np.zeros(len(able), np.int64),
        )
        self._left = [able[k] for k in np.argsort(places, kind="stable").tolist()][::-1]
        self._found = np.zeros((0, len(space.objectives)))

    def ask(self) -> int | None:
        while self._left:
            number: int = self._left.pop()
            if not is_beaten(self._space.points[number].bounds, self._found, self._space.slack):
                return number
        return None

    def tell(self, number: int, losses: tuple[float, ...]) -> None:  # noqa: ARG002 - which it was
        self._found = np.vstack([self._found, losses])
