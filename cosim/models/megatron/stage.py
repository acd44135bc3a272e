"""A stage's iteration as Megatron-LM's ``train_step`` has it, with torch's operators alone.

Gradients are added to those in fp32, which have a stream of their own (``training.py`` makes the model within
one), each as it is made; at the end of a backward pass computation waits for them. Computation waits for each
message between stages. Without ``--overlap-grad-reduce`` all gradients are one bucket. Every number that the
host reads (is the loss, is the norm a number?) stops its issuing.

An iteration begins where the optimizer has stepped, as a profile's does: weights are converted, logs
averaged.

Not modelled: logging beyond that, the data loader, learning rates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cosim.gpu.kernels import memory
from cosim.models.catalogue.cut import TP
from cosim.models.megatron.operators import numbers
from cosim.models.megatron.training import LocalTraining
from cosim.models.parts import Exchange, Layer, Piece, Weight
from cosim.models.pytorch.operators import FP32, INDEX
from cosim.models.pytorch.optimizer import adamw
from cosim.models.pytorch.stage import EagerStage
from cosim.models.schedule import passes
from cosim.models.training import Timer, Training
from cosim.workload.program import Program

GRADIENT_STREAM = "gradients"


class LocalStage(EagerStage):
    """Kernels in the order in which Megatron-LM issues them."""

    training: LocalTraining

    def __init__(
        self, stage: int, stages: int, chunks: Sequence[Sequence[Layer]], training: Training, timer: Timer
    ) -> None:
        super().__init__(stage, stages, chunks, training, timer)
        self.added: tuple[int, ...] = ()
        """The last gradient that was added."""
        self.first, self.final = stage == 0, stage == stages - 1
        self.model_axes = tuple(axis for axis in ("pp", "tp") if self.group_size((axis,)) > 1)

    def program(self) -> Program:
        """The stage's program."""
        self._begin()
        order = passes(self.training.schedule, self.stage, self.stages, self.training.micro_batches)
        posted = self._posted(order[0])
        for one, follows in zip(order, [*order[1:], None], strict=True):
            name = f"micro-batch {one.micro_batch} "
            self.what = (name, "forward" if one.forward else "backward")
            self.wait(posted)
            if one.forward:
                self._forward()
            else:
                self._backward(last=False)
            self.close()
            sent = self._send(name, one)
            together = follows is not None and follows.forward != one.forward
            posted = self._posted(follows) if together and follows is not None else ()
            self.wait(sent)
            if follows is not None and not together:
                posted = self._posted(follows)
        self.what, self.layer = ("", "optimizer"), "gradients and optimizer"
        self._finish()
        return Program(f"stage {self.stage}" if self.stages > 1 else "every rank", tuple(self.operations))

    # -- passes ----------------------------------------------------------------------------------------

    def _forward(self) -> None:
        tokens, mask = self.training.tokens, self.training.mask_bytes
        batch = [tokens * INDEX] * (2 * self.first + self.final) + [tokens * FP32] * self.final
        self.layer = "batch"
        for size in (*batch, *([mask] if batch else ())):
            self.exchange(Exchange("broadcast", TP, size))
        for place, layer in enumerate(self.layers):
            self.layer = layer.name
            self._pieces(layer.forward, place)
        if not self.final:
            self.issue(numbers(12))  # tokens, counted

    def _backward(self, *, last: bool) -> None:  # noqa: ARG002 - each is like the last
        for place in reversed(range(len(self.layers))):
            self.layer = self.layers[place].name
            self._pieces(self.layers[place].backward, place)
        self.wait(self.added)

    def _pieces(self, pieces: Iterable[Piece], place: int) -> None:
        for piece in pieces:
            super()._pieces([replace(piece, ready=())], place)
            for weight in piece.ready:
                self._add(weight)

    def _add(self, weight: Weight) -> None:
        """A gradient to what there is of it."""
        training = self.training
        moved = weight.count * (training.parameter_width + 2 * training.gradient_width)
        after = (*self.close(), *self.added)
        number = self.on_stream(f"{weight.name} added", GRADIENT_STREAM, after, kernels=(memory(moved),))
        self.added = (number,)

    # -- between iterations ----------------------------------------------------------------------------

    def _read(self) -> None:
        """The host waits for what was issued."""
        self.host_waits = self.close()

    def _agreed(self, axes: tuple[str, ...]) -> None:
        """A number of all ranks, which the host reads."""
        self.exchange(Exchange("all_reduce", axes, FP32))
        self._read()

    def _begin(self) -> None:
        training, micro_batches = self.training, self.training.micro_batches
        self.what, self.layer = ("", "forward"), "weights and logs"
        self.issue(memory(w.count * (FP32 + training.parameter_width)) for w in self.weights)
        for _ in range(2):  # whether the step was made, the norm
            self._agreed(self.model_axes)
        if self.final:
            loss = 2 * FP32
            self.issue(numbers(2 * micro_batches * loss, (micro_batches + 1) * loss))
            self.exchange(Exchange("all_reduce", training.replica_axes, loss))
            self.issue(numbers(12, 12))
        self._agreed(self.model_axes)
        for _ in range(2):  # around the timers
            self.exchange(Exchange("barrier", self._world, 0))
        self._read()
        self.issue(numbers(self._gradient_bytes, FP32))

    @property
    def _world(self) -> tuple[str, ...]:
        return tuple(axis for axis, size in self.training.mesh.axes.items() if size > 1)

    @property
    def _gradient_bytes(self) -> int:
        return sum(weight.count for weight in self.weights) * self.training.gradient_width

    def _finish(self) -> None:
        training, size = self.training, self._gradient_bytes
        self.issue(numbers(size + FP32, 5))  # is their norm a number?
        self._read()
        self.issue(numbers(5))  # or infinite?
        self._read()
        if self.group_size(training.replica_axes) > 1:
            self.issue(numbers(2 * size))
            self.exchange(Exchange("all_reduce", training.replica_axes, size))
        if training.tied_bytes and self.stages > 1 and (self.first or self.final):
            self._tie()
        self._agreed(self._world)
        self._optimize()

    def _tie(self) -> None:
        """The embedding's gradients of first and last stage."""
        if self.stages == 2:
            self.exchange(Exchange("all_reduce", ("pp",), self.training.tied_bytes))
            return
        self.close()
        self.by_host(1, "embedding gradients", self.what[1])
        self._share_tied()

    def _optimize(self) -> None:
        """Norm of gradients, each once, read by the host; clipping; AdamW without decay of vectors."""
        width = self.training.gradient_width
        sizes = [weight.count * width for weight in self.weights]
        counted = [weight.count * width for weight in self.weights if not weight.copied]
        self.issue(numbers(FP32, FP32, *(size + FP32 for size in counted)))
        self._read()
        self.issue(numbers(2 * FP32))
        self._agreed(self.model_axes)
        self.issue(numbers(FP32, *(2 * size for size in sizes for _ in ("scaled", "copied"))))
        for matrices in (True, False):
            counts = [w.count for w in self.weights if (w.rows < w.count) == matrices]
            self.issue(adamw(sum(counts), len(counts), FP32, "foreach")[0 if matrices else 1 :])
        self.close()
