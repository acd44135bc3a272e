"""Parts of a layer, and the pieces of its forward and backward pass.

Parts follow each other with an exchange between two; backward runs them in reverse, with the dual exchange:
what was gathered is reduce-scattered, what an all-reduce closed is opened by none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cosim.gpu.kernels import Kernel, KernelKind, attention_backward, matmul_backward, memory
from cosim.models.catalogue.conversion import Gathered, converted, converted_backward, gathered
from cosim.models.catalogue.cut import TP, Cut
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
    gathers
        What tensor-parallel ranks gather for its first product, and for the gradient of its last one, they
        gather as the products take it.
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
    gathers: bool = False
    graphed: bool = False
    read: bool = False

    def made(self, kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
        """As the host issues them."""
        return tuple(replace(kernel, issued=0) if self.graphed else kernel for kernel in kernels)


def forward_pieces(parts: Sequence[BlockPart], cut: Cut) -> Iterable[Piece]:
    """The pieces of a forward pass."""
    comes: Gathered | None = None
    for part, after in zip(parts, (*parts[1:], None), strict=True):
        kernels = part.made(_issued(part, part.kernels, cut, given=comes is not None))
        mark = Mark("host waits") if part.read else None
        comes = _gathered(part.then.forward, after, cut)
        made = Piece(part.name, kernels, part.then.forward, part.beside.forward, mark=mark)
        yield from _converting(made, part, comes)


def backward_pieces(parts: Sequence[BlockPart], cut: Cut) -> Iterable[Piece]:
    """Last part first; what is exchanged after a part is the dual of what came before it in forward."""
    comes: Gathered | None = None
    for number in reversed(range(len(parts))):
        part, before = parts[number], parts[number - 1] if number else None
        then = before.then.backward if before else None
        if part.fetch is not None:
            yield Piece(f"{part.name} again", (), part.fetch)
        came = _gathered(before.then.forward, part, cut) if before else None
        kernels = (
            *_issued(part, part.again, cut, given=came is not None),
            *(comes.turning if comes else ()),
            *(came.turning if came else ()),
            *_kernels_backward(part, cut, given=comes is not None),
        )
        comes = _gathered(then, before, cut, backward=True)
        made = Piece(part.name, part.made(kernels), then, part.beside.backward)
        if cut.overlap_input_gradients and part.gathers and _sums(then):
            *earlier, weights = made.kernels
            yield replace(made, kernels=tuple(earlier), then=None)
            made = Piece(part.name, (weights,), beside=then)
        yield from _converting(made, part, comes)


def _sums(exchange: Exchange | None) -> bool:
    """Whether tensor-parallel ranks add up what they made."""
    if exchange is None or exchange.axes != TP:
        return False
    return exchange.collective in ("all_reduce", "reduce_scatter")


def _gathered(
    exchange: Exchange | None, reader: BlockPart | None, cut: Cut, *, backward: bool = False
) -> Gathered | None:
    """The operand that an exchange gathers narrow for the part that reads it; None: it doesn't."""
    if exchange is None or (exchange.collective, exchange.axes) != ("all_gather", TP):
        return None
    if reader is None or not reader.gathers or not reader.kernels:
        return None
    product = reader.kernels[-1 if backward else 0]
    if product.narrow is None:
        return None
    if backward:
        product = replace(matmul_backward(product, cut.width)[0], narrow=product.narrow)
    return gathered(product, cut, normed=reader.normed and not backward, both=backward)


def _converting(made: Piece, part: BlockPart, comes: Gathered | None) -> Iterable[Piece]:
    """A piece, and what converts the operand that is gathered after it."""
    if comes is None:
        yield made
        return
    finding, making = part.made(comes.finding), part.made(comes.making)
    if comes.largest is None:
        yield replace(made, kernels=(*made.kernels, *finding, *making), then=comes.gather)
        return
    yield replace(made, kernels=(*made.kernels, *finding), then=comes.largest)
    yield Piece(f"{part.name} made narrow", making, comes.gather)


def _issued(part: BlockPart, kernels: Sequence[Kernel], cut: Cut, *, given: bool) -> Iterable[Kernel]:
    """Forward's kernels; what goes into a narrow product is made before, also for the weights' gradient.

    ``given``: what goes into the part's first product comes narrow.
    """
    for number, kernel in enumerate(kernels):
        if kernel.narrow is None or cut.recipe is None or kernel.kind is not KernelKind.MATMUL:
            yield kernel
            continue
        convert, product = converted(kernel, cut, normed=part.normed and not number)
        if not (part.fused and number) and not (given and kernel is part.kernels[0]):
            yield convert
        yield product


def _kernels_backward(part: BlockPart, cut: Cut, *, given: bool) -> Iterable[Kernel]:
    """Two products for each product, and one conversion; for others one and a half times the traffic, unless
    they say what they return.

    ``given``: what comes back to the part's last product comes narrow.
    """
    for number, kernel in enumerate(reversed(part.kernels)):
        if kernel.kind is KernelKind.MATMUL:
            if kernel.narrow is None or cut.recipe is None:
                yield from matmul_backward(kernel, cut.width)
                continue
            convert, *products = converted_backward(kernel, cut)
            if not (part.fused and number) and not (given and not number):
                yield convert
            yield from products
        elif kernel.kind is KernelKind.ATTENTION:
            yield attention_backward(kernel)
        elif kernel.returned is not None:
            yield from kernel.returned
        else:
            yield memory(kernel.bytes_moved * 3 // 2, launches=kernel.launches * (1 + part.plain))
