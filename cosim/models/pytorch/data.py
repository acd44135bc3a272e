"""What data parallelism does as passes go by: nothing, unless it says so."""

from __future__ import annotations

from cosim.models.parts import Weight


class DataParallelism:
    """Of the layers of a part of a stage, each known by its place among them."""

    def kept(self) -> tuple[list[int], list[int]]:
        """Numbers of each tensor that the optimizer sees on a rank, experts' apart."""
        raise NotImplementedError

    def forward_begins(self) -> None:
        """Of a micro-batch."""

    def before_forward(self, place: int) -> None:
        """Of a layer."""

    def after_forward(self, place: int) -> None:
        """Of a layer."""

    def before_experts(self, place: int, *, forward: bool) -> None:
        """Of a layer, either way."""

    def after_experts(self, place: int, *, forward: bool) -> None:
        """Of a layer, either way."""

    def forward_ends(self) -> None:
        """Of a micro-batch."""

    def backward_begins(self, *, last: bool) -> None:
        """Of a micro-batch, which may be the iteration's last."""

    def before_backward(self, place: int) -> None:
        """Of a layer."""

    def ready(self, weight: Weight) -> None:
        """A gradient of this pass is complete."""

    def after_backward(self, place: int) -> None:
        """Of a layer."""

    def backward_ends(self) -> None:
        """Of a micro-batch."""

    def inputs_end(self) -> None:
        """Of a micro-batch, of a pass that made no gradients of weights."""

    def weights_end(self) -> None:
        """Of a micro-batch, of a pass that made them by themselves."""

    def finish(self) -> None:
        """After the last backward of all: gradients are exchanged, and there."""

    def fetch(self) -> None:
        """A schedule has its turn soon: parameters are on their way."""

    def have(self) -> None:
        """Its turn has come: parameters are there."""

    def give_up(self) -> None:
        """Its turn doesn't come soon."""
