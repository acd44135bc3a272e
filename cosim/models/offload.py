"""Training whose parameters, gradients or optimizer states live in remote memory.

What lives there comes layer by layer on a stream of its own, beside computation and communication, one layer
ahead, as ZeRO-Infinity (Rajbhandari et al., arXiv 2104.07857, section 6) prefetches it: parameters before a
layer's forward and again before its backward; gradients of several micro-batches before they are added to,
and after; what is left of a gradient once replicas have exchanged it; in the optimizer's step the states of
a layer's worth of parameters while the ones before are updated, which are stored while the next come. New
parameters are stored at the end. Of what lives remotely two layers' worth is on the GPU, as if all layers
were equally large.

Activations are :mod:`cosim.models.activations`'s. Not modelled: a part of the parameters, gradients or states
there and the rest not; an optimizer on the host; the norm of gradients that lie there already (it is summed
as they are made).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field, NonNegativeInt

from cosim.errors import WorkloadError
from cosim.gpu.kernels import memory
from cosim.models.catalogue.memory import Memory
from cosim.models.job import ModelJob
from cosim.models.parts import Layer, Piece
from cosim.models.schedule import Pass
from cosim.models.stage import STATE_BYTES, StageBuilder
from cosim.models.training import GRADIENTS, OPTIMIZER, PARAMETERS, Timer, Training
from cosim.spec import Spec
from cosim.workload.operation import LOAD, STORE
from cosim.workload.program import MEMORY_STREAM, Operation, OpKind

Where = Literal["local", "remote", "auto"]

_AHEAD = 2
"""Layers whose parameters, gradients or states are on the GPU at once: one is worked on, one comes."""


class Offload(Spec):
    """What of a training job lives in the scenario's remote memory"""

    optimizer: Where = Field("auto", description="its states; auto: where it doesn't fit otherwise")
    gradients: Where = Field("auto", description="as optimizer; auto: after the optimizer's states")
    parameters: Where = Field("auto", description="as optimizer; auto: after the gradients")
    activations: NonNegativeInt = Field(
        0,
        description="layers whose activations are there until backward (cpu_offloading_num_layers)",
    )

    def parts(self, needed: Memory, layers: int, room: int | None) -> frozenset[str]:
        """What lives remotely of a job that needs so much and has so many ``layers`` on a stage; ``room`` of
        a GPU, None: nobody asks.
        """
        asked = {OPTIMIZER: self.optimizer, GRADIENTS: self.gradients, PARAMETERS: self.parameters}
        chosen = frozenset(part for part, where in asked.items() if where == "remote")
        for part, where in asked.items():
            if where == "auto" and room is not None and offloaded_memory(needed, chosen, layers).total > room:
                chosen |= {part}
        return chosen


def offloaded_memory(needed: Memory, parts: frozenset[str], layers: int) -> Memory:
    """What stays on the GPU, and what doesn't: of each part, as much as is worked on."""

    def kept(part: str, size: int) -> int:
        return min(size, -(-size * _AHEAD // layers)) if part in parts else size

    weights = kept(PARAMETERS, needed.weights)
    gradients = kept(GRADIENTS, needed.gradients)
    optimizer = kept(OPTIMIZER, needed.optimizer)
    sizes = {PARAMETERS: needed.weights, GRADIENTS: needed.gradients, OPTIMIZER: needed.optimizer}
    remote = sum(sizes[part] for part in parts)
    return replace(needed, weights=weights, gradients=gradients, optimizer=optimizer, remote=remote)


def offloaded(job: ModelJob, offload: Offload, room: int | None) -> ModelJob:
    """The job with what doesn't stay on its GPUs.

    Raises
    ------
    WorkloadError
        It is trained in a way that has no offload.
    """
    layers = min(sum(len(chunk) for chunk in chunks) for chunks in job.stages)
    parts = offload.parts(job.memory, layers, room)
    if not parts:
        return job
    if job.builder is not StageBuilder or job.training.overlap_parameters:
        how = "overlap_param_gather" if job.training.overlap_parameters else f"{job.builder.__name__}"
        raise WorkloadError(
            f"{job.name}: {', '.join(sorted(parts))} can't live in remote memory with {how}",
            hint="offload is of Megatron's training with whole parameters: fsdp 1, no overlap_param_gather",
        )
    return replace(
        job,
        training=replace(job.training, remote=parts),
        memory=offloaded_memory(job.memory, parts, layers),
        builder=OffloadedStage,
    )


class OffloadedStage(StageBuilder):
    """A stage that loads and stores what ``training.remote`` names."""

    def __init__(
        self, stage: int, stages: int, chunks: Sequence[Sequence[Layer]], training: Training, timer: Timer
    ) -> None:
        super().__init__(stage, stages, chunks, training, timer)
        self.started: tuple[int, ...] = ()
        """What the layer that runs now waited for: then the next one's data are fetched."""
        self.begun: set[int] = set()
        """Chunks of which a micro-batch was through backward."""

    def _compute(self, name: str, one: Pass, *, last: bool = False) -> None:
        layers = self.chunks[one.chunk]
        phase = "forward" if one.forward else "backward"
        first = one.chunk not in self.begun
        for place in range(len(layers)) if one.forward else reversed(range(len(layers))):
            layer = layers[place]
            self._layer_begins(name, one, place)
            fetched = self._fetched(f"{name}{layer.name}", layer, phase, added=not one.forward and not first)
            self.started = self.last
            self.last = tuple(sorted({*self.last, *fetched}))
            slowed = bool(self.last_bucket) and not one.forward
            for step in self._steps_of(one, place):
                self._run(name, step, phase, slowed=slowed)
            self._layer_ends(name, one, place)
            if not one.forward:
                self._gradients(f"{name}{layer.name}", layer, last=last)
        if not one.forward:
            self.begun.add(one.chunk)

    def _fetched(self, name: str, layer: Layer, phase: str, *, added: bool) -> list[int]:
        """What a layer needs before it runs, gradients where they are ``added`` to."""
        training, count = self.training, layer.num_parameters
        sizes = {
            PARAMETERS: count * training.parameter_width,
            GRADIENTS: count * training.gradient_width if added else 0,
        }
        return [
            self._access(LOAD, f"{name} {part}", sizes[part], self.started, phase)
            for part in sizes
            if part in training.remote and sizes[part]
        ]

    def _gradients(self, name: str, layer: Layer, *, last: bool) -> None:
        """A layer's gradients after its backward: kept for the next micro-batch, or exchanged."""
        training = self.training
        size = layer.num_parameters * training.gradient_width
        if GRADIENTS in training.remote and size and (not last or training.bucket is None):
            self._access(STORE, f"{name} {GRADIENTS}", size, self.last, "backward")
        if last and training.bucket is not None:
            for axes, count in layer.parameters.items():
                self._fill(axes, count)

    def _flush(self, axes: tuple[str, ...]) -> None:
        """Exchange gradients; what is left of them goes to remote memory."""
        training, parameters = self.training, self.filled[axes]
        alone = self.group_size(axes) == 1
        if GRADIENTS not in training.remote or not parameters:
            super()._flush(axes)
            return
        size = parameters * training.gradient_width
        if training.bucket is None and not alone:
            loaded = self._access(LOAD, "gradients", size, self.last, "backward")
            self.last = tuple(sorted({*self.last, loaded}))
        super()._flush(axes)
        if training.bucket is None and alone:
            return  # they are there
        share = -(-size // self.group_size(axes)) if training.sharded_optimizer else size
        after = self.last if alone else self.last_bucket
        self._access(STORE, "gradients exchanged", share, after, "backward")

    def _update(self, parameters: int) -> None:
        """The optimizer's step, a layer's worth at a time: the next is loaded meanwhile, the last stored."""
        training, layers = self.training, sum(len(layers) for layers in self.chunks)
        states = STATE_BYTES if OPTIMIZER in training.remote else 0
        read = states + (training.gradient_width if GRADIENTS in training.remote else 0)
        if not read:
            super()._update(parameters)
            return
        blocks = max(1, min(layers, parameters))
        updated: list[tuple[int, ...]] = []
        begun = self.last
        for block in range(blocks):
            share = parameters * (block + 1) // blocks - parameters * block // blocks
            room = updated[-_AHEAD] if len(updated) >= _AHEAD else begun
            loaded = self._access(LOAD, f"optimizer {block}", share * read, room, "optimizer")
            self.last = tuple(sorted({*self.last, loaded}))
            kernel = memory(share * self._update_bytes, launches=1)
            step = self._step(Piece(f"optimizer {block}", (kernel,)), issued=self.host_matters)
            self._run("", step, "optimizer")
            updated.append(self.last)
            if states:
                self._access(STORE, f"optimizer {block}", share * states, self.last, "optimizer")

    def _finish(self) -> None:
        super()._finish()
        own = sum(layer.num_parameters for layers in self.chunks for layer in layers)
        if PARAMETERS in self.training.remote and own:
            size = own * self.training.parameter_width
            self._access(STORE, "parameters", size, self.last, "optimizer")

    def _access(self, access: str, what: str, size: int, deps: tuple[int, ...], phase: str) -> int:
        done = {LOAD: "loaded", STORE: "stored"}[access]
        return self._append(
            Operation(
                f"{what} {done}", OpKind.MEMORY, MEMORY_STREAM, deps, size_bytes=size, phase=phase,
                access=access,
            )
        )  # fmt: skip
