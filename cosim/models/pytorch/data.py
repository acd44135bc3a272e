"""What data parallelism does as passes go by: nothing, unless it says so."""

from __future__ import annotations

from cosim.models.parts import Weight


class DataParallelism:
    """Data parallelism of the layers of a part of a stage, each known by its place among them.

    Its methods are called as passes go by.
    """

    def kept(self) -> tuple[list[int], list[int]]:
        """Numbers of each tensor that the optimizer sees on a rank, experts' apart."""
        raise NotImplementedError

    def forward_begins(self) -> None:
        """A micro-batch's forward begins."""

    def before_forward(self, place: int) -> None:
        """A layer's forward begins."""

    def after_forward(self, place: int) -> None:
        """A layer's forward has ended."""

    def before_experts(self, place: int, *, forward: bool) -> None:
        """A layer's experts begin, either way."""

    def after_experts(self, place: int, *, forward: bool) -> None:
        """A layer's experts have ended, either way."""

    def forward_ends(self) -> None:
        """A micro-batch's forward has ended."""

    def backward_begins(self, *, last: bool) -> None:
        """A micro-batch's backward begins, maybe that of the iteration's last."""

    def before_backward(self, place: int) -> None:
        """A layer's backward begins."""

    def ready(self, weight: Weight) -> None:
        """A gradient of this pass is complete."""

    def after_backward(self, place: int) -> None:
        """A layer's backward has ended."""

    def backward_ends(self) -> None:
        """A micro-batch's backward has ended."""

    def inputs_end(self) -> None:
        """A micro-batch's pass has ended that made no gradients of weights."""

    def weights_end(self) -> None:
        """A micro-batch's pass has ended that made gradients of weights alone."""

    def finish(self) -> None:
        """After the last backward of all: gradients are exchanged, and there."""

    def fetch(self) -> None:
        """A schedule has its turn soon: parameters are on their way."""

    def have(self) -> None:
        """Its turn has come: parameters are there."""

    def give_up(self) -> None:
        """Its turn doesn't come soon."""
