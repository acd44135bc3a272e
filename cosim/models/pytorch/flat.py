"""FSDP1 (``FullyShardedDataParallel``): a unit's parameters are one flat one, sharded into equal parts.

Each block is a unit, and what is in none is the root's. A unit's part is cast by a kernel on a stream of its
own and gathered to where it is computed with: nothing is copied in or out. The root's stay gathered from
forward to backward. Before a gather the *host* waits for the GPU (``limit_all_gathers``): where gathered
parameters are given up an event goes into a queue, of which each call of ``_unshard`` takes the oldest, if
there are two, and waits for it (``_FreeEventQueue``). Forward gathers a unit when the host comes to it, or
once it has come to the one before (``forward_prefetch``); backward gathers the one before it as soon as a
unit's begins (``backward_prefetch: early``, ``BACKWARD_PRE``) or once its kernels are issued (``late``,
``BACKWARD_POST``).

Gradients of a unit's parameters are put together by one kernel, which autograd runs on the gathers' stream,
where the flat parameter was taken apart; computation waits for all of that stream before the next unit. On a
third stream gradients are cast to the type of the reduction, padded, divided by about the root of the number
of ranks, reduce-scattered, between replicas all-reduced, divided by the rest, cast to the parameters' type
and added to those of micro-batches before. Follows PyTorch 2.13, ``torch/distributed/fsdp/_runtime_utils.py``
(Zhao et al., arXiv 2304.11277), with ``use_orig_params=False``.

With ``reshard`` (``FULL_SHARD``) each micro-batch scatters its gradients; without (``SHARD_GRAD_OP``) the
last alone, those before it being under ``no_sync``: whole gradients add up, and parameters stay gathered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cosim.gpu.kernels import Kernel, memory
from cosim.models.parts import Exchange, Weight
from cosim.models.pytorch.data import DataParallelism
from cosim.models.pytorch.fsdp import COPY_STREAM, REDUCED_STREAM
from cosim.models.pytorch.operators import converted

if TYPE_CHECKING:
    from cosim.models.pytorch.stage import EagerStage, ModelPart

GATHER_STREAM = "compute-gathered"
SUMMED_STREAM = "compute-summed"
MOST_GATHERED = 2
"""Events in the queue from which on the host takes one (``_max_num_inflight_all_gathers``)."""


@dataclass(eq=False)
class FlatUnit:
    """A flat parameter of ``count`` numbers, of which each rank has ``own``."""

    name: str
    count: int
    own: int
    whole: bool = False
    under_way: int | None = None
    """Its gather, until it is waited for."""
    prefetched: bool = False
    added: bool = False
    """Whole gradients of a micro-batch are there already."""
    scattered: bool = False
    """Gradients of a micro-batch are there already, in shards."""


class FlatSharded(DataParallelism):
    """The data parallelism of a stage whose parameters are flat ones in shards."""

    def __init__(self, stage: EagerStage, part: ModelPart) -> None:
        self.stage, self.training = stage, stage.training
        self.ranks = stage.group_size(self.training.shard_axes)
        ends = (0, len(part.layers) - 1)
        self.root = self._unit("root", [w for place in ends for w in part.layers[place].weights])
        self.blocks = {
            place: self._unit(layer.name, layer.weights)
            for place, layer in enumerate(part.layers)
            if place not in ends
        }
        every = self.ranks * stage.group_size(self.training.replica_axes)
        self.before = divided_before(every)
        self.after = every / self.before
        left = MOST_GATHERED + min(2, len(self.blocks))
        self.freed: deque[tuple[int, ...]] = deque([()] * left)
        """Where gathered parameters were given up. It begins with as many as each iteration but the first
        finds there, of the one before, for which nobody has to wait any more."""
        self.casts_wait: tuple[int, ...] = ()
        """What the first cast of a forward pass waits for; later ones come after it anyway."""
        self.together: tuple[int, ...] = ()
        """Where gradients were last put together, on the gathers' stream."""
        self.reduced: tuple[int, ...] = ()
        """The last on the stream of reductions, which waits for each."""
        self.scattered: list[int] = []
        self.last = False

    def _unit(self, name: str, weights: Iterable[Weight]) -> FlatUnit:
        count = sum(weight.count for weight in weights)
        return FlatUnit(name, count, -(-count // self.ranks))

    def kept(self) -> tuple[list[int], list[int]]:
        """Numbers of each tensor that the optimizer sees on a rank; experts have none of their own."""
        return [unit.own for unit in (self.root, *self.blocks.values())], []

    # -- as passes go by -------------------------------------------------------------------------------

    def forward_begins(self) -> None:
        """Casts wait for what the compute stream waits for (the optimizer)."""
        self.casts_wait = self.stage.close()
        self._unshard(self.root)
        self._use(self.root)
        if self.training.forward_prefetch:
            self._ahead(min(self.blocks, default=0))

    def before_forward(self, place: int) -> None:
        """A block's parameters come together; with ``forward_prefetch`` the next one's are on their way."""
        if place in self.blocks:
            self._needed(self.blocks[place])
            if self.training.forward_prefetch:
                self._ahead(place + 1)

    def after_forward(self, place: int) -> None:
        """They are given up."""
        if place in self.blocks and self.training.reshard:
            self._give_up(self.blocks[place])

    def forward_ends(self) -> None:
        """The root's parameters stay."""

    def backward_begins(self, *, last: bool) -> None:
        """``last``: the last micro-batch's."""
        self.last = last
        self._unshard(self.root)  # its parameters are there, but the host waits all the same
        if self.training.prefetch == "early":
            self._ahead(max(self.blocks, default=0))

    def before_backward(self, place: int) -> None:
        """A block's parameters come together, and the one's before it are on their way."""
        if place not in self.blocks:
            return
        self._needed(self.blocks[place])
        if self.training.prefetch == "early":
            self._ahead(place - 1)

    def after_backward(self, place: int) -> None:
        """A block's gradients go out."""
        if place in self.blocks:
            self._gradients(self.blocks[place], place)

    def backward_ends(self) -> None:
        """The root's gradients, and all have to be there."""
        self._gradients(self.root, 0)
        self.stage.wait(self.scattered)
        self.scattered.clear()

    def before_experts(self, place: int, *, forward: bool) -> None:
        """Experts have no units of their own."""

    def after_experts(self, place: int, *, forward: bool) -> None:
        """Experts have no units of their own."""

    def finish(self) -> None:
        """All has been waited for."""

    # -- gathers ---------------------------------------------------------------------------------------

    def _ahead(self, place: int) -> None:
        """The next unit of the pass."""
        if place in self.blocks:
            self._unshard(self.blocks[place])
            self.blocks[place].prefetched = True

    def _needed(self, unit: FlatUnit) -> None:
        """A unit that is computed with now."""
        if not unit.prefetched:
            self._unshard(unit)
        unit.prefetched = False
        self._use(unit)

    def _unshard(self, unit: FlatUnit) -> None:
        stage, training = self.stage, self.training
        stage.close()
        width, name = training.parameter_width, f"{stage.what[0]}{unit.name} parameters"
        needed = not unit.whole
        after = self.casts_wait
        if needed and width != training.kept_width:
            kernel = converted(unit.own, training.kept_width, width)
            after = (stage.on_stream(f"{name} cast", COPY_STREAM, self.casts_wait, kernels=(kernel,)),)
            self.casts_wait = ()
        if len(self.freed) >= MOST_GATHERED:
            stage.host_waits = tuple(sorted({*stage.host_waits, *self.freed.popleft()}))
        if needed:
            unit.under_way = stage.on_stream(
                f"{name} gathered", f"comm-{'-'.join(training.shard_axes)}", (*after, *self.together),
                exchange=Exchange("all_gather", training.shard_axes, unit.own * width),
            )  # fmt: skip

    def _use(self, unit: FlatUnit) -> None:
        """Computation waits for all that is on the gathers' stream."""
        gathered = () if unit.under_way is None else (unit.under_way,)
        self.stage.wait((*gathered, *self.together))
        unit.whole, unit.under_way = True, None

    def _give_up(self, unit: FlatUnit) -> None:
        self.freed.append(self.stage.close())
        unit.whole = False

    # -- gradients -------------------------------------------------------------------------------------

    def _gradients(self, unit: FlatUnit, place: int) -> None:
        """After a unit's backward: put together; exchanged, or added to those of micro-batches before."""
        stage, training = self.stage, self.training
        width, name = training.parameter_width, f"{stage.what[0]}{unit.name} gradients"
        kernels = [memory(2 * unit.count * width)]
        if unit.added:
            kernels.append(memory(3 * unit.count * width))
        put = stage.on_stream(f"{name} put together", GATHER_STREAM, stage.close(), kernels=tuple(kernels))
        self.together = (put,)
        scatters = self.last or training.reshard
        unit.added = not scatters
        if scatters:
            self._give_up(unit)
        if training.prefetch == "late":
            self._ahead(place - 1)
        if scatters:
            self.scattered.append(self._scatter(unit, name, put))
        else:
            self.scattered.append(put)

    def _scatter(self, unit: FlatUnit, name: str, put: int) -> int:
        """Cast, divided, reduced, divided, cast, added; the number of the last."""
        stage, training = self.stage, self.training
        wide, width, kept = training.gradient_width, training.parameter_width, training.kept_width
        kernels: list[Kernel] = [] if wide == width else [converted(unit.count, width, wide)]
        whole = unit.own * self.ranks
        if whole > unit.count:  # padded
            kernels.append(memory((unit.count + whole) * wide))
        if self.before > 1:
            kernels.append(memory(2 * whole * wide))
        number = put
        if kernels:
            after = (put, *self.reduced)
            number = stage.on_stream(f"{name} divided", REDUCED_STREAM, after, kernels=tuple(kernels))
        number = self._exchanged(name, number, "reduce_scatter", training.shard_axes, whole * wide)
        kernels = [memory(2 * unit.own * wide)] if self.after > 1 else []
        if wide != kept:
            kernels.append(converted(unit.own, wide, kept))
        if unit.scattered:
            kernels.append(memory(3 * unit.own * kept))
        unit.scattered, stream = True, REDUCED_STREAM
        replicated = stage.group_size(training.replica_axes) > 1
        if replicated:  # the rest has a stream of its own, for which the next unit's doesn't wait
            self.reduced, stream = (number,), SUMMED_STREAM
            number = self._exchanged(name, number, "all_reduce", training.replica_axes, unit.own * wide)
        if kernels:
            number = stage.on_stream(f"{name} kept", stream, (number,), kernels=tuple(kernels))
        if not replicated:
            self.reduced = (number,)
        return number

    def _exchanged(self, name: str, after: int, collective: str, axes: tuple[str, ...], size: int) -> int:
        return self.stage.on_stream(
            f"{name} {collective}",
            f"comm-{'-'.join(axes)}",
            (after,),
            exchange=Exchange(collective, axes, size),
        )


def divided_before(ranks: int) -> int:
    """By what gradients are divided before they are added up: about the root of the number of ranks.

    ``DefaultState._get_gradient_predivide_factor``; the rest they are divided by after.
    """
    factor = 1
    while ranks % factor == 0 and ranks / factor > factor:
        factor *= 2
    return factor
