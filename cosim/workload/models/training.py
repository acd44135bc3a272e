"""A training iteration: layers on pipeline stages, in a schedule's order, as one program for each stage.

Each stage's passes run in order on the compute stream. What a pass waits for: its input from the stage
before (or after, for gradients), and each piece's exchange before the next piece. Gradients are summed over
the data-parallel axes, all at the end or bucket by bucket during the last backward; embeddings that first and
last stage share are summed between the two; then the gradients' norm over the model-parallel ranks, then the
optimizer, with its states on every rank or sharded over the data-parallel axis (ZeRO stage 1, Rajbhandari
et al., arXiv 1910.02054: gradients are reduce-scattered, parameters all-gathered after the step).

The host issues a piece's kernels one after another on the CPU stream, ahead of the GPU: a piece starts once
the host begins to issue it and what it waits for has ended; it is over when the GPU has ended it and the
host has issued it. Where the host is never behind in any pass, launches are left out, and pieces without an
exchange between them are one operation: every time is the same.

Not modelled: the loss and its printing, input loading, checkpoints; the depth of the launch queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cosim.workload.compute.kernels import Kernel, memory
from cosim.workload.models.parts import Exchange, Layer, Piece, merged
from cosim.workload.models.schedule import Pass, ScheduleName, passes
from cosim.workload.program import (
    COMM_STREAM,
    COMPUTE_STREAM,
    CPU_STREAM,
    NO_STREAM,
    DeviceMesh,
    ImportReport,
    Operation,
    OpKind,
    Peer,
    Program,
    Workload,
)

EXCHANGE_STREAM = "comm-tp"
"""Exchanges between pieces have a stream of their own, so that no gradient bucket holds them up."""
PIPELINE_STREAM = "comm-pp"
_ADAM_STATE_BYTES = 3 * (4 + 4)
"""Per parameter: fp32 master weight and two moments, read and written."""
_NORM_BYTES = 8


class Timer(Protocol):
    """A compute model, as the builder asks it."""

    def kernels_ps(self, kernels: Sequence[Kernel]) -> int:
        """Picoseconds that kernels take on the GPU, one after another."""

    def host_ps(self, launches: int) -> int:
        """Picoseconds that the host takes to issue so many operators; 0: it is never waited for."""

    def step_ps(self) -> int:
        """Picoseconds of the host in an iteration beside its operators."""

    def slowed_ps(self, duration_ps: int) -> int:
        """What a computation takes while a collective runs on the same GPU."""


@dataclass(frozen=True, slots=True)
class Training:
    """How an iteration is done.

    Attributes
    ----------
    boundary_bytes
        What a rank sends to the next stage: its part of the hidden state.
    boundary_gather
        How a stage makes it whole, if ranks send parts.
    tied_bytes
        Gradients that first and last stage share, of one rank; 0: none.
    gradient_width, parameter_width
        Bytes of a gradient as it is exchanged, and of a parameter.
    bucket
        Gradients exchanged at once while backward goes on; None: all after the last backward.
    norm_axes
        Axes over which the gradients' norm is summed, one after the other.
    blocking_sends
        Computation waits until what it sends has arrived, as Megatron-LM's does without overlap.
    synchronous_passes
        The host issues nothing of the next pass until the GPU has ended the one before.
    synchronous_exchanges
        The host issues nothing until an exchange between pieces has ended.
    """

    mesh: DeviceMesh
    micro_batches: int
    schedule: ScheduleName
    boundary_bytes: int
    boundary_gather: Exchange | None = None
    tied_bytes: int = 0
    gradient_width: int = 4
    parameter_width: int = 2
    bucket: int | None = None
    sharded_optimizer: bool = False
    norm_axes: tuple[str, ...] = ("tp", "pp")
    blocking_sends: bool = False
    synchronous_passes: bool = False
    synchronous_exchanges: bool = False


def build_training(
    name: str,
    stages: Sequence[Sequence[Sequence[Layer]]],
    training: Training,
    timer: Timer,
    report: ImportReport,
    builder: type[StageBuilder] | None = None,
) -> Workload:
    """The workload; ``stages[s][c]`` are the layers of chunk c on stage s, along the mesh's axis ``pp``."""
    programs = tuple(
        (builder or StageBuilder)(stage, len(stages), chunks, training, timer).program()
        for stage, chunks in enumerate(stages)
    )
    mesh = training.mesh
    ranks = np.arange(mesh.world_size)
    axes = list(mesh.axes)
    below = int(np.prod([mesh.axes[axis] for axis in axes[axes.index("pp") + 1 :]], dtype=np.int64))
    program_of = (ranks // below % mesh.axes["pp"]).astype(np.int32)
    return Workload(name, mesh, programs, program_of, report)


@dataclass(frozen=True, slots=True)
class _Step:
    """A piece as it is timed: on the GPU, and the operators that the host issues for it."""

    name: str
    duration_ps: int
    flops: int
    bytes_moved: int
    launches: int
    then: Exchange | None
    beside: Exchange | None = None


def _both(layers: Sequence[Layer]) -> tuple[list[tuple[Piece, ...]], list[tuple[Piece, ...]]]:
    """Pieces of a chunk's forward and backward pass, layer by layer."""
    backward = [(*layer.recompute, *layer.backward) for layer in reversed(layers)]
    return [layer.forward for layer in layers], backward


class StageBuilder:
    """Appends one stage's operations; ``last`` is what the next computation waits for."""

    def __init__(
        self, stage: int, stages: int, chunks: Sequence[Sequence[Layer]], training: Training, timer: Timer
    ) -> None:
        self.stage, self.stages, self.chunks = stage, stages, chunks
        self.training, self.timer = training, timer
        self.operations: list[Operation] = []
        self.last: tuple[int, ...] = ()
        self.last_launch: tuple[int, ...] = ()
        self.host_waits: tuple[int, ...] = ()
        """What the host waits for before it issues anything else."""
        self.last_bucket: tuple[int, ...] = ()
        self.filled: dict[tuple[str, ...], int] = {}
        self.buckets = 0
        self.host_matters = any(
            self._behind(self._pieces(pieces)) for layers in chunks for pieces in _both(layers)
        )
        self.steps = [tuple(self._steps(pieces) for pieces in _both(layers)) for layers in chunks]
        """Of each chunk, forward and backward."""

    def program(self) -> Program:
        """The stage's program."""
        training = self.training
        order = passes(training.schedule, self.stage, self.stages, training.micro_batches, len(self.chunks))
        left = dict.fromkeys(range(len(self.chunks)), training.micro_batches)
        for one in order:
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
        first = self.stage == 0 and one.chunk == 0
        final = self.stage == self.stages - 1 and one.chunk == len(self.chunks) - 1
        name = f"micro-batch {one.micro_batch} "
        if not first:
            self._receive(f"{name}activations", one, step=-1)
        self._compute(name, one)
        if not final:
            self._send(f"{name}activations", one, step=1)

    def _backward(self, one: Pass, *, last: bool) -> None:
        first = self.stage == 0 and one.chunk == 0
        final = self.stage == self.stages - 1 and one.chunk == len(self.chunks) - 1
        name = f"micro-batch {one.micro_batch} "
        if not final:
            self._receive(f"{name}gradients", one, step=1)
        self._compute(name, one, last=last)
        if not first:
            self._send(f"{name}gradients", one, step=-1)

    def _compute(self, name: str, one: Pass, *, last: bool = False) -> None:
        """A pass through a chunk's layers; ``last``: the chunk's last of the iteration."""
        if last and self.training.bucket is not None:
            self._overlapped(name, one.chunk)
            return
        for step in self.steps[one.chunk][0 if one.forward else 1]:
            self._run(name, step, "forward" if one.forward else "backward")

    def _overlapped(self, name: str, chunk: int) -> None:
        """The last backward, layer by layer, full buckets leaving while it goes on."""
        for layer in reversed(self.chunks[chunk]):
            for step in self._steps([(*layer.recompute, *layer.backward)]):
                self._run(name, step, "backward", slowed=bool(self.last_bucket))
            for axes, count in layer.parameters.items():
                self._fill(axes, count)

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

    def _neighbour(self, one: Pass, step: int, *, sending: bool = False) -> tuple[Peer, int]:
        """The stage a pass gets its input from or hands its output to, and the tag of that chunk's messages.

        A tag is twice the chunk that computes with the message, plus one for gradients.
        """
        other = self.stage + step
        wraps = not 0 <= other < self.stages
        offset = step if not wraps else -step * (self.stages - 1)
        chunk = one.chunk + (step if wraps and sending else 0)
        return Peer(axis="pp", offset=offset), 2 * chunk + (not one.forward)

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
        each = _ADAM_STATE_BYTES + training.gradient_width + training.parameter_width
        for axes, parameters in own.items():
            size = self._group_size(axes) if training.sharded_optimizer else 1
            share = -(-parameters // size)
            kernel = memory(share * each, launches=8)
            step = self._step(Piece("optimizer", (kernel,)), issued=self.host_matters)
            self._run("", step, "optimizer")
            if size > 1:
                gather = Exchange("all_gather", axes, share * training.parameter_width)
                self._exchange("parameters gathered", gather, "optimizer")

    def _share_tied(self) -> None:
        """First and last stage add up a gradient that both have, as a ring all-reduce of two does."""
        offset = self.stages - 1 if self.stage == 0 else 1 - self.stages
        size = -(-self.training.tied_bytes // 2)
        for half in ("reduced", "gathered"):
            peer, tag, before = Peer(axis="pp", offset=offset), 1 << 20, self.last
            name = f"embedding gradients {half}"
            send = self._append(
                Operation(
                    name, OpKind.SEND, PIPELINE_STREAM, before, size_bytes=size, peer=peer, tag=tag,
                    phase="backward",
                )
            )  # fmt: skip
            receive = self._append(
                Operation(
                    name,
                    OpKind.RECV,
                    NO_STREAM,
                    before,
                    size_bytes=size,
                    peer=peer,
                    tag=tag,
                    phase="backward",
                )
            )
            self.last = (send, receive)

    def _fill(self, axes: tuple[str, ...], parameters: int) -> None:
        self.filled[axes] = self.filled.get(axes, 0) + parameters
        bucket = self.training.bucket
        if bucket is not None and self.filled[axes] * self.training.gradient_width >= bucket:
            self._flush(axes)

    def _flush(self, axes: tuple[str, ...]) -> None:
        """Exchange the gradients that have come together for some axes."""
        parameters = self.filled.pop(axes)
        if self._group_size(axes) == 1 or parameters == 0:
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

    def _group_size(self, axes: tuple[str, ...]) -> int:
        sizes: Mapping[str, int] = self.training.mesh.axes
        return int(np.prod([sizes.get(axis, 1) for axis in axes], dtype=np.int64))

    # -- operations ----------------------------------------------------------------------------------

    def _steps(self, layers: Sequence[Sequence[Piece]]) -> list[_Step]:
        """A pass's pieces, made one as far as nobody can tell.

        With passes that the host waits for, it is ahead of the GPU from some piece of a pass on, at the
        latest from the end: launches after that are left out.
        """
        fine = self._pieces(layers)
        behind = len(fine)
        if not self.host_matters:
            behind = 0
        elif self.training.synchronous_passes:
            behind = self._behind(fine)
        steps = [self._step(piece, issued=True) for piece in fine[:behind]]
        return steps + [self._step(piece, issued=False) for piece in merged(fine[behind:])]

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
            if self.training.synchronous_exchanges and step.then is not None:
                issued = computed = 0
        return behind

    def _step(self, piece: Piece, *, issued: bool) -> _Step:
        then, beside = (
            each if each is not None and self._group_size(each.axes) > 1 else None
            for each in (piece.then, piece.beside)
        )
        kernels = piece.kernels
        return _Step(
            piece.name,
            self.timer.kernels_ps(kernels),
            sum(kernel.flops for kernel in kernels),
            sum(kernel.bytes_moved for kernel in kernels),
            sum(kernel.launches for kernel in kernels) + (then is not None) + (beside is not None)
            if issued
            else 0,
            then,
            beside,
        )

    def _run(self, prefix: str, step: _Step, phase: str, *, slowed: bool = False) -> None:
        duration = self.timer.slowed_ps(step.duration_ps) if slowed else step.duration_ps
        name = f"{prefix}{step.name} {phase}"
        deps = tuple(sorted({*self.last, *self.last_launch, *self.host_waits}))
        launch = self._launch(step, name, phase)
        meanwhile: tuple[int, ...] = ()
        if step.beside is not None:
            self._exchange(f"{prefix}{step.name}", step.beside, phase)
            meanwhile = self.last
        number = self._append(
            Operation(
                name, OpKind.COMPUTE, COMPUTE_STREAM, deps, duration_ps=duration, flops=step.flops,
                bytes_moved=step.bytes_moved, phase=phase,
            )
        )  # fmt: skip
        self.last = (*launch, *meanwhile, number)
        if step.then is not None:
            self._exchange(f"{prefix}{step.name}", step.then, phase)
            if self.training.synchronous_exchanges:
                self.host_waits = self.last

    def _launch(self, step: _Step, name: str, phase: str) -> tuple[int, ...]:
        """The host issues a step's operators, after those before it."""
        duration = self.timer.host_ps(step.launches)
        if duration == 0:
            return ()
        deps = tuple(sorted({*self.last_launch, *self.host_waits}))
        self.host_waits = ()
        operation = Operation(
            f"{name} issued", OpKind.COMPUTE, CPU_STREAM, deps, duration_ps=duration, phase=phase
        )
        self.last_launch = (self._append(operation),)
        return self.last_launch

    def _exchange(self, name: str, exchange: Exchange, phase: str) -> None:
        number = self._append(
            Operation(
                f"{name} {exchange.collective}", OpKind.COLLECTIVE, EXCHANGE_STREAM, self.last,
                collective=exchange.collective, axes=exchange.axes, size_bytes=exchange.size_bytes,
                phase=phase,
            )
        )  # fmt: skip
        self.last = (number,)

    def _append(self, operation: Operation) -> int:
        self.operations.append(operation)
        return len(self.operations) - 1
