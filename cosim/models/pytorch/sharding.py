"""What DTensor does between operators: tensor and sequence parallelism as ``parallelize_module`` has them.

Column-wise, then row-wise (Shoeybi et al., arXiv 1909.08053), along the sequence with sequence parallelism
(Korthikanti et al., arXiv 2205.05198), as in torchtitan's plans. NCCL gathers and scatters along the first
dimension: for another one DTensor copies before (``reduce_scatter``) or after (``all_gather``, not where a
view will do: the second dimension, the first being 1).
"""

from __future__ import annotations

from dataclasses import dataclass

from cosim.gpu.kernels import Kernel, memory
from cosim.models.catalogue.cut import TP
from cosim.models.parts import Exchange
from cosim.models.pytorch.operators import FP32, INDEX, Operators
from cosim.models.pytorch.tape import Tape, TapeEvent, Tensor

_BOOL = 1


@dataclass(frozen=True)
class Sharded:
    """Tensor-parallel exchanges, noted on a tape; ``sequence``: ranks share norms and residuals."""

    tape: Tape
    tp: int
    sequence: bool

    def opened(self, x: Tensor) -> Tensor:
        """Before matrices that are split by columns."""
        if self.tp == 1:
            return x
        if not self.sequence:
            back = Exchange("all_reduce", TP, x.size_bytes)
            return self.tape.run((), Tensor(x.shape, x.width), (x,), lambda _: [back], keeps=False)
        out = self.whole(x)
        return self.tape.run(self.gather(x, out), out, (x,), lambda _: self.scatter(out), keeps=False)

    def closed(self, x: Tensor) -> Tensor:
        """After a matrix that is split by rows: partial sums."""
        if self.tp == 1:
            return x
        if not self.sequence:
            reduce = Exchange("all_reduce", TP, x.size_bytes)
            return self.tape.run([reduce], Tensor(x.shape, x.width), (x,), lambda _: (), keeps=False)
        out = self.own(x)
        copied, scattered = self.scatter(x)
        return self.tape.run(
            [copied, scattered], out, (x,), lambda _: self.gather(out, x), keeps=False, again=[copied],
            saved=out.size_bytes,
        )  # fmt: skip

    def whole(self, x: Tensor) -> Tensor:
        """All ranks' tokens of what each has its own of."""
        return Tensor((x.shape[0], x.shape[1] * self.tp, *x.shape[2:]), x.width)

    def own(self, x: Tensor) -> Tensor:
        """A rank's tokens."""
        return Tensor((x.shape[0], x.shape[1] // self.tp, *x.shape[2:]), x.width)

    def embedding(self, at: Operators, tokens: tuple[int, int], table: Tensor, rows: int) -> Tensor:
        """Rows of the rank's part of the vocabulary of ``rows``, zero where a token is another's.

        The gradient is made for the whole vocabulary (``aten.embedding_dense_backward`` has no sharded rule).
        """
        if self.tp == 1:
            return at.embedding(tokens, table)
        count = tokens[0] * tokens[1]
        out = Tensor((*tokens, table.shape[-1]), table.width)
        number, flag = count * INDEX, count * _BOOL
        mask = [
            memory(number + flag),  # below the part
            memory(number + flag),  # above
            memory(3 * flag),  # either
            memory(2 * number),  # a copy
            memory(2 * number),  # counted from the part's beginning
            memory(number + flag),  # 0 where masked
        ]
        look = memory(2 * out.size_bytes + number)
        hide = memory(2 * out.size_bytes + flag)
        whole = Tensor((rows, table.shape[-1]), table.width)
        back = [memory(2 * out.size_bytes + number + whole.size_bytes)]
        made = self.tape.run(
            [*mask, look, hide], out, (table,), lambda _: back, holds=(), beside=number + flag
        )
        return self.closed(made)

    def whole_columns(self, x: Tensor) -> Tensor:
        """Logits of all ranks' columns on each of them; each keeps its own of the gradient."""
        if self.tp == 1:
            return x
        out = Tensor((*x.shape[:-1], x.shape[-1] * self.tp), x.width)
        events: list[TapeEvent] = [Exchange("all_gather", TP, x.size_bytes), memory(2 * out.size_bytes)]
        return self.tape.run(
            events, out, (x,), lambda _: [memory(2 * x.size_bytes, elements=x.count)], keeps=False
        )

    def cross_entropy(self, at: Operators, logits: Tensor) -> Tensor:
        """``loss_parallel``: three all-reduces of a number for each token, no logit leaves its rank."""
        if self.tp == 1:
            return at.cross_entropy(logits)
        if logits.width != FP32:
            logits = at.cast(logits, FP32)
        rows = logits.count // logits.shape[-1]
        size, column, number, flag = logits.size_bytes, rows * FP32, rows * INDEX, rows * _BOOL
        reduce = Exchange("all_reduce", TP, column)
        masked: list[Kernel] = [  # which targets are this rank's, and where
            memory(number + flag), memory(2 * number + flag),  # those not ignored
            memory(number + flag), memory(number + flag), memory(3 * flag),
            memory(2 * number), memory(2 * number), memory(number + flag),
        ]  # fmt: skip
        forward: list[TapeEvent] = [
            memory(size + column), reduce,  # largest
            memory(2 * size + column),  # difference
            memory(2 * size),  # exponential
            memory(size + column), reduce,  # sum
            memory(2 * column), memory(2 * size + column),  # logarithm, difference
            *masked,
            memory(number + 2 * column),  # this rank's targets
            memory(2 * column + flag), reduce,
            memory(2 * column), memory(number + flag), memory(2 * column + flag),
            memory(number + flag), memory(flag), memory(INDEX), memory(column), memory(FP32),
        ]  # fmt: skip
        back: list[TapeEvent] = [
            memory(FP32), memory(FP32),
            memory(size),  # zeros
            *masked,
            memory(flag + column), memory(2 * column), memory(number),
            memory(number + 2 * column),  # -1 at this rank's targets
            memory(number + flag), memory(flag + column),
            memory(2 * size), memory(3 * size), memory(2 * size + column),
        ]  # fmt: skip
        return self.tape.run(
            forward, Tensor((), FP32), (logits,), lambda _: back, holds=(), beside=size, needs=2 * size
        )

    def gather(self, own: Tensor, whole: Tensor) -> list[TapeEvent]:
        """Each rank's tokens on all of them."""
        events: list[TapeEvent] = [Exchange("all_gather", TP, own.size_bytes)]
        if own.shape[0] > 1:
            # Ranks' parts of each sequence are put together; of one sequence they lie one after another.
            events.append(memory(2 * whole.size_bytes, elements=whole.count))
        return events

    def scatter(self, whole: Tensor) -> list[TapeEvent]:
        """Partial sums of all tokens, added up where they belong."""
        return [memory(2 * whole.size_bytes), Exchange("reduce_scatter", TP, whole.size_bytes)]
