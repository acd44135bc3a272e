"""DistributedDataParallel, or no data parallelism at all: every rank has all parameters.

Gradients are copied into buckets as they become ready (scaled by the number of replicas), the first bucket
of 1 MiB, the others of ``bucket``; a full bucket is all-reduced while backward goes on, and at the end its
parts are copied back to the gradients (Li et al., VLDB 2020, doi:10.14778/3415478.3415530; PyTorch's
``reducer.cpp``, from the second iteration on). Micro-batches before the last are accumulated (``no_sync``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosim.gpu.kernels import memory
from cosim.models.parts import Exchange, Weight
from cosim.models.pytorch.data import DataParallelism

if TYPE_CHECKING:
    from cosim.models.pytorch.stage import EagerStage, ModelPart

_FIRST_BUCKET = 2**20


class Replicated(DataParallelism):
    """The data parallelism of a stage whose parameters are whole."""

    def __init__(self, stage: EagerStage, part: ModelPart) -> None:
        self.stage, self.part, self.training = stage, part, stage.training
        self.last = False
        self.added: set[str] = set()
        self.filled: dict[tuple[str, ...], list[Weight]] = {}
        self.limit: dict[tuple[str, ...], int] = {}
        self.under_way: list[tuple[int, list[Weight]]] = []
        """All-reduces, and what they bring back."""

    def kept(self) -> tuple[list[int], list[int]]:
        """Numbers of each parameter, experts' apart."""
        weights = self.part.weights
        return [w.count for w in weights if not w.expert], [w.count for w in weights if w.expert]

    def backward_begins(self, *, last: bool) -> None:
        """``last``: the last micro-batch's, which exchanges."""
        self.last = last

    def backward_ends(self) -> None:
        """The last bucket leaves, all come back."""
        if not self.last:
            return
        for axes in list(self.filled):
            self._leave(axes)
        width = self.training.kept_width
        for number, weights in self.under_way:
            self.stage.wait((number,))
            self.stage.issue(memory(2 * weight.count * width) for weight in weights)

    def ready(self, weight: Weight) -> None:
        """A gradient is complete: added to what there is, and into its bucket."""
        training, width = self.training, self.training.kept_width
        if weight.gradient > weight.count:
            self.stage.issue([memory(2 * weight.count * width)])
        if weight.name in self.added:
            self.stage.issue([memory(3 * weight.count * width)])
        self.added.add(weight.name)
        axes = training.expert_replica_axes if weight.expert else training.replica_axes
        if not self.last or self.stage.group_size(axes) == 1:
            return
        self.stage.issue([memory(2 * weight.count * width)])
        bucket = self.filled.setdefault(axes, [])
        bucket.append(weight)
        limit = self.limit.setdefault(axes, _FIRST_BUCKET)
        if sum(each.count for each in bucket) * width >= limit:
            self.limit[axes] = training.bucket or limit
            self._leave(axes)

    def _leave(self, axes: tuple[str, ...]) -> None:
        weights = self.filled.pop(axes)
        copied = self.stage.close()
        size = sum(weight.count for weight in weights) * self.training.kept_width
        number = self.stage.on_stream(
            f"{self.stage.what[0]}gradient bucket", f"comm-{'-'.join(axes)}", copied,
            exchange=Exchange("all_reduce", axes, size),
        )  # fmt: skip
        self.under_way.append((number, weights))

    def finish(self) -> None:
        """Sums over model-parallel ranks that are still open."""
        for weight in self.part.weights:
            if weight.summed:
                size = weight.count * self.training.kept_width
                self.stage.exchange(Exchange("all_reduce", weight.summed, size))
