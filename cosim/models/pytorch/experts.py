"""A mixture of experts in PyTorch's operators, tokens sent to the ranks that have their experts.

As torchtitan has it: scores of a router, the best of each token, tokens in the order of their experts, counts
and then rows exchanged all-to-all (the host waits for the counts), rows in the order of this rank's experts,
grouped products (``torch._grouped_mm``), and all the way back; each token's results are weighed and added.
Expert parallelism: Lepikhin et al., "GShard", arXiv 2006.16668; Rajbhandari et al., arXiv 2201.05596.

``imbalance`` times the mean load is computed and exchanged by every rank, as all wait for the busiest. Not
modelled: dropped tokens, padding of groups, the router's auxiliary loss.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cosim.gpu.kernels import Kernel, KernelKind, memory
from cosim.models.catalogue.architecture import Experts
from cosim.models.parts import Exchange, Mark
from cosim.models.pytorch.operators import FP32, INDEX
from cosim.models.pytorch.tape import TapeEvent, Tensor

if TYPE_CHECKING:
    from cosim.models.pytorch.blocks import Writer

EP = ("ep",)


def mixture(made: Writer, experts: Experts, x: Tensor, inner: Tensor) -> Tensor:
    """Router, experts, and the residual ``x``; ``inner`` is [batch, tokens, hidden]."""
    at, cut, hidden = made.at, made.cut, made.model.hidden
    ranks, tokens = cut.parallel.ep, cut.tokens
    rows = tokens * experts.top_k
    flat = made.view(inner, (tokens, hidden))
    scores = at.softmax(at.cast(made.linear("router", flat, experts.num), FP32), FP32)
    weights = _best(made, scores, experts.top_k)
    numbers, counted = rows * INDEX, experts.num * INDEX
    order: list[TapeEvent] = [
        memory(3 * numbers),  # sorted, and in which order
        memory(numbers + counted),  # tokens of each expert
        memory(2 * numbers),  # which token each row is
    ]
    _note(made, order)
    mine = _rows(made, flat, rows)
    if ranks > 1:
        counts = Exchange("all_to_all", EP, counted)
        each = memory(counted + ranks * INDEX)
        _note(made, [counts, each, each, Mark("host waits")])
        arriving = math.ceil(rows * cut.parallel.imbalance)
        mine = _exchanged(made, mine, arriving)
        own = experts.num // ranks
        arrived = arriving * INDEX
        by_expert: list[TapeEvent] = [
            memory(own * INDEX), memory((own + experts.num) * INDEX),  # experts of this rank, for each rank
            memory(counted + arrived), memory(2 * arrived + counted),  # for each row
            memory(3 * arrived),  # sorted
        ]  # fmt: skip
        _note(made, by_expert)
        mine = _rows(made, mine, arriving)
        _note(made, [memory(counted + own * INDEX)])
        out = _computed(made, experts, mine)
        _note(made, [memory(3 * arrived)])  # back into the order in which they came
        out = _exchanged(made, _rows(made, out, arriving), rows)
    else:
        out = _computed(made, experts, mine)
    weight = at.cast(_rows(made, made.view(weights, (rows,)), rows), out.width)
    whole = _added(made, at.multiply(out, made.view(weight, (rows, 1))), tokens)
    if experts.shared:
        shared = made.dense("shared experts", flat, experts.shared * experts.ffn)
        whole = at.add(whole, shared)
    return made.residual(x, made.view(whole, inner.shape))


def _note(made: Writer, events: list[TapeEvent]) -> None:
    """Work on numbers of tokens, which has no gradient."""
    made.tape.forward.extend(events)


def _best(made: Writer, scores: Tensor, top: int) -> Tensor:
    """``topk``: values, and which they are; backward puts gradients at their places among zeros."""
    out = Tensor((scores.shape[0], top), scores.width)
    numbers = out.count * INDEX
    back = [memory(scores.size_bytes), memory(2 * out.size_bytes + numbers)]
    kernel = memory(scores.size_bytes + out.size_bytes + numbers)
    return made.tape.run([kernel], out, (scores,), lambda _: back, holds=(), beside=numbers)


def _rows(made: Writer, x: Tensor, rows: int) -> Tensor:
    """``x[index]``; its gradient adds rows to zeros."""
    out = Tensor((rows, *x.shape[1:]), x.width)
    numbers = rows * INDEX
    back = [memory(x.size_bytes), memory(out.size_bytes + numbers + 2 * x.size_bytes)]
    kernel = memory(2 * out.size_bytes + numbers)
    return made.tape.run([kernel], out, (x,), lambda _: back, holds=(), beside=numbers)


def _added(made: Writer, x: Tensor, tokens: int) -> Tensor:
    """``index_add`` into zeros: a copy of them, to which each row is added; its gradient takes rows."""
    out = Tensor((tokens, *x.shape[1:]), x.width)
    numbers = x.shape[0] * INDEX
    forward = [memory(out.size_bytes), memory(2 * out.size_bytes + 3 * x.size_bytes + numbers)]
    back = memory(2 * x.size_bytes + numbers)
    return made.tape.run(forward, out, (x,), lambda _: [back])  # numbers that rows were taken by


def _exchanged(made: Writer, x: Tensor, rows: int) -> Tensor:
    """All-to-all, there and, in backward, back; as many bytes as the more of what goes and what comes."""
    out = Tensor((rows, *x.shape[1:]), x.width)
    swap = Exchange("all_to_all", EP, max(x.size_bytes, out.size_bytes))
    return made.tape.run([swap], out, (x,), lambda _: [swap], keeps=False)


def _computed(made: Writer, experts: Experts, x: Tensor) -> Tensor:
    """A gated or plain MLP of each expert's rows; ``Mark``: where the experts' parameters are needed."""
    m, own = made.model, experts.num // made.cut.parallel.ep
    apart = made.cut.parallel.ep > 1
    x = _marked(made, x, "experts begin", "experts end") if apart else x
    _note(made, [memory(own * (INDEX + 4))])  # where each expert's rows end
    wide = made.at.activation(_product(made, "experts gate", x, own, experts.ffn, apart))
    if m.gated:
        wide = made.at.multiply(wide, _product(made, "experts up", x, own, experts.ffn, apart))
    out = _product(made, "experts down", wide, own, m.hidden, apart)
    return _marked(made, out, "experts end", "experts begin") if apart else out


def _marked(made: Writer, x: Tensor, forward: str, backward: str) -> Tensor:
    return made.tape.run(
        [Mark(forward)], Tensor(x.shape, x.width), (x,), lambda _: [Mark(backward)], keeps=False
    )


def _product(made: Writer, name: str, x: Tensor, groups: int, columns: int, apart: bool) -> Tensor:
    """Each group of rows with its own matrix, as if they shared alike."""
    rows, inner = x.shape
    weight = made.weight(name, groups, inner, columns, expert=apart)
    if made.at.autocast:
        x, weight = made.at.cast(x, made.at.width), made.at.cast(weight, made.at.width)
    ends = groups * 4
    out = Tensor((rows, columns), x.width)
    flops, each = 2 * rows * inner * columns, -(-rows // groups)
    moved = x.size_bytes + weight.size_bytes + out.size_bytes + ends

    def kernel(first: int, second: int, third: int) -> Kernel:
        return Kernel(KernelKind.MATMUL, flops, moved, groups, first, second, third)

    def backward(needed: frozenset[int]) -> list[TapeEvent]:
        made_for: list[TapeEvent] = []
        if 1 in needed:
            made_for.append(kernel(inner, each, columns))
        if 0 in needed:
            made_for.append(kernel(each, columns, inner))
        return made_for

    return made.tape.run([kernel(each, inner, columns)], out, (x, weight), backward)
