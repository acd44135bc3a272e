"""A stage's operations as they are issued: by the host, on streams, one after the other.

The host issues a piece's kernels one after another on the CPU stream, ahead of the GPU: a piece starts once
the host begins to issue it and what it waits for has ended; it is over when the GPU has ended it and the
host has issued it.

Not modelled: the depth of the launch queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.models.parts import Exchange, Layer, Piece
from cosim.models.schedule import Pass, part_of, where
from cosim.models.training import Timer, Training
from cosim.workload.program import COMPUTE_STREAM, CPU_STREAM, NO_STREAM, Operation, OpKind, Peer, Program

EXCHANGE_STREAM = "comm-tp"
"""Exchanges between pieces have a stream of their own, so that no gradient bucket holds them up."""
PIPELINE_STREAM = "comm-pp"


@dataclass(frozen=True, slots=True)
class TimedPiece:
    """A piece as it is timed: on the GPU, and the operators that the host issues for it."""

    name: str
    duration_ps: int
    flops: int
    bytes_moved: int
    launches: int
    then: Exchange | None
    beside: Exchange | None = None
    read: bool = False
    """The host waits for it."""


class Issuer:
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

    def program(self) -> Program:
        """The stage's program."""
        raise NotImplementedError

    def group_size(self, axes: tuple[str, ...]) -> int:
        """Ranks of a group along axes; those that the mesh doesn't have count one."""
        sizes: Mapping[str, int] = self.training.mesh.axes
        return int(np.prod([sizes.get(axis, 1) for axis in axes], dtype=np.int64))

    def _step(self, piece: Piece, *, issued: bool) -> TimedPiece:
        then, beside = (
            each if each is not None and self.group_size(each.axes) > 1 else None
            for each in (piece.then, piece.beside)
        )
        kernels = piece.kernels
        return TimedPiece(
            piece.name,
            self.timer.kernels_ps(kernels),
            sum(kernel.flops for kernel in kernels),
            sum(kernel.bytes_moved for kernel in kernels),
            sum(kernel.operators for kernel in kernels)
            + piece.issued
            + (then is not None)
            + (beside is not None)
            if issued
            else 0,
            then,
            beside,
            piece.mark is not None and piece.mark.what == "host waits",
        )

    def _run(self, prefix: str, step: TimedPiece, phase: str, *, slowed: bool = False) -> None:
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
        if step.read:
            self.host_waits = self.last

    def _launch(self, step: TimedPiece, name: str, phase: str) -> tuple[int, ...]:
        """The host issues a step's operators, after those before it."""
        return self.by_host(step.launches, name, phase)

    def by_host(self, launches: int, name: str, phase: str) -> tuple[int, ...]:
        """The host issues so many operators, after those before; nothing where that takes no time."""
        duration = self.timer.host_ps(launches)
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

    def _neighbour(self, one: Pass, step: int, *, sending: bool = False) -> tuple[Peer, int]:
        """The stage a pass gets its input from or hands its output to, and the tag of that chunk's messages.

        A tag is twice the chunk that computes with the message, plus one for gradients.
        """
        schedule = self.training.schedule
        stage, chunk = where(schedule, self._part(one) + step, self.stages)
        tag = 2 * (chunk if sending else one.chunk) + (not one.forward)
        return Peer(axis="pp", offset=stage - self.stage), tag

    def _part(self, one: Pass) -> int:
        """Which part of the model a pass goes through."""
        return part_of(self.training.schedule, self.stage, one.chunk, self.stages)

    def _begins(self, one: Pass) -> bool:
        """Whether nobody comes before a pass forward: it is through the model's first layers."""
        return self._part(one) == 0

    def _ends(self, one: Pass) -> bool:
        """Whether nobody comes after a pass forward: it is through the model's last layers."""
        return self._part(one) == self.stages * len(self.chunks) - 1

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
