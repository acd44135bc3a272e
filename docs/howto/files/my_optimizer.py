"""Designs whose neighbours were good come first: a walk that goes on where it found something better."""

from cosim.plugins import AskTell, DesignSpace, Optimizer


class Neighbours(Optimizer):
    """Points that differ from the best in one axis, then the others"""

    def start(self, space: DesignSpace) -> AskTell:
        return Walk(space)


class Walk(AskTell):
    def __init__(self, space: DesignSpace) -> None:
        self.space, self.left, self.best = space, space.able, (float("inf"), 0)

    def ask(self) -> int | None:
        here = self.space.points[self.best[1]].labels
        self.left.sort(
            key=lambda k: sum(a != b for a, b in zip(self.space.points[k].labels, here, strict=True))
        )
        return self.left.pop(0) if self.left else None

    def tell(self, number: int, losses: tuple[float, ...]) -> None:
        self.best = min(self.best, (losses[0], number))
