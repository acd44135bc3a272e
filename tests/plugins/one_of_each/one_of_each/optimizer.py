"""Asks for points from the last to the first."""

from pydantic import Field

from cosim.plugins import AskTell, DesignSpace, Optimizer


class LastFirst(Optimizer):
    """From the last point to the first, until so many were no better"""

    patience: int = Field(2, ge=1, description="points in a row that are no better")

    def start(self, space: DesignSpace) -> AskTell:
        return Backwards(space.able, self.patience)


class Backwards(AskTell):
    def __init__(self, left: list[int], patience: int) -> None:
        self.left, self.patience, self.worse, self.best = left, patience, 0, float("inf")

    def ask(self) -> int | None:
        return self.left.pop() if self.left and self.worse < self.patience else None

    def tell(self, number: int, losses: tuple[float, ...]) -> None:
        self.worse = 0 if losses[0] < self.best else self.worse + 1
        self.best = min(self.best, losses[0])
