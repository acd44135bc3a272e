"""Autograd without numbers: operators note their kernels, and backward follows from them.

A ``Tape`` keeps, in order, what operators launch forward, and for each operator a rule for what its backward
launches. ``backward`` walks the operators from the last to the first, as PyTorch's engine does (Paszke et
al., "Automatic differentiation in PyTorch", NIPS-W 2017): a tensor that was used n times has its n gradients
added by n - 1 kernels; nothing is computed for a tensor that needs no gradient.

What operators keep for backward is there until theirs is done (``tools/autograd/derivatives.yaml``), a view
being the tensor that it is of; ``most_bytes`` follows backward tensor by tensor.

Not modelled: the caching allocator, and what a kernel needs beside its operands and results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod

from cosim.gpu.kernels import Kernel, memory
from cosim.models.parts import Exchange, Mark, Piece, Weight
from cosim.models.schedule import Part


@dataclass(frozen=True, slots=True)
class Ready:
    """A parameter's gradient of this pass is complete."""

    weight: Weight


@dataclass(frozen=True, slots=True)
class Beside:
    """An exchange that goes on beside the kernels up to the next event; None: that event, nothing else."""

    exchange: Exchange | None


TapeEvent = Kernel | Exchange | Mark | Ready | Beside


@dataclass(eq=False, slots=True)
class Tensor:
    """A tensor's shape, and bytes of a number; ``grad``: whether backward comes this way.

    ``base``: what it is a view of. ``parameter``: it is there all the time. ``parted``: whatever reads it
    reads a part of its own, so that its gradients are put together, not added.
    """

    shape: tuple[int, ...]
    width: int
    grad: bool = True
    weight: Weight | None = None
    base: Tensor | None = None
    parameter: bool = False
    parted: bool = False

    @property
    def count(self) -> int:
        """Numbers."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes."""
        return self.count * self.width


@dataclass(frozen=True, slots=True)
class _TapeNode:
    """An operator that was run: its result, and for each tensor that it read what its gradient takes.

    ``holds``: tensors that it keeps for backward; ``beside``: bytes that it keeps beside them, ``needs``:
    that its backward has beside operands and results while it runs.
    """

    out: Tensor
    inputs: tuple[Tensor, ...]
    backward: Callable[[frozenset[int]], Iterable[TapeEvent]]
    holds: tuple[Tensor, ...] = ()
    beside: int = 0
    needs: int = 0


@dataclass(eq=False)
class Tape:
    """What a stretch of a model launches; ``forward`` grows as operators are called."""

    forward: list[TapeEvent] = field(default_factory=list)
    again: list[TapeEvent] = field(default_factory=list)
    """Those of ``forward`` that a selective checkpoint runs again."""
    kept: tuple[int, int] = (0, 0)
    """How much of both there was when the last operator that keeps something for backward began."""
    products: int = 0
    saved: int = 0
    """Bytes of results that a selective checkpoint saves."""
    _nodes: list[_TapeNode] = field(default_factory=list)

    def run(
        self,
        events: Iterable[TapeEvent],
        out: Tensor,
        inputs: tuple[Tensor, ...],
        backward: Callable[[frozenset[int]], Iterable[TapeEvent]],
        *,
        keeps: bool = True,
        again: Iterable[TapeEvent] | None = None,
        saved: int = 0,
        holds: tuple[Tensor, ...] | None = None,
        beside: int = 0,
        needs: int = 0,
    ) -> Tensor:
        """An operator: what it launches, its result, and ``backward(needed)``, what its gradient launches.

        ``needed`` are the places among ``inputs`` whose gradient is asked for. ``keeps``: backward needs
        something that this operator read or made. ``again``: what a selective checkpoint runs again of it, if
        not all, saving so many bytes of its results. ``holds``: what backward needs, if not all that was
        read, ``beside`` it so many bytes more; ``needs``: see :class:`_TapeNode`.
        """
        wanted = any(each.grad for each in inputs)
        if keeps and wanted:
            self.kept = len(self.forward), len(self.again)
        events = tuple(events)
        self.forward.extend(events)
        self.again.extend(events if again is None else again)
        self.saved += saved
        out.grad = wanted
        if wanted:
            held = (inputs if holds is None else holds) if keeps else ()
            held = tuple(each.base or each for each in held)
            held = tuple(each for each in held if each.grad and not each.parameter)
            self._nodes.append(_TapeNode(out, inputs, backward, held, beside, needs))
        return out

    @property
    def held_bytes(self) -> int:
        """What is kept until backward, parameters left out."""
        tensors = {id(each): each.size_bytes for node in self._nodes for each in node.holds}
        return sum(tensors.values()) + sum(node.beside for node in self._nodes)

    def most_bytes(self, *results: Tensor) -> int:
        """The most there is at a time in backward: what is kept, gradients, those of parameters too."""
        last: dict[int, int] = {}
        for number, node in enumerate(self._nodes):
            for each in node.holds:
                last.setdefault(id(each), number)
        # A gradient that is handed on as it is, is one tensor: its bytes, and to how many it belongs.
        there = {id(result): [result.size_bytes, 1] for result in results}
        live = most = self.held_bytes + sum(result.size_bytes for result in results)
        for number, node in reversed([*enumerate(self._nodes)]):
            given = there.pop(id(node.out), None)
            if given is None:
                continue
            needed = {place: each for place, each in enumerate(node.inputs) if each.grad}
            handed_on, added = not any(True for _ in node.backward(frozenset(needed))), 0
            for each in needed.values():
                made = given if handed_on else [each.size_bytes, 0]
                live += 0 if handed_on else made[0]
                if id(each) not in there:
                    there[id(each)] = made
                    made[1] += 1
                elif not handed_on:
                    added += made[0]
            most = max(most, live + node.needs)
            given[1] -= 1
            let_go = {id(each): each.size_bytes for each in node.holds if last[id(each)] == number}
            live -= added + node.beside + sum(let_go.values()) + (0 if given[1] else given[0])
        return most

    def backward(self, *results: Tensor, part: Part = "whole") -> list[TapeEvent]:
        """What backward launches, given gradients of the results.

        ``part``: gradients of what the stretch was given alone (``torch.autograd.grad`` of inputs), or those
        of weights, made of gradients that were kept where operators that lead to inputs read them
        (``torch.distributed.pipelining``'s ``stage_backward_input`` and ``stage_backward_weight``).
        """
        given: dict[int, int] = {id(result): 1 for result in results}
        made: list[TapeEvent] = []
        leading = self._leading() if part != "whole" else frozenset()
        for node in reversed(self._nodes):
            led = id(node.out) in leading
            if not (id(node.out) in given or (part == "weights" and led)):
                continue
            needed = frozenset(
                place
                for place, tensor in enumerate(node.inputs)
                if tensor.grad and (part == "whole" or (id(tensor) in leading) is (part == "inputs"))
            )
            if not needed:
                continue
            made.extend(node.backward(needed))
            for place in sorted(needed):
                tensor = node.inputs[place]
                seen = given.get(id(tensor), 0)
                if seen and not tensor.parted:
                    made.append(memory(3 * tensor.size_bytes))
                given[id(tensor)] = seen + 1
                if tensor.weight is not None and not seen:
                    made.append(Ready(tensor.weight))
        return made

    def _leading(self) -> frozenset[int]:
        """Tensors by way of which gradients come to what the stretch was given, which no weight is."""
        made = {id(node.out) for node in self._nodes}
        leading: set[int] = set()
        for node in self._nodes:
            given = (
                id(each)
                for each in node.inputs
                if each.grad and each.weight is None and (id(each) in leading or id(each) not in made)
            )
            found = set(given)
            if found:
                leading |= {*found, id(node.out)}
        return frozenset(leading)


def pieces(name: str, events: Iterable[TapeEvent]) -> tuple[Piece, ...]:
    """Events as pieces: one ends with an exchange, or where a gradient is complete."""
    made: list[Piece] = []
    kernels: list[Kernel] = []
    beside: Exchange | None = None
    for event in events:
        if isinstance(event, Kernel):
            kernels.append(event)
            continue
        if isinstance(event, Beside):
            made.append(Piece(name, tuple(kernels), beside=beside))
            kernels, beside = [], event.exchange
            continue
        then = event if isinstance(event, Exchange) else None
        ready = (event.weight,) if isinstance(event, Ready) else ()
        mark = event if isinstance(event, Mark) else None
        made.append(Piece(name, tuple(kernels), then, beside, ready, mark))
        kernels, beside = [], None
    if kernels:
        made.append(Piece(name, tuple(kernels), beside=beside))
    return tuple(made)
