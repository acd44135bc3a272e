"""Layers on stages; parameters sharded over data-parallel ranks; inference.

Layers are spread over stages as evenly as they go; what is left over goes to the middle, as first and last
stage have the embedding and the head besides (Llama 3, arXiv 2407.21783, section 3.3.2).

Fully sharded (``fsdp``; ZeRO stage 3, Rajbhandari et al., arXiv 1910.02054; PyTorch FSDP, Zhao et al., arXiv
2304.11277): a layer's parameters are gathered while the layer before it computes (one is fetched ahead),
given up after it and gathered again in backward (not if it is the next to run), after which its gradients are
reduce-scattered. Experts, which fewer ranks shard, have a gather and a reduce-scatter of their own. Without
``reshard`` they are gathered once an iteration, and gradients reduce-scattered in
the last backward only.

Inference: forward passes of a batch in micro-batches; ``prefill`` reads prompts, ``decode`` makes one token
of each sequence after the other, the last stage handing tokens to the first. Not modelled: sampling beyond
a look at all logits, batches that change, attention over pages, chunked prefill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cosim.gpu.kernels import Kernel
from cosim.models.issuer import PIPELINE_STREAM
from cosim.models.parts import Layer
from cosim.models.schedule import Pass, ScheduleName, part_of
from cosim.models.stage import StageBuilder
from cosim.models.training import Timer, Training
from cosim.workload.program import COMM_STREAM, NO_STREAM, Operation, OpKind, Peer, Program

GATHER_STREAM = "comm-fsdp"
_TOKEN_BYTES = 4
_TOKEN_TAG = 1 << 20


def stages(
    counts: Sequence[int],
    deep: int,
    layer: Callable[[int], Layer],
    first: Layer,
    *last: Layer,
    schedule: ScheduleName = "1f1b",
) -> list[list[list[Layer]]]:
    """Layers by stage and chunk, as the schedule has the parts of the model; ``counts``: each's layers."""
    begin = [sum(counts[:part]) for part in range(len(counts) + 1)]
    parts = [[layer(k) for k in range(*ends)] for ends in pairwise(begin)]
    parts[0].insert(0, first)
    parts[-1].extend(last)
    return [
        [parts[part_of(schedule, stage, chunk, deep)] for chunk in range(len(counts) // deep)]
        for stage in range(deep)
    ]


@dataclass(frozen=True, slots=True)
class ShardedTraining(Training):
    """Training with parameters sharded over ``shard_axes``, those of experts over ``expert_shard_axes``."""

    shard_axes: tuple[str, ...] = ()
    expert_shard_axes: tuple[str, ...] = ()
    reshard: bool = True


class ShardedStage(StageBuilder):
    """A stage whose parameters come together layer by layer."""

    training: ShardedTraining

    def __init__(
        self, stage: int, stages: int, chunks: Sequence[Sequence[Layer]], training: Training, timer: Timer
    ) -> None:
        super().__init__(stage, stages, chunks, training, timer)
        self.started: tuple[int, ...] = ()
        """What the layer that runs now waited for: then the next one's parameters are fetched."""
        self.last_gather: tuple[int, ...] = ()
        self.just_run: tuple[int, int, int] | None = None
        """Chunk, place and micro-batch of the layer that ran last: it is not gathered again at once."""
        self.whole: dict[tuple[int, int], int] = {}
        """Gathers of layers that are kept, by chunk and place."""

    def _compute(self, name: str, one: Pass, *, last: bool = False) -> None:
        layers = self.chunks[one.chunk]
        places = range(len(layers)) if one.forward else reversed(range(len(layers)))
        phase = "forward" if one.forward else "backward"
        slowed = not one.forward
        for place in places:
            self._layer_begins(name, one, place)
            gather = self._gather(name, one, place, phase)
            self.started = self.last
            self.last = tuple(sorted({*self.last, *gather}))
            for step in self._steps_of(one, place):
                self._run(name, step, phase, slowed=slowed)
            self._layer_ends(name, one, place)
            if not one.forward and (last or self.training.reshard):
                self._scatter(name, layers[place])
            if last and self.training.bucket is not None:
                for axes, count in layers[place].parameters.items():
                    self._fill(axes, count)

    def _gather(self, name: str, one: Pass, place: int, phase: str) -> tuple[int, ...]:
        kept, again = self.whole.get((one.chunk, place)), (one.chunk, place, one.micro_batch)
        needed, self.just_run = again != self.just_run, again
        if kept is not None and not (self.training.reshard and needed):
            return (kept,)
        layer = self.chunks[one.chunk][place]
        made: list[int] = []
        for what, axes, count in self._parts(layer):
            number = self._append(
                Operation(
                    f"{name}{layer.name} {what} gathered", OpKind.COLLECTIVE, GATHER_STREAM,
                    tuple(sorted({*self.started, *self.last_gather})), collective="all_gather", axes=axes,
                    size_bytes=count * self.training.parameter_width, phase=phase,
                )
            )  # fmt: skip
            self.last_gather = (number,)
            made.append(number)
        if made:
            self.whole[one.chunk, place] = made[-1]
        return tuple(made)

    def _scatter(self, name: str, layer: Layer) -> None:
        for what, axes, count in self._parts(layer):
            number = self._append(
                Operation(
                    f"{name}{layer.name} {what} scattered", OpKind.COLLECTIVE, COMM_STREAM,
                    tuple(sorted({*self.last, *self.last_bucket})), collective="reduce_scatter", axes=axes,
                    size_bytes=count * self.group_size(axes) * self.training.gradient_width,
                    phase="backward",
                )
            )  # fmt: skip
            self.last_bucket = (number,)

    def _parts(self, layer: Layer) -> list[tuple[str, tuple[str, ...], int]]:
        """What is gathered at once: its name, over which axes, numbers on this rank."""
        training = self.training
        if training.expert_shard_axes == training.shard_axes:
            parts = [("parameters", training.shard_axes, layer.num_parameters)]
        else:
            parts = [
                ("parameters", training.shard_axes, layer.num_parameters - layer.experts),
                ("experts", training.expert_shard_axes, layer.experts),
            ]
        return [part for part in parts if part[2] and self.group_size(part[1]) > 1]


@dataclass(frozen=True, slots=True)
class Inference(Training):
    """Forward passes only: ``steps`` of them, each needing the tokens of the one before."""

    steps: int = 1
    sequences: int = 1


class InferenceStage(StageBuilder):
    """A stage that only runs forward."""

    training: Inference

    def program(self) -> Program:
        """Each step's micro-batches, one after the other."""
        training = self.training
        alone = self.stages == 1
        for step in range(training.steps):
            for number in range(training.micro_batches):
                if step and self.stage == 0 and not alone:
                    self._tokens(OpKind.RECV, self.stages - 1, number)
                self._forward(Pass(True, number))
                if step < training.steps - 1 and self.stage == self.stages - 1 and not alone:
                    self._tokens(OpKind.SEND, 1 - self.stages, number)
        return Program(f"stage {self.stage}" if self.stages > 1 else "every rank", tuple(self.operations))

    def _tokens(self, kind: OpKind, offset: int, number: int) -> None:
        sending = kind is OpKind.SEND
        operation = self._append(
            Operation(
                f"micro-batch {number} tokens", kind, PIPELINE_STREAM if sending else NO_STREAM, self.last,
                size_bytes=self.training.sequences * _TOKEN_BYTES, peer=Peer(axis="pp", offset=offset),
                tag=_TOKEN_TAG, phase="forward",
            )
        )  # fmt: skip
        if not sending:
            self.last = (*self.last, operation)


class Stretched:
    """A timer whose kernels take a factor longer."""

    def __init__(self, timer: Timer, factor: float) -> None:
        self.timer, self.factor = timer, factor

    def kernels_ps(self, kernels: Sequence[Kernel]) -> int:
        """By the factor longer."""
        return int(self.timer.kernels_ps(kernels) * self.factor)

    def host_ps(self, launches: int) -> int:
        """As it is."""
        return self.timer.host_ps(launches)

    def step_ps(self) -> int:
        """As it is."""
        return self.timer.step_ps()

    def slowed_ps(self, duration_ps: int) -> int:
        """As the GPU is slowed."""
        return self.timer.slowed_ps(duration_ps)


class Graphed:
    """A timer whose host is never waited for: kernels are launched as CUDA graphs."""

    def __init__(self, timer: Timer) -> None:
        self.timer = timer

    def kernels_ps(self, kernels: Sequence[Kernel]) -> int:
        """As the GPU takes them."""
        return self.timer.kernels_ps(kernels)

    def host_ps(self, launches: int) -> int:  # noqa: ARG002
        """Nothing."""
        return 0

    def step_ps(self) -> int:
        """Nothing."""
        return 0

    def slowed_ps(self, duration_ps: int) -> int:
        """As the GPU is slowed."""
        return self.timer.slowed_ps(duration_ps)
