"""Parts of a layer, and the pieces of its forward and backward pass.

Parts follow each other with an exchange between two; backward runs them in reverse, with the dual exchange:
what was gathered is reduce-scattered, what an all-reduce closed is opened by none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cosim.gpu.kernels import Kernel, KernelKind, attention_backward, matmul_backward, memory
from cosim.models.catalogue.conversion import converted, converted_backward
from cosim.models.catalogue.cut import Cut
from cosim.models.parts import Exchange, Mark, Piece


@dataclass(frozen=True, slots=True)
class ExchangePair:
    """What is exchanged after a part, and in its place in backward."""

    forward: Exchange | None = None
    backward: Exchange | None = None


@dataclass(frozen=True, slots=True)
class BlockPart:
    """Kernels, then an exchange.

    Attributes
    ----------
    again, fetch
        What backward runs first, and what it exchanges first.
    plain
        Norms and residuals: backward launches two kernels for each.
    fused
        Its products apply what is between two of them and convert that themselves: only what goes into the
        first one, and what comes back into the last one, is converted by kernels of their own.
    normed
        A norm made what goes into its first product, with the largest number.
    graphed
        A CUDA graph has it: the host issues nothing.
    read
        Forward, the host reads what it made, and issues nothing until then.
    """

    name: str
    kernels: tuple[Kernel, ...]
    then: ExchangePair = ExchangePair()
    beside: ExchangePair = ExchangePair()
    again: tuple[Kernel, ...] = ()
    fetch: Exchange | None = None
    plain: bool = False
    fused: bool = False
    normed: bool = False
    graphed: bool = False
    read: bool = False

    def made(self, kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
        """As the host issues them."""
        return tuple(replace(kernel, issued=0) if self.graphed else kernel for kernel in kernels)


def forward_pieces(parts: Sequence[BlockPart], cut: Cut) -> Iterable[Piece]:
    """Of a forward pass."""
    for part in parts:
        kernels = part.made(_issued(part, part.kernels, cut))
        mark = Mark("host waits") if part.read else None
        yield Piece(part.name, kernels, part.then.forward, part.beside.forward, mark=mark)


def backward_pieces(parts: Sequence[BlockPart], cut: Cut) -> Iterable[Piece]:
    """Last part first; what is exchanged after a part is the dual of what came before it in forward."""
    for number in reversed(range(len(parts))):
        part = parts[number]
        then = parts[number - 1].then.backward if number else None
        if part.fetch is not None:
            yield Piece(f"{part.name} again", (), part.fetch)
        kernels = (*_issued(part, part.again, cut), *_kernels_backward(part, cut))
        yield Piece(part.name, part.made(kernels), then, part.beside.backward)


def _issued(part: BlockPart, kernels: Sequence[Kernel], cut: Cut) -> Iterable[Kernel]:
    """Forward's kernels; what goes into a narrow product is made before, also for the weights' gradient."""
    for number, kernel in enumerate(kernels):
        if kernel.narrow is None or cut.recipe is None or kernel.kind is not KernelKind.MATMUL:
            yield kernel
            continue
        convert, product = converted(kernel, cut, normed=part.normed and not number)
        if not (part.fused and number):
            yield convert
        yield product


def _kernels_backward(part: BlockPart, cut: Cut) -> Iterable[Kernel]:
    """Two products for each product, and one conversion; for others one and a half times the traffic."""
    for number, kernel in enumerate(reversed(part.kernels)):
        if kernel.kind is KernelKind.MATMUL:
            if kernel.narrow is None or cut.recipe is None:
                yield from matmul_backward(kernel, cut.width)
                continue
            convert, *products = converted_backward(kernel, cut)
            if not (part.fused and number):
                yield convert
            yield from products
        elif kernel.kind is KernelKind.ATTENTION:
            yield attention_backward(kernel)
        else:
            yield memory(kernel.bytes_moved * 3 // 2, launches=kernel.launches * (1 + part.plain))
