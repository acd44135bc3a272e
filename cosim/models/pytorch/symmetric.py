"""Async tensor parallelism: a product and what tensor-parallel ranks exchange around it, by symmetric memory.

``torch.ops.symm_mem.fused_all_gather_matmul`` and ``fused_matmul_reduce_scatter``, as PyTorch 2.13 has them
(``torch/distributed/_symmetric_memory``; Wang et al., "Overlap Communication with Dependent Computation via
Decomposition in Large Deep Learning Models", ASPLOS 2023, doi:10.1145/3567955.3567959): rows are in as many
parts as there are ranks, and while one part is multiplied the next is copied out of another GPU. Fused is
what the compiler's pass fuses (``_micro_pipeline_tp``): a gather with the products that read it, a scatter
with the product that it adds up. Gradients of several products that read one gather are added before they are
scattered, so that no product makes what is scattered: that exchange stays by itself.

Parts of a product run on two streams, which fill each other's waves. Not modelled: the first part, which is
copied before anything can be multiplied, and the last, multiplied after all is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cosim.gpu.kernels import Kernel, memory
from cosim.models.catalogue.cut import TP
from cosim.models.parts import Exchange
from cosim.models.pytorch.blocks import EagerBlocks, Writer
from cosim.models.pytorch.tape import Beside, TapeEvent, Tensor

_SIGNAL = 4
"""Bytes that a barrier writes to each rank."""


class AsyncWriter(Writer):
    """A layer whose tensor-parallel exchanges go on beside its products."""

    def __init__(self, blocks: EagerBlocks, name: str) -> None:
        super().__init__(blocks, name)
        self.barrier = memory(self.tp * _SIGNAL)

    def columns(self, x: Tensor, wanted: Iterable[tuple[str, int]]) -> Iterator[Tensor]:
        """All products at once, part by part as ``x`` is gathered. See :meth:`Writer.columns`."""
        weights = [self.weight(name, columns, x.shape[-1]) for name, columns in wanted]
        whole = self.split.whole(x)
        products = [self.at.rule(whole, weight) for weight in weights]
        parts = [self._in_parts(kernel) for rule in products for kernel in rule.forward]
        events = self._gathered(x, parts, kept=True)
        self.tape.run(events, whole, (x,), lambda _: self.split.scatter(whole), keeps=False)
        for rule, weight in zip(products, weights, strict=True):
            yield self.tape.run((), rule.out, (whole, weight), rule.backward)

    def rows(self, name: str, x: Tensor, columns: int) -> Tensor:
        """A product whose parts go to the ranks that add them up. See :meth:`Writer.rows`."""
        weight = self.weight(name, columns, x.shape[-1])
        rule = self.at.rule(x, weight)
        out = self.split.own(rule.out)

        def backward(needed: frozenset[int]) -> Iterable[TapeEvent]:
            parts = [self._in_parts(kernel) for kernel in rule.backward(needed & {0}) if needed & {0}]
            yield from self._gathered(out, parts, kept=1 in needed)
            if 1 in needed:
                yield from rule.backward(frozenset({1}))

        events: list[TapeEvent] = [
            self.barrier,
            Beside(Exchange("reduce_scatter", TP, rule.out.size_bytes)),
            *(self._in_parts(kernel) for kernel in rule.forward),
            Beside(None),
            self.barrier,
            memory(rule.out.size_bytes + out.size_bytes),  # parts of all ranks, added up
        ]
        return self.tape.run(events, out, (x, weight), backward)

    def _gathered(self, own: Tensor, parts: list[Kernel], *, kept: bool) -> Iterator[TapeEvent]:
        """Products of what is gathered meanwhile; ``kept``: all of it is used again."""
        copied = memory(2 * own.size_bytes)
        yield from (self.barrier, copied, self.barrier, Beside(Exchange("all_gather", TP, own.size_bytes)))
        yield from parts
        if kept:
            yield copied
        yield Beside(None)
        yield self.barrier

    def _in_parts(self, kernel: Kernel) -> Kernel:
        """A product of so many rows at once, each part of which reads the weights."""
        rows, again = kernel.rows // self.tp, (self.tp - 1) * kernel.inner * kernel.columns * self.at.width
        return replace(
            kernel, rows=rows, batch=self.tp, bytes_moved=kernel.bytes_moved + again, issued=self.tp
        )


class AsyncBlocks(EagerBlocks):
    """Layers whose blocks have asynchronous tensor parallelism; embedding and head have none."""

    def written(self, name: str) -> Writer:
        """See :meth:`EagerBlocks.written`."""
        return AsyncWriter(self, name)
