"""What an optimizer is: it is asked which point of a design to run next, and told what came of it.

To plug one in::

    class Shuffled(Optimizer):
        '''Points in a random order'''

        seed: int = Field(0, description="of the order")

        def start(self, space: DesignSpace) -> AskTell:
            return _Order(random.Random(self.seed).sample(space.able, len(space.able)))

    class _Order(AskTell):
        def __init__(self, left: list[int]) -> None:
            self._left = left

        def ask(self) -> int | None:
            return self._left.pop() if self._left else None

        def tell(self, number: int, losses: tuple[float, ...]) -> None:
            pass

and name it: ``--optimizer shuffled.py:Shuffled``, ``optimizer: {plugin: shuffled.py:Shuffled, seed: 1}``, or
by an entry point in ``cosim.optimizers``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from cosim.spec import Spec


@dataclass(frozen=True)
class DesignPoint:
    """One choice on every axis. ``bounds``: of each objective, the least loss that it can have (minus
    infinity: nothing is known); ``refused``: why it can't be, empty where it can.
    """

    labels: tuple[str, ...]
    bounds: tuple[float, ...] = ()
    refused: str = ""


@dataclass(frozen=True)
class DesignSpace:
    """All points, in the order of the design.

    Attributes
    ----------
    axes
        (name, labels) of each.
    objectives
        Names of what is optimised; a loss is what is to be small: minus the value where more is better.
    points
        One choice on every axis each.
    slack
        Relative: by so much more than the best a bound may have and its point still be worth running; less
        than 0: by so much better it has to be.
    """

    axes: tuple[tuple[str, tuple[str, ...]], ...]
    objectives: tuple[str, ...]
    points: Sequence[DesignPoint]
    slack: float = 0.0

    @property
    def able(self) -> list[int]:
        """Numbers of the points that are not refused."""
        return [number for number, point in enumerate(self.points) if not point.refused]


class AskTell(ABC):
    """A search under way. The same is asked and told whenever it is repeated."""

    @abstractmethod
    def ask(self) -> int | None:
        """The number of a point that is not refused and was not asked for before; None: there is none to try.
        Several may be asked for before the first is told.
        """

    @abstractmethod
    def tell(self, number: int, losses: tuple[float, ...]) -> None:
        """What a point has of each objective, less is better; infinite where it could not go on, or breaks a
        constraint.
        """


class Optimizer(Spec):
    """Base of the optimizers that a search can name. Fields are settings."""

    @abstractmethod
    def start(self, space: DesignSpace) -> AskTell:
        """A search of a space.

        Raises
        ------
        InputError
            It can't search such a space, or lacks what it needs.
        """
