"""A training iteration: layers on pipeline stages, in a schedule's order, as one program for each stage.

Each stage's passes run in order on the compute stream. What a pass waits for: its input from the stage
before (or after, for gradients), and each piece's exchange before the next piece. Gradients are summed over
the data-parallel axes, all at the end or bucket by bucket during the last backward; embeddings that first and
last stage share are summed between the two; then the gradients' norm over the model-parallel ranks, then the
optimizer, with its states on every rank or sharded over the data-parallel axis (ZeRO stage 1, Rajbhandari
et al., arXiv 1910.02054: gradients are reduce-scattered, parameters all-gathered after the step).

With ``overlap_parameters`` that gather is the next iteration's, beside its first forward passes; a first
iteration has it as well, as any other would.

Where the host is never behind, in any pass or after it waited for the GPU, launches are left out, and pieces
without an exchange between them are one operation: every time is the same.

Not modelled: the loss and its printing, input loading, checkpoints.
"""

from __future__ import annotations

from collections.abc import Sequence

from cosim.gpu.kernels import memory
from cosim.models.issuer import PIPELINE_STREAM, Issuer, TimedPiece
from cosim.models.parts import Exchange, Layer, Piece, merged, overlapped
from cosim.models.schedule import Pass, paired, passes
from cosim.models.training import Timer, Training
from cosim.workload.program import (
    COMM_STREAM,
    CPU_STREAM,
    NO_STREAM,
    Operation,
    OpKind,
    Program,
)

PARAMETER_STREAM = "comm-parameters"
STATE_BYTES = 3 * 4
"""Per parameter: fp32 master weight and two moments."""
_NORM_BYTES = 8


def _both(layers: Sequence[Layer]) -> tuple[list[tuple[Piece, ...]], list[tuple[Piece, ...]]]:
    """Pieces of a chunk's forward and backward pass, layer by layer."""
    backward = [(*layer.recompute, *layer.backward) for layer in reversed(layers)]
    return [layer.forward for layer in layers], backward


class StageBuilder(Issuer):
    """One stage's operations, as Megatron-LM and DeepSpeed order them."""

    def __init__(
        self, stage: int, stages: int, chunks: Sequence[Sequence[Layer]], training: Training, timer: Timer
    ) -> None:
        super().__init__(stage, stages, chunks, training, timer)
        self.last_bucket: tuple[int, ...] = ()
        self.filled: dict[tuple[str, ...], int] = {}
        self.buckets = 0
        self.parameters_at: dict[tuple[int, int], tuple[int, ...]] = {}
        """Gathers that a layer waits for in its first forward, by chunk and place."""
        self.host_matters = any(
            self._behind(self._pieces(pieces)) for layers in chunks for pieces in _both(layers)
        )
        self.paired = False
        """Whether the pass that is being issued has one of another micro-batch beside it."""
        self._known: dict[tuple[int, int | None, bool, bool], list[TimedPiece]] = {}

    def program(self) -> Program:
        """The stage's program."""
        training = self.training
        if training.overlap_parameters:
            self._gather_parameters()
        order = passes(training.schedule, self.stage, self.stages, training.micro_batches, len(self.chunks))
        left = dict.fromkeys(range(len(self.chunks)), training.micro_batches)
        for one, self.paired in zip(order, paired(order), strict=True):
            if training.synchronous_passes:
                self.host_waits = self.last
            if one.forward:
                self._forward(one)
            else:
                left[one.chunk] -= 1
                self._backward(one, last=left[one.chunk] == 0)
        self._finish()
        return Program(f"stage {self.stage}" if self.stages > 1 else "every rank", tuple(self.operations))

    # -- passes --------------------------------------------------------------------------------------

    def _forward(self, one: Pass) -> None:
        name = f"micro-batch {one.micro_batch} "
        if not self._begins(one):
            self._receive(f"{name}activations", one, step=-1)
        self._compute(name, one)
        if not self._ends(one):
            self._send(f"{name}activations", one, step=1)

    def _backward(self, one: Pass, *, last: bool) -> None:
        name = f"micro-batch {one.micro_batch} "
        if not self._ends(one):
            self._receive(f"{name}gradients", one, step=1)
        self._compute(name, one, last=last)
        if not self._begins(one):
            self._send(f"{name}gradients", one, step=-1)

    def _compute(self, name: str, one: Pass, *, last: bool = False) -> None:
        """A pass through a chunk's layers; ``last``: the chunk's last of the iteration."""
        if last and self.training.bucket is not None:
            self._overlapped(name, one.chunk)
            return
        if one.forward and one.micro_batch == 0 and self.training.overlap_parameters:
            self._first_forward(name, one.chunk)
            return
        for step in self._steps_of(one):
            self._run(name, step, "forward" if one.forward else "backward")

    def _layer_begins(self, name: str, one: Pass, place: int) -> None:
        """Where a stage runs layer by layer, for those that have something to do between."""

    def _layer_ends(self, name: str, one: Pass, place: int) -> None:
        """After a layer."""

    def _overlapped(self, name: str, chunk: int) -> None:
        """The last backward, layer by layer, full buckets leaving while it goes on."""
        for layer in reversed(self.chunks[chunk]):
            for step in self._steps([(*layer.recompute, *layer.backward)]):
                self._run(name, step, "backward", slowed=bool(self.last_bucket))
            for axes, count in layer.parameters.items():
                self._fill(axes, count)

    def _gather_parameters(self) -> None:
        """What the optimizer's step before left on each rank is gathered, in the order in which forward
        needs it.
        """
        before: tuple[int, ...] = ()
        for chunk, layers in enumerate(self.chunks):
            open_: dict[tuple[str, ...], int] = {}
            places: list[int] = []
            for place, layer in enumerate(layers):
                places.append(place)
                for axes, count in layer.parameters.items():
                    open_[axes] = open_.get(axes, 0) + count
                width = self.training.gradient_width
                full = max(open_.values(), default=0) * width >= (self.training.bucket or 0)
                if not full and place < len(layers) - 1:
                    continue
                for axes, count in open_.items():
                    if self.group_size(axes) > 1 and count:
                        share = -(-count // self.group_size(axes))
                        size = share * self.training.parameter_width
                        before = (self._gathered(axes, size, before),)
                self.parameters_at |= dict.fromkeys(((chunk, each) for each in places), before)
                open_, places = {}, []

    def _gathered(self, axes: tuple[str, ...], size_bytes: int, before: tuple[int, ...]) -> int:
        return self._append(
            Operation(
                "parameters gathered", OpKind.COLLECTIVE, PARAMETER_STREAM, before, collective="all_gather",
                axes=axes, size_bytes=size_bytes, phase="forward",
            )
        )  # fmt: skip

    def _first_forward(self, name: str, chunk: int) -> None:
        """Layer by layer, each after its parameters have come together."""
        for place, layer in enumerate(self.chunks[chunk]):
            self.last = tuple(sorted({*self.last, *self.parameters_at.get((chunk, place), ())}))
            for step in self._steps([layer.forward]):
                self._run(name, step, "forward", slowed=True)

    def _receive(self, name: str, one: Pass, step: int) -> None:
        peer, tag = self._neighbour(one, step)
        kind = OpKind.RECV
        self._append(
            Operation(
                name, kind, NO_STREAM, self.last, size_bytes=self.training.boundary_bytes, peer=peer, tag=tag,
                phase="forward" if one.forward else "backward",
            )
        )  # fmt: skip
        self.last = (*self.last, len(self.operations) - 1)
        gather = self.training.boundary_gather
        if gather is not None:
            self._exchange(f"{name} gathered", gather, "forward" if one.forward else "backward")

    def _send(self, name: str, one: Pass, step: int) -> None:
        peer, tag = self._neighbour(one, step, sending=True)
        number = self._append(
            Operation(
                name, OpKind.SEND, PIPELINE_STREAM, self.last, size_bytes=self.training.boundary_bytes,
                peer=peer, tag=tag, phase="forward" if one.forward else "backward",
            )
        )  # fmt: skip
        if self.training.blocking_sends:
            self.last = (number,)

    # -- the end of an iteration -----------------------------------------------------------------------

    def _finish(self) -> None:
        training = self.training
        if training.bucket is None:
            for layers in self.chunks:
                for layer in layers:
                    for axes, count in layer.parameters.items():
                        self.filled[axes] = self.filled.get(axes, 0) + count
        for axes in list(self.filled):
            self._flush(axes)
        self.last = tuple(sorted({*self.last, *self.last_bucket}))
        if training.tied_bytes and self.stages > 1 and self.stage in (0, self.stages - 1):
            self._share_tied()
        step_ps = self.timer.step_ps()
        if step_ps:
            operation = Operation(
                "step issued", OpKind.COMPUTE, CPU_STREAM, self.last, duration_ps=step_ps, phase="optimizer"
            )
            self.last = self.last_launch = (self._append(operation),)
        own = {
            axes: sum(layer.parameters.get(axes, 0) for layers in self.chunks for layer in layers)
            for axes in {
                axes: None for layers in self.chunks for layer in layers for axes in layer.parameters
            }
        }
        count = sum(own.values())
        norm = memory(count * training.gradient_width, launches=4)
        self._run("", self._step(Piece("gradient norm", (norm,)), issued=self.host_matters), "optimizer")
        for axis in training.norm_axes:
            if training.mesh.axes.get(axis, 1) > 1:
                self._exchange(
                    f"gradient norm {axis}", Exchange("all_reduce", (axis,), _NORM_BYTES), "optimizer"
                )
        for axes, parameters in own.items():
            size = self.group_size(axes) if training.sharded_optimizer else 1
            share = -(-parameters // size)
            self._update(share)
            if size > 1 and not training.overlap_parameters:
                gather = Exchange("all_gather", axes, share * training.parameter_width)
                self._exchange("parameters gathered", gather, "optimizer")

    @property
    def _update_bytes(self) -> int:
        """Read and written for a parameter's update: its states twice, gradient and parameter once."""
        return 2 * STATE_BYTES + self.training.gradient_width + self.training.parameter_width

    def _update(self, parameters: int) -> None:
        """The optimizer's step for so many parameters."""
        kernel = memory(parameters * self._update_bytes, launches=8)
        step = self._step(Piece("optimizer", (kernel,)), issued=self.host_matters)
        self._run("", step, "optimizer")

    def _fill(self, axes: tuple[str, ...], parameters: int) -> None:
        self.filled[axes] = self.filled.get(axes, 0) + parameters
        bucket = self.training.bucket
        if bucket is not None and self.filled[axes] * self.training.gradient_width >= bucket:
            self._flush(axes)

    def _flush(self, axes: tuple[str, ...]) -> None:
        """Exchange the gradients that have come together for some axes."""
        parameters = self.filled.pop(axes)
        if self.group_size(axes) == 1 or parameters == 0:
            return
        kind = "reduce_scatter" if self.training.sharded_optimizer else "all_reduce"
        deps = tuple(sorted({*self.last, *self.last_bucket}))
        number = self._append(
            Operation(
                f"gradient bucket {self.buckets}", OpKind.COLLECTIVE, COMM_STREAM, deps, collective=kind,
                axes=axes, size_bytes=parameters * self.training.gradient_width, phase="backward",
            )
        )  # fmt: skip
        self.last_bucket = (number,)
        self.buckets += 1

    # -- operations ----------------------------------------------------------------------------------

    def _steps_of(self, one: Pass, place: int | None = None) -> list[TimedPiece]:
        """A pass through a chunk, or through the layer at a ``place`` of it."""
        key = one.chunk, place, one.forward, self.paired
        if key not in self._known:
            chunk = self.chunks[one.chunk]
            layers = chunk if place is None else chunk[place : place + 1]
            self._known[key] = self._steps(_both(layers)[0 if one.forward else 1])
        return self._known[key]

    def _steps(self, layers: Sequence[Sequence[Piece]]) -> list[TimedPiece]:
        """A pass's pieces, made one as far as nobody can tell.

        With passes that the host waits for, it is ahead of the GPU from some piece of a pass on, at the
        latest from the end: launches after that are left out.
        """
        fine = self._pieces(layers)
        if carried_on := self.training.carried_on(paired=self.paired):
            fine = overlapped(fine, carried_on)
        behind = len(fine)
        if not self.host_matters:
            behind = 0
        elif self.training.synchronous_passes:
            behind = self._behind(fine)
        steps = [self._step(piece, issued=True) for piece in fine[:behind]]
        return steps + [self._step(piece, issued=False) for piece in merged(fine[behind:], marks=False)]

    @staticmethod
    def _pieces(layers: Sequence[Sequence[Piece]]) -> list[Piece]:
        return [piece for pieces in layers for piece in merged(pieces)]

    def _behind(self, pieces: Sequence[Piece]) -> int:
        """Up to which piece of a pass the host can end issuing one after the GPU has ended it."""
        issued = computed = behind = 0
        for number, piece in enumerate(pieces):
            step = self._step(piece, issued=True)
            issued += self.timer.host_ps(step.launches)
            computed += step.duration_ps
            if issued > computed:
                behind = number + 1
            if step.read or (self.training.synchronous_exchanges and step.then is not None):
                issued = computed = 0
        return behind
