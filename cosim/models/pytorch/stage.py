"""A stage's iteration in eager PyTorch: passes of torch.distributed.pipelining, FSDP2 or DDP, AdamW.

Pipelines (``ScheduleGPipe``, ``Schedule1F1B``): computation waits for a pass's input, and for what the pass
before it sent where one batch of messages holds both; a message sent alone is waited for after the next pass
of the same direction. Gradients of micro-batches add up and are exchanged after the last backward
(``stage.perform_reduce_grad``), then divided by the number of micro-batches.

A host's ``step_time``, fitted to Megatron-LM's logs and loss scaling, is not added.

Not modelled: what the script does beside the model (batches, logs, checkpoints), NCCL's first connections,
the interference of collectives with computation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from cosim.gpu.kernels import Kernel, memory
from cosim.models.issuer import PIPELINE_STREAM, Issuer
from cosim.models.parts import Exchange, Layer, Piece, Weight
from cosim.models.pytorch.data import DataParallelism
from cosim.models.pytorch.experts import EP
from cosim.models.pytorch.flat import FlatSharded
from cosim.models.pytorch.fsdp import FullySharded
from cosim.models.pytorch.optimizer import (
    adamw,
    all_norms,
    flat_clipping,
    scaling,
    sum_of_squares,
    total_norm,
)
from cosim.models.pytorch.replicas import Replicated
from cosim.models.pytorch.training import EagerTraining
from cosim.models.schedule import Pass, passes
from cosim.models.training import Timer, Training
from cosim.workload.program import NO_STREAM, Operation, OpKind, Program


class EagerStage(Issuer):
    """Kernels in the order in which PyTorch issues them; those between two waits are one operation."""

    training: EagerTraining

    def __init__(
        self, stage: int, stages: int, chunks: Sequence[Sequence[Layer]], training: Training, timer: Timer
    ) -> None:
        super().__init__(stage, stages, chunks, training, timer)
        self.open: list[Kernel] = []
        """Kernels issued on the compute stream that are no operation yet."""
        self.what = ("", "forward")
        """Micro-batch and phase of what is issued."""
        self.layer = ""
        ways = [Pass(True, 0, chunk) for chunk in range(len(chunks))]
        self.parts = [
            ModelPart(self, layers, first=self._begins(one), final=self._ends(one))
            for one, layers in zip(ways, chunks, strict=True)
        ]
        """What pipelining calls stages: each has a data parallelism of its own."""
        self.part = self.parts[0]
        """That whose kernels are issued."""

    @property
    def layers(self) -> Sequence[Layer]:
        """Those whose kernels are issued."""
        return self.part.layers

    @property
    def data(self) -> DataParallelism:
        """Their data parallelism."""
        return self.part.data

    def program(self) -> Program:
        """The stage's program."""
        order = self._order()
        left = self.training.micro_batches
        fused: tuple[int, ...] = ()
        alone: tuple[int, ...] = ()
        for place, one in enumerate(order):
            name = f"micro-batch {one.micro_batch} "
            self.what = (name, "forward" if one.forward else "backward")
            self.wait(self._posted(one))
            self.wait(fused)
            if one.forward:
                self._forward()
            else:
                left -= 1
                self._backward(last=left == 0)
            self.close()
            self.wait(alone)
            sent = self._send(name, one)
            follows = order[place + 1] if place + 1 < len(order) else None
            together = follows is not None and follows.forward != one.forward
            together = together and self.training.schedule == "1f1b"
            fused, alone = (sent, ()) if together else ((), sent)
            if self.training.schedule == "gpipe" and follows and follows.forward == one.forward:
                fused, alone = (), (*alone, *sent)
        self.wait(alone)
        self.what, self.layer = ("", "optimizer"), "gradients and optimizer"
        self._finish()
        return Program(f"stage {self.stage}" if self.stages > 1 else "every rank", tuple(self.operations))

    def _order(self) -> list[Pass]:
        training = self.training
        if self.stages == 1:  # each micro-batch forward and backward, as a script's loop has it
            return [Pass(way, k) for k in range(training.micro_batches) for way in (True, False)]
        order = passes(training.schedule, self.stage, self.stages, training.micro_batches)
        if training.schedule == "gpipe":  # backward, too, begins with the first micro-batch
            count = training.micro_batches
            order = [*order[:count], *reversed(order[count:])]
        return order

    # -- what is issued --------------------------------------------------------------------------------

    def issue(self, kernels: Iterable[Kernel]) -> None:
        """Kernels on the compute stream."""
        self.open.extend(kernels)

    def play(self, events: Iterable[Kernel | Exchange]) -> None:
        """Kernels and exchanges, each after the one before."""
        for event in events:
            if isinstance(event, Kernel):
                self.open.append(event)
            else:
                self.exchange(event)

    def exchange(self, exchange: Exchange) -> None:
        """A collective that the kernels after it wait for."""
        if self.group_size(exchange.axes) > 1:
            self.close()
            self._exchanged(exchange)

    def _exchanged(self, exchange: Exchange) -> None:
        name = self.what[0]
        number = self.on_stream(
            f"{name}{self.layer} {exchange.collective}", f"comm-{'-'.join(exchange.axes)}",
            self.last, exchange=exchange,
        )  # fmt: skip
        self.last = (number,)

    def close(self) -> tuple[int, ...]:
        """The kernels issued so far made an operation; it, or what runs last anyway."""
        kernels = tuple(kernel for kernel in self.open if kernel.launches)
        self.open.clear()
        if kernels:
            name, phase = self.what
            self._run(name, self._step(Piece(self.layer, kernels), issued=True), phase)
        return self.last

    def wait(self, operations: Iterable[int]) -> None:
        """The compute stream waits; the host does not."""
        found = tuple(operations)
        if found:
            self.close()
            self.last = tuple(sorted({*self.last, *found}))

    def on_stream(
        self,
        name: str,
        stream: str,
        after: Iterable[int],
        *,
        kernels: tuple[Kernel, ...] = (),
        exchange: Exchange | None = None,
    ) -> int:
        """Kernels or a collective on another stream, issued now; its number."""
        phase = self.what[1]
        launches = sum(kernel.launches for kernel in kernels) or 1
        issued = self.by_host(launches, name, phase)
        deps = tuple(sorted({*after, *issued}))
        if exchange is not None:
            operation = Operation(
                name, OpKind.COLLECTIVE, stream, deps, collective=exchange.collective, axes=exchange.axes,
                size_bytes=exchange.size_bytes, phase=phase,
            )  # fmt: skip
        else:
            operation = Operation(
                name, OpKind.COMPUTE, stream, deps, duration_ps=self.timer.kernels_ps(kernels),
                bytes_moved=sum(kernel.bytes_moved for kernel in kernels), phase=phase,
            )  # fmt: skip
        return self._append(operation)

    # -- passes ----------------------------------------------------------------------------------------

    def _forward(self) -> None:
        self.data.forward_begins()
        for place, layer in enumerate(self.layers):
            self.layer = layer.name
            self.data.before_forward(place)
            self._pieces(layer.forward, place)
            self.data.after_forward(place)
        self.data.forward_ends()

    def _backward(self, *, last: bool) -> None:
        self.data.backward_begins(last=last)
        for place in reversed(range(len(self.layers))):
            self.layer = self.layers[place].name
            self.data.before_backward(place)
            self._pieces(self.layers[place].recompute, place)
            self._pieces(self.layers[place].backward, place)
            self.data.after_backward(place)
        self.data.backward_ends()

    def _pieces(self, pieces: Iterable[Piece], place: int) -> None:
        for piece in pieces:
            meanwhile: tuple[int, ...] = ()
            if piece.beside is not None:
                before = self.close()
                self.exchange(piece.beside)
                meanwhile, self.last = self.last, before
            self.issue(piece.kernels)
            self.wait(meanwhile)
            if piece.then is not None:
                self.exchange(piece.then)
            for weight in piece.ready:
                self.data.ready(weight)
            if piece.mark is not None:
                self._marked(piece.mark.what, place)

    def _marked(self, what: str, place: int) -> None:
        forward = self.what[1] == "forward"
        if what == "host waits":
            self.host_waits = self.close()
        elif what == "experts begin":
            self.data.before_experts(place, forward=forward)
        else:
            self.data.after_experts(place, forward=forward)

    def _posted(self, one: Pass) -> tuple[int, ...]:
        """A pass's input, asked for."""
        if self._begins(one) if one.forward else self._ends(one):
            return ()
        peer, tag = self._neighbour(one, -1 if one.forward else 1)
        if peer.offset == 0:  # another chunk of this rank
            return ()
        what = f"micro-batch {one.micro_batch} {'activations' if one.forward else 'gradients'}"
        issued = self.by_host(1, what, self.what[1])
        number = self._append(
            Operation(
                what, OpKind.RECV, NO_STREAM, tuple(sorted({*self.last, *issued})),
                size_bytes=self.training.boundary_bytes, peer=peer, tag=tag, phase=self.what[1],
            )
        )  # fmt: skip
        return (number,)

    def _send(self, name: str, one: Pass) -> tuple[int, ...]:
        if self._ends(one) if one.forward else self._begins(one):
            return ()
        peer, tag = self._neighbour(one, 1 if one.forward else -1, sending=True)
        if peer.offset == 0:
            return ()
        what = f"{name}{'activations' if one.forward else 'gradients'}"
        issued = self.by_host(1, what, self.what[1])
        number = self._append(
            Operation(
                what, OpKind.SEND, PIPELINE_STREAM, tuple(sorted({*self.last, *issued})),
                size_bytes=self.training.boundary_bytes, peer=peer, tag=tag, phase=self.what[1],
            )
        )  # fmt: skip
        return (number,)

    # -- the end of an iteration -----------------------------------------------------------------------

    def _finish(self) -> None:
        training = self.training
        dense, experts = zip(*(part.data.kept() for part in self.parts), strict=True)
        groups = [list(chain.from_iterable(counts)) for counts in (dense, experts)]
        self._sum_gradients()
        if any(part.final for part in self.parts) and training.merged_bytes and self.stages > 1:
            self.issue([memory(2 * training.micro_batches * training.merged_bytes)])
        if training.clip and isinstance(self.data, FlatSharded):
            self.play(flat_clipping(groups[0], training.kept_width, training.shard_axes))
        elif training.clip:
            self._clip([sum(group) for group in groups])
        for group in groups:
            if group:
                self.issue(adamw(sum(group), len(group), training.kept_width, training.optimizer))
        self.close()

    def _sum_gradients(self) -> None:
        """Over data-parallel ranks, stages that share an embedding, and micro-batches."""
        self.data.finish()
        self._sum_tied()
        self._average(self.data)

    def _sum_tied(self) -> None:
        """The embedding's gradients of first and last stage."""
        if self.training.tied_bytes and self.stages > 1 and self.stage in (0, self.stages - 1):
            self.close()
            self._share_tied()

    def _average(self, data: DataParallelism) -> None:
        """Gradients of micro-batches, whose sum they are."""
        training = self.training
        if self.stages > 1 and training.micro_batches > 1:
            self.issue(memory(2 * count * training.kept_width) for group in data.kept() for count in group)

    def _clip(self, counts: Sequence[int]) -> None:
        """Experts have a mesh of their own, and so norms of their own; ``counts`` are numbers of both."""
        training, width = self.training, self.training.kept_width
        groups = [[weight for weight in self.weights if weight.expert is expert] for expert in (False, True)]
        for group, count, axes in zip(
            groups, counts, (training.shard_axes, training.expert_shard_axes), strict=True
        ):
            sharded = [(axes, 0)] if self.group_size(axes) > 1 else []
            if self.group_size(("tp",)) > 1:
                sharded.append((("tp",), sum(1 for weight in group if weight.summed)))
            if count:
                self.play(total_norm(count, len(group), width, sharded))
        if counts[1]:
            self.play(all_norms(width, EP))
        if self.stages > 1:
            self.play(sum_of_squares(width, ("pp",)))
        for count in counts:
            if count:
                self.issue(scaling(count, width))

    @property
    def weights(self) -> list[Weight]:
        """Parameters of the stage."""
        return [weight for part in self.parts for weight in part.weights]


class ModelPart:
    """Layers that a stage runs one after the other, and their data parallelism.

    ``first``: the embedding is among them; ``final``: the head is.
    """

    def __init__(self, stage: EagerStage, layers: Sequence[Layer], *, first: bool, final: bool) -> None:
        self.layers, self.first, self.final = layers, first, final
        sharded = FlatSharded if stage.training.flat else FullySharded
        data = sharded if stage.training.shard_axes else Replicated
        self.data: DataParallelism = data(stage, self)

    @property
    def weights(self) -> list[Weight]:
        """Their parameters."""
        return [weight for layer in self.layers for weight in layer.weights]
