"""Activations that wait for backward in remote memory, as Transformer Engine's offload to the CPU has them.

Of the first N layers (Megatron-Core's ``cpu_offloading_num_layers``) what a layer keeps is copied out once it
has run, beside the layers after it, and comes back before its backward, beside the backward of layers after
it. Copies are spread over all L layers: the i-th is waited for, and the next begins, at the end of layer
(i + 1) L / N - 1, and so on the way back (``AsyncDoubleBufferGroupOffloadHandler``,
``transformer_engine/pytorch/cpu_offload.py``). Copies out have a stream of their own, and so have those back.

On the GPU are two of those layers' at most.

Not modelled: what a copy takes of the GPU's own memory rate; weights, which stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cosim.errors import WorkloadError
from cosim.models.catalogue.assemble import ShardedStage
from cosim.models.job import ModelJob
from cosim.models.offload import OffloadedStage
from cosim.models.parts import Layer
from cosim.models.schedule import Pass
from cosim.models.stage import StageBuilder
from cosim.models.training import Timer, Training
from cosim.workload.operation import LOAD, STORE
from cosim.workload.program import MEMORY_STREAM, Operation, OpKind

_AHEAD = 2
"""Layers whose activations are on the GPU though they live elsewhere: one is worked on, one comes or goes."""


def with_activations_out(job: ModelJob, layers: int) -> ModelJob:
    """The job with activations of its first ``layers`` in remote memory.

    Raises
    ------
    WorkloadError
        It has not as many layers, or is trained in a way that has no such offload.
    """
    total = len(job.stages[0][0]) - 2
    kept = job.training.saved_bytes
    sharded = job.builder is ShardedStage
    if len(job.stages) > 1 or not kept or not (sharded or job.builder in (StageBuilder, OffloadedStage)):
        raise WorkloadError(
            f"{job.name}: offload.activations is of Megatron's training on one stage (parallel.pp: 1), of"
            " dense layers that run once (recompute: none)",
            hint="recompute: full keeps less, too",
        )
    if layers >= total:
        raise WorkloadError(
            f"{job.name}: offload.activations: {layers} of {total} layers, the last of which backward needs"
            f" at once; {total - 1} at most"
        )
    if job.training.overlap_parameters:
        raise WorkloadError(
            f"{job.name}: offload.activations doesn't go with overlap_param_gather",
            hint="leave overlap_param_gather out, or shard parameters, too: parallel.fsdp",
        )
    gone = max(0, layers - _AHEAD) * kept
    memory = replace(
        job.memory,
        activations=max(0, job.memory.activations - gone),
        remote=job.memory.remote + layers * kept,
    )
    return replace(
        job,
        training=replace(job.training, layers_out=layers),
        memory=memory,
        builder=ShardedActivationsStage if sharded else ActivationsStage,
    )


def windows(layers: int, total: int) -> list[int]:
    """The layer at whose end each copy is waited for."""
    each, left = divmod(total, layers)
    return [each * (number + 1) - 1 + min(number + 1, left) for number in range(layers)]


class _ActivationsOut(StageBuilder):
    """A stage that copies what a layer keeps, out and back; its first layer is the embedding."""

    def __init__(
        self, stage: int, stages: int, chunks: Sequence[Sequence[Layer]], training: Training, timer: Timer
    ) -> None:
        super().__init__(stage, stages, chunks, training, timer)
        self.total = len(chunks[0]) - 2
        self.windows = windows(training.layers_out, self.total)
        self.copied = 0
        self.gone: tuple[int, ...] = ()
        self.back: tuple[int, ...] = ()

    def _layer_ends(self, name: str, one: Pass, place: int) -> None:
        layer = place - 1
        if not one.forward or not 0 <= layer < self.total:
            return
        if layer == 0:
            self.copied = 0
            self.gone = self._copied(f"{name}layer 0", STORE, "forward")
        if self.copied < len(self.windows) and self.windows[self.copied] == layer:
            self._wait(self.gone)
            self.copied += 1
            if self.copied < len(self.windows):
                self.gone = self._copied(f"{name}layer {self.copied}", STORE, "forward")

    def _layer_begins(self, name: str, one: Pass, place: int) -> None:
        layer = place - 1
        if one.forward or not 0 <= layer < self.total:
            return
        if self.copied and self.windows[self.copied - 1] == layer:
            self._wait(self.back)
            self.copied -= 1
            self.back = self._copied(f"{name}layer {self.copied}", LOAD, "backward")
        if layer == 0:
            self._wait(self.back)

    def _wait(self, copies: tuple[int, ...]) -> None:
        self.last = tuple(sorted({*self.last, *copies}))

    def _copied(self, what: str, access: str, phase: str) -> tuple[int, ...]:
        way = {STORE: "out", LOAD: "back"}[access]
        number = self._append(
            Operation(
                f"{what} activations {way}", OpKind.MEMORY, f"{MEMORY_STREAM}-{way}", self.last,
                size_bytes=self.training.saved_bytes, phase=phase, access=access,
            )
        )  # fmt: skip
        return (number,)


class ActivationsStage(_ActivationsOut, OffloadedStage):
    """Memory of whole parameters, of which some may live remotely, too."""


class ShardedActivationsStage(_ActivationsOut, ShardedStage):
    """Memory of parameters that come together layer by layer."""
