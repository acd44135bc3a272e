"""Experts in place of an MLP: the router, tokens to their experts, their products, and back.

Tokens go by all-to-all (Lepikhin et al., arXiv 2006.16668), a copy for each expert; or, as DeepEP and
HybridEP send them (github.com/deepseek-ai/DeepEP), once to each rank that has one of their experts, where a
group spans several hosts once to each host, which hands them on meanwhile. HybridEP's tokens have with them
the weights of all experts of the domain that they go to, forward and, as gradients, backward; before, all
ranks gather which token goes to which expert (``allgather_routing_map``, ``hybrid_ep_backend.cuh``). A copy
for each expert is put in the experts' order before it is sent or, of DeepEP's, when it has come; what several
ranks sent to several experts of one rank, which the plain all-to-all leaves rank by rank, is sorted once
more. Routing is even: a token's ``top_k`` experts are any of ``num`` with the same probability. Where such a
library fills a NIC less than NCCL does (``dispatcher_efficiency``), its messages are longer by as much.

A library multiplies the experts' matrices one after another, each by a kernel with waves of tiles of its own
and with conversions of its own (Transformer Engine's grouped linear layers, ``multi_stream_cublas_gemm``),
which the host issues; or all in one kernel that applies the activation and converts its result (``fused``).
Without it, clamping and the last product's bias are operators of their own,
as Megatron-Core has them (``weighted_bias_quick_geglu_impl``, ``TEGroupedMLP._apply_bias``); the first one's
bias is the product's.

The host doesn't know how many tokens each expert of its rank has, whose products it issues one by one: it
waits for the router's counts in each layer's forward pass (Megatron-Core's ``_maybe_dtoh_and_synchronize``,
HybridEP's ``metadata_preprocess_core``), unless every expert takes a fixed number (``padded_experts``) or one
kernel reads the counts on the GPU (``fused``).

Latent experts (LatentMoE, arXiv 2512.20856) see tokens that a product before the dispatch projects, on the
rank that has them, and one after the sum projects back.

Not modelled: tokens that a capacity drops (as many are computed), shared experts overlapping the all-to-all,
experts' kernels whose tiles differ, multiprocessors that a dispatcher takes from computation beside it (32 in
the recipes of HybridEP), hosts that wait for NVLink as they hand tokens on (two of H800s,
``tests.lab.validation.deepep``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cosim.gpu.kernels import NARROW_ROWS, Kernel, KernelKind, Narrow, matmul, memory
from cosim.models.catalogue.architecture import Experts
from cosim.models.catalogue.block_parts import BlockPart, ExchangePair
from cosim.models.catalogue.conversion import EXPERT_OPERATORS, GROUPED_OPERATORS, linear
from cosim.models.catalogue.cut import TP, Cut
from cosim.models.parts import Exchange

_FP32 = 4
_BOOL = 1


@dataclass(frozen=True, slots=True)
class ExpertLayer:
    """Routed experts of a layer on a rank of a cut."""

    experts: Experts
    cut: Cut
    hidden: int
    gated: bool

    @property
    def seen(self) -> int:
        """Numbers of a token that experts see, and that are sent."""
        return self.experts.width(self.hidden)

    @property
    def rows(self) -> int:
        """Rows of the experts' matrices on this rank, before tensor-parallel ranks gather theirs."""
        cut = self.cut
        return math.ceil(cut.own_tokens * self.experts.top_k * cut.parallel.imbalance)

    @property
    def copies(self) -> float:
        """Copies of a token that are sent; a library that fills its NICs to a fraction sends as much more."""
        cut, e = self.cut, self.experts
        if cut.dispatcher == "all_to_all":
            return e.top_k
        if cut.expert_hosts == 1:
            return places(e, cut.parallel.ep)
        return places(e, cut.expert_hosts) / cut.dispatcher_efficiency

    def parts(self, name: str) -> list[BlockPart]:
        """From the router to the sum of what experts made of a token."""
        cut, width = self.cut, self.cut.width
        seen = self.seen
        size = self.rows * seen * width
        sent = math.ceil(cut.own_tokens * self.copies * cut.parallel.imbalance)
        there = Exchange("all_to_all", cut.parallel.ep_axes, sent * (seen * width + self._weights_bytes))
        back = Exchange("all_to_all", cut.parallel.ep_axes, sent * seen * width)
        turn, turned = ExchangePair(there, there), ExchangePair(back, back)
        opens, closes = self._spread(size)
        router = matmul(cut.own_tokens, self.hidden, self.experts.num, width)
        choose = memory(cut.own_tokens * self.experts.num * (width + 2 * _FP32), launches=4)
        move = memory(2 * size, launches=2)  # into the experts' order, or back
        own = self.experts.num // cut.parallel.ep
        sort = (move,) if cut.dispatcher == "all_to_all" and own > 1 and cut.parallel.ep > 1 else ()
        graphed = "router" in cut.graphed
        compute, activation = self._products(), self._activation()
        again = activation if cut.runs_again("activation") and not cut.fused_experts else ()
        down, up = self._projected(self.hidden, seen), self._projected(seen, self.hidden)
        return [
            *([BlockPart(f"{name} latent", (down,), graphed=graphed)] if self.experts.latent else []),
            BlockPart(f"{name} router", (router, choose), graphed=graphed, read=cut.counts_read),
            *self._told(f"{name} router"),
            BlockPart(f"{name} router", (move,), turn),
            BlockPart(f"{name} experts in", sort, opens),
            BlockPart(f"{name} experts", compute, closes, again=again, fused=cut.fused_experts),
            BlockPart(f"{name} experts out", sort, turned),
            BlockPart(f"{name} combine", (move,)),
            *([BlockPart(f"{name} from latent", (up,))] if self.experts.latent else []),
        ]

    @property
    def _weights_bytes(self) -> int:
        """That go with a token to experts and come back as gradients: HybridEP's, of all in the domain."""
        if self.cut.dispatcher != "hybridep":
            return 0
        return self.experts.num // self.cut.expert_hosts * _FP32

    def _told(self, name: str) -> list[BlockPart]:
        """What HybridEP's ranks tell each other before tokens go: a byte for each token and expert, read by a
        kernel that makes of it where everything goes. Backward knows it.
        """
        if self.cut.dispatcher != "hybridep":
            return []
        parallel = self.cut.parallel
        size = self.cut.own_tokens * self.experts.num * _BOOL
        gather = ExchangePair(Exchange("all_gather", parallel.ep_axes, size))
        read = memory(size * parallel.ep, launches=2, returned=())
        return [BlockPart(name, (), gather), BlockPart(name, (read,))]

    def _projected(self, inner: int, columns: int) -> Kernel:
        """A product of a rank's own tokens, whole on each rank (Megatron-Core's ``fc1_latent_proj``)."""
        return linear(self.cut, self.cut.own_tokens, inner, columns, "latent")

    def _products(self) -> tuple[Kernel, ...]:
        rows, own = self._gathered_rows(), self.experts.ffn // self.cut.parallel.expert_tp
        return (
            self._grouped(rows, self.seen, self._wide * own),
            *(() if self.cut.fused_experts else self._activation()),
            self._grouped(rows, own, self.seen),
            *(() if self.cut.fused_experts else self._biased()),
        )

    def _activation(self) -> tuple[Kernel, ...]:
        """What is between the products; clamping reads and writes each half, and both once more together.

        Backward compares each half with its one or two bounds, chooses by that, and joins the halves.
        """
        numbers = self._gathered_rows() * self.experts.ffn // self.cut.parallel.expert_tp
        width = self.cut.width
        made = memory((self._wide + 1) * numbers * width)
        if not self.experts.clamped:
            return (made,)
        compared = 3 * (width + _BOOL) + 3 * _BOOL
        chosen = 2 * (_BOOL + 2 * width)
        returned = memory(numbers * (compared + chosen + 2 * self._wide * width), launches=9)
        return replace(memory(4 * self._wide * numbers * width, launches=3), returned=(returned,)), made

    def _biased(self) -> tuple[Kernel, ...]:
        """The last product's bias, weighted by the router's fp32 and added, expert by expert; all joined, and
        converted.

        Backward converts it back and, for each expert, to what the product made; it multiplies by the bias
        and by the router's, sums both products, and joins the experts' gradients.
        """
        if not self.experts.biases:
            return ()
        numbers, width = self._gathered_rows() * self.seen, self.cut.width
        own = self.experts.num // self.cut.parallel.ep
        returned = memory(numbers * (4 * width + 8 * _FP32), launches=6 * own + 3)
        made = memory(numbers * (2 * width + 6 * _FP32), launches=2 * own + 2)
        return (replace(made, returned=(returned,)),)

    @property
    def _wide(self) -> int:
        return 2 if self.gated else 1

    def _gathered_rows(self) -> int:
        parallel = self.cut.parallel
        return self.rows * (parallel.expert_tp if parallel.sequence_parallel else 1)

    def _grouped(self, rows: int, inner: int, columns: int) -> Kernel:
        """Products of this rank's experts that see a token; each computes as if they shared alike."""
        own = self.experts.num // self.cut.parallel.ep
        kernel = grouped(rows, inner, columns, min(own, rows), self.cut.width, self.cut.narrow)
        if self.cut.fused_experts:
            return replace(kernel, issued=1, spared=self.cut.fused_margin)
        issued = GROUPED_OPERATORS + own * EXPERT_OPERATORS
        return replace(kernel, launches=kernel.batch, issued=issued)

    def _spread(self, size: int) -> tuple[ExchangePair, ExchangePair]:
        """What tensor-parallel ranks exchange before and after their parts of the experts."""
        tp = self.cut.parallel.expert_tp
        if tp == 1:
            return ExchangePair(), ExchangePair()
        if not self.cut.parallel.sequence_parallel:
            closes = Exchange("all_reduce", TP, size)
            return ExchangePair(None, closes), ExchangePair(closes, None)
        gather, scatter = Exchange("all_gather", TP, size), Exchange("reduce_scatter", TP, size * tp)
        return ExchangePair(gather, scatter), ExchangePair(scatter, gather)


def places(experts: Experts, groups: int) -> float:
    """How many of ``groups`` that share the experts alike have one of a token's, in expectation.

    A group has none of them with the probability that all ``top_k`` are among the others' experts.
    """
    others = experts.num - experts.num // groups
    none = math.comb(others, experts.top_k) / math.comb(experts.num, experts.top_k)
    return groups * (1 - none)


def grouped(rows: int, inner: int, columns: int, groups: int, width: int, narrow: Narrow | None) -> Kernel:
    """``groups`` products that share ``rows``; each computes as if they shared alike, filled up to the
    multiple of rows that narrow operands want (Megatron-Core's ``moe_router_padding_for_fp8``).
    """
    moved = (rows * (inner + columns) + groups * inner * columns) * width
    flops = 2 * rows * inner * columns
    step = NARROW_ROWS if narrow else 1
    each = -(-rows // (groups * step)) * step
    return Kernel(KernelKind.MATMUL, flops, moved, groups, each, inner, columns, narrow=narrow)
