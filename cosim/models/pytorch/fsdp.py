"""FSDP2 (``fully_shard``): what it gathers, copies and scatters, and what waits for what.

Parameters are kept in shards along their first dimension (experts, where they are too few for that, along
another, which takes a copy more each way, as in torchtitan). A unit's shards are copied into one buffer on a
stream of their own (in forward not before the pass's input is there), gathered, and copied out on the compute
stream; the buffers are given back when the next unit has been copied out (forward) or at once (backward),
until when the copies in have to wait. Backward fetches one unit ahead. Once a unit's gradients are there they
are copied into one buffer, in the type that they are reduced in, after the unit before has been scattered
(its buffer is given back); then they are reduce-scattered, and between replicas all-reduced. Gathers go one
after the other, and so do reduce-scatters, each kind on its stream; so do all collectives of one group of
ranks, as NCCL has it. Follows PyTorch 2.13, ``torch/distributed/fsdp/_fully_shard`` (Zhao et al., arXiv
2304.11277; ZeRO: Rajbhandari et al., arXiv 1910.02054).

Under a pipeline gradients add up unsharded, and are scattered after the last micro-batch. Without one, and
with ``reshard``, every micro-batch scatters its own; without ``reshard`` the last one only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cosim.gpu.kernels import Kernel, memory
from cosim.models.parts import Exchange, Weight
from cosim.models.pytorch.data import DataParallelism

if TYPE_CHECKING:
    from cosim.models.pytorch.stage import EagerStage, ModelPart

COPY_STREAM = "compute-copy"
REDUCED_STREAM = "compute-reduced"


@dataclass(eq=False)
class Unit:
    """What is gathered at once: parameters of the layers at ``places``."""

    places: tuple[int, ...]
    weights: tuple[Weight, ...]
    axes: tuple[str, ...]
    replicas: tuple[str, ...]
    reshard: bool
    name: str
    whole: bool = False
    under_way: int | None = None
    """Its gather, until it is waited for."""
    added: bool = False
    """Gradients of a micro-batch are there already, whole."""
    scattered: bool = False
    """Gradients of a micro-batch are there already, in shards."""
    apart: bool = False
    """Gradients that a pass of weights made are there, in the parameters' type."""


class FullySharded(DataParallelism):
    """The data parallelism of a stage whose parameters are sharded."""

    def __init__(self, stage: EagerStage, part: ModelPart) -> None:
        self.stage, self.part, self.training = stage, part, stage.training
        self.experts: dict[int, Unit] = {}
        """Units of experts, which are gathered when the experts are next, by place."""
        self.units = self._units()
        apart = list(self.experts.values())
        self.of_place = {place: unit for unit in self.units if unit not in apart for place in unit.places}
        self.root = next((unit for unit in self.units if len(unit.places) > 1 or unit.name == "root"), None)
        self.copy_waits: set[int] = set()
        """What copies in have to wait for."""
        self.copied_out: int | None = None
        self.gathered: tuple[int, ...] = ()
        self.scattered: tuple[int, ...] = ()
        """The last gather and reduce-scatter: of all groups of ranks, each kind has one stream."""
        self.reduced: list[int] = []
        self.last = False

    def _units(self) -> list[Unit]:
        part, training = self.part, self.training
        ends = {0} if part.first else set()
        last = len(part.layers) - 1
        if part.final:
            ends.add(last)
        made: list[Unit] = []
        rest: list[int] = []
        for place, layer in enumerate(part.layers):
            if place in ends and training.units == "blocks":
                rest.append(place)
                continue
            head = part.final and place == last
            dense = tuple(weight for weight in layer.weights if not weight.expert)
            experts = tuple(weight for weight in layer.weights if weight.expert)
            if experts and training.expert_shard_axes != training.shard_axes:
                unit = Unit(
                    (place,), experts, training.expert_shard_axes, training.expert_replica_axes,
                    training.reshard, f"{layer.name} experts",
                )  # fmt: skip
                self.experts[place] = unit
                made.append(unit)
                made.append(self._unit((place,), dense, layer.name, training.reshard and not head))
            else:
                made.append(self._unit((place,), layer.weights, layer.name, training.reshard and not head))
        if rest:
            weights = tuple(weight for place in rest for weight in part.layers[place].weights)
            made.insert(0, self._unit(tuple(rest), weights, "root", False))
        return [unit for unit in made if unit.weights]

    def _unit(self, places: tuple[int, ...], weights: tuple[Weight, ...], name: str, reshard: bool) -> Unit:
        training = self.training
        return Unit(places, weights, training.shard_axes, training.replica_axes, reshard, name)

    def kept(self) -> tuple[list[int], list[int]]:
        """Numbers that a rank keeps of each parameter, experts' apart."""
        weights = self.part.weights
        return [self.share(w) for w in weights if not w.expert], [self.share(w) for w in weights if w.expert]

    def share(self, weight: Weight) -> int:
        """Numbers of a parameter that a rank keeps."""
        axes = self.training.expert_shard_axes if weight.expert else self.training.shard_axes
        return weight.share(self.stage.group_size(axes))

    # -- as passes go by -------------------------------------------------------------------------------

    def forward_begins(self) -> None:
        """Copies wait for what the compute stream waits for (the optimizer, a pass's input)."""
        self.copy_waits.update(self.stage.close())
        if self.root is not None:
            self._fetch(self.root)
            self._use(self.root, forward=True)

    def before_forward(self, place: int) -> None:
        """A layer's parameters come together."""
        self._begin(self.of_place.get(place), forward=True)

    def after_forward(self, place: int) -> None:
        """They are given up."""
        self._give_up(self.of_place.get(place))

    def before_experts(self, place: int, *, forward: bool) -> None:
        """Experts' parameters come together."""
        self._begin(self.experts.get(place), forward=forward)

    def after_experts(self, place: int, *, forward: bool) -> None:
        """They are given up, or their gradients go out."""
        unit = self.experts.get(place)
        if forward:
            self._give_up(unit)
        elif unit is not None:
            self._gradients(unit)

    def inputs_end(self) -> None:
        """What passes of weights made before is taken over."""
        for unit in self.units:
            if unit.apart:
                self._add(unit)

    def weights_end(self) -> None:
        """Their gradients are added to those that nobody took over."""
        for unit in self.units:
            self._add_apart(unit)
            unit.apart = True

    # -- as a looped schedule asks for it --------------------------------------------------------------

    def fetch(self) -> None:
        """All units, each copied in on the compute stream (``unshard(async_op=True)``)."""
        for unit in sorted(self.units, key=lambda unit: (unit.places[0], unit in self.experts.values())):
            self._fetch(unit, asked=True)

    def have(self) -> None:
        """What was fetched is waited for."""
        for unit in self.units:
            self._use(unit, forward=False)

    def give_up(self) -> None:
        """All units."""
        for unit in self.units:
            unit.whole = False

    def _begin(self, unit: Unit | None, *, forward: bool) -> None:
        if unit is None or (unit is self.root and not forward):
            return
        self._fetch(unit)
        self._use(unit, forward=forward)
        if not forward:
            self._ahead(unit)

    @staticmethod
    def _give_up(unit: Unit | None) -> None:
        if unit is not None and unit.reshard:
            unit.whole = False

    def forward_ends(self) -> None:
        """Backward's copies wait for the last of forward's."""
        if self.copied_out is not None:
            self.copy_waits.add(self.copied_out)
            self.copied_out = None

    def backward_begins(self, *, last: bool) -> None:
        """``last``: the last micro-batch's."""
        self.last = last
        if self.root is not None:
            self._fetch(self.root)
            self._use(self.root, forward=False)
            self._ahead(self.root)

    def before_backward(self, place: int) -> None:
        """A layer's parameters come together, and the one's before it are on their way."""
        self._begin(self.of_place.get(place), forward=False)

    def after_backward(self, place: int) -> None:
        """A layer's gradients go out; the embedding's, and what is in no block, at the end."""
        unit = self.of_place.get(place)
        if unit is not None and unit is not self.root and not (self.part.first and place == 0):
            self._gradients(unit)

    def backward_ends(self) -> None:
        """What is left."""
        late = self.root
        if self.part.first and late is None:
            late = self.of_place.get(0)
        if late is not None:
            self._gradients(late)
        if self.stage.stages == 1:
            self.stage.wait(self.reduced)
            self.reduced.clear()

    def finish(self) -> None:
        """Under a pipeline, gradients are exchanged now; then everything has to be there."""
        if self.stage.stages > 1:
            for unit in self.units:
                self._scatter(unit)
        self.stage.wait(self.reduced)

    # -- gathers ---------------------------------------------------------------------------------------

    def _fetch(self, unit: Unit, *, asked: bool = False) -> None:
        if unit.whole or unit.under_way is not None:
            return
        stage, training = self.stage, self.training
        if stage.group_size(unit.axes) == 1:
            return
        stage.close()
        own, width = self._own(unit), training.parameter_width
        kernels = [] if width == training.kept_width else [memory(own * (width + training.kept_width))]
        kernels.append(memory(2 * own * width))
        name = f"{stage.what[0]}{unit.name} parameters"
        if asked:
            copied = self._emit(*kernels)
        else:
            copied = stage.on_stream(f"{name} copied", COPY_STREAM, self.copy_waits, kernels=tuple(kernels))
            self.copy_waits.clear()  # later copies come after this one anyway
        unit.under_way = stage.on_stream(
            f"{name} gathered", _stream(unit.axes), (copied, *self.gathered),
            exchange=Exchange("all_gather", unit.axes, own * width),
        )  # fmt: skip
        self.gathered = (unit.under_way,)

    def _use(self, unit: Unit, *, forward: bool) -> None:
        stage = self.stage
        if not unit.whole and stage.group_size(unit.axes) == 1:
            stage.issue(self._alone(unit))
            unit.whole = True
        if unit.whole or unit.under_way is None:
            return
        if forward and self.copied_out is not None:
            self.copy_waits.add(self.copied_out)
            self.copied_out = None
        stage.wait((unit.under_way,))
        ranks, width = stage.group_size(unit.axes), self.training.parameter_width
        out = self._emit(memory(2 * self._own(unit) * ranks * width), *self._turned(unit, width))
        unit.whole, unit.under_way = True, None
        if forward:
            self.copied_out = out
        else:
            self.copy_waits.add(out)

    def _alone(self, unit: Unit) -> Iterator[Kernel]:
        """A unit that nobody shares: each parameter is cast and copied all the same."""
        width, kept = self.training.parameter_width, self.training.kept_width
        for weight in unit.weights:
            if width != kept:
                yield memory(weight.count * (width + kept))
            yield memory(2 * weight.count * width)

    def _ahead(self, unit: Unit) -> None:
        """Backward's next one, which forward had before."""
        order = [each for each in self.units if each is not self.root]
        place = len(order) if unit is self.root else order.index(unit)
        if place:
            self._fetch(order[place - 1])

    def _emit(self, *kernels: Kernel) -> int:
        """Kernels as an operation that others wait for."""
        self.stage.issue(kernels)
        return self.stage.close()[-1]

    def _turned(self, unit: Unit, width: int) -> list[Kernel]:
        """Parameters that are sharded along another dimension than the first: copied, each by itself."""
        ranks = self.stage.group_size(unit.axes)
        return [memory(2 * weight.count * width) for weight in unit.weights if weight.is_short(ranks)]

    def _own(self, unit: Unit) -> int:
        ranks = self.stage.group_size(unit.axes)
        return sum(weight.share(ranks) for weight in unit.weights)

    # -- gradients -------------------------------------------------------------------------------------

    def _gradients(self, unit: Unit) -> None:
        """After a unit's backward: exchanged, or added to those of micro-batches before."""
        training = self.training
        self._add_apart(unit)
        alone = self.stage.stages == 1
        if alone and (training.reshard or training.micro_batches == 1):
            self._scatter(unit)
        else:
            self._add(unit)
            if alone and self.last:
                self._scatter(unit)
        if alone:
            unit.whole = False

    def _add(self, unit: Unit) -> None:
        """Whole gradients of a micro-batch, to the type of the reduction, and added up in it."""
        wide, width = self.training.gradient_width, self.training.parameter_width
        if unit.added:
            self.stage.issue(memory(weight.gradient * (2 * wide + width)) for weight in unit.weights)
        elif wide != width:
            self.stage.issue(memory(weight.gradient * (wide + width)) for weight in unit.weights)
        unit.added, unit.apart = True, False

    def _add_apart(self, unit: Unit) -> None:
        """Gradients to those that a pass of weights left."""
        if unit.apart:
            width = self.training.parameter_width
            self.stage.issue(memory(3 * weight.gradient * width) for weight in unit.weights)

    def _scatter(self, unit: Unit) -> None:
        stage, training = self.stage, self.training
        ranks = stage.group_size(unit.axes)
        if unit.apart and unit.added:
            self._add(unit)
        read = training.gradient_width if unit.added else training.parameter_width
        for weight in unit.weights:
            if weight.gradient > weight.count:
                stage.issue([memory(2 * weight.count * read)])
            if weight.summed:
                stage.exchange(Exchange("all_reduce", weight.summed, weight.count * read))
        stage.wait(self.scattered)
        own, wide = self._own(unit), training.gradient_width
        whole = sum(weight.count for weight in unit.weights)
        copied = self._emit(*self._turned(unit, read), memory(whole * read + own * ranks * wide))
        name = f"{stage.what[0]}{unit.name} gradients"
        number = copied
        if ranks > 1:
            number = stage.on_stream(
                f"{name} scattered", _stream(unit.axes), (copied,),
                exchange=Exchange("reduce_scatter", unit.axes, own * ranks * wide),
            )  # fmt: skip
            self.scattered = (number,)
        else:
            kernel = memory(2 * own * wide)
            number = stage.on_stream(f"{name} copied", REDUCED_STREAM, (copied,), kernels=(kernel,))
        if stage.group_size(unit.replicas) > 1:
            number = stage.on_stream(
                f"{name} reduced", _stream(unit.replicas), (number,),
                exchange=Exchange("all_reduce", unit.replicas, own * wide),
            )  # fmt: skip
        if wide != training.kept_width:
            kernel = memory(own * (wide + training.kept_width))
            number = stage.on_stream(f"{name} kept", REDUCED_STREAM, (number,), kernels=(kernel,))
        if unit.scattered:
            each = tuple(memory(3 * weight.share(ranks) * training.kept_width) for weight in unit.weights)
            number = stage.on_stream(f"{name} added", REDUCED_STREAM, (number,), kernels=each)
        self.reduced.append(number)
        unit.added, unit.apart, unit.scattered = False, False, True


def _stream(axes: tuple[str, ...]) -> str:
    return f"comm-{'-'.join(axes)}"
