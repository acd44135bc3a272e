"""The time of kernels: a roofline whose roofs depend on a kernel's shape.

A matrix product runs in tiles; tiles run in waves over the GPU's multiprocessors, and the last wave may be
part empty (wave quantisation; NVIDIA, "Matrix Multiplication Background User's Guide", DU-09798-001). A tile
of a short inner size spends much of its time filling and draining its pipeline: rate = peak * K / (K +
depth). Where one tile does so while another one computes (``matmul_overlap``: accumulators of two tiles, as
CUTLASS' ping-pong kernels have since Hopper), the longer of both counts: rate = peak * K / sqrt(K^2 +
depth^2). Filling takes its time whatever the type, so that ``depth`` is less where arithmetic is slower, in
fp32, and more where it is faster, in FP8 and FP4. Of several ``tiles``, and of an inner size whole or split
(its partial sums pass the memory), the fastest is taken, as a library's heuristics mean to; products of
narrow operands aren't split, which no measured one looks like. A product, like any kernel, takes no less than
its bytes take at the achievable memory rate (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009,
doi:10.1145/1498765.1498785), and a fixed time beside. Matrix units load 16 bytes at once: where the rows of a
matrix don't begin at a multiple of that (a vocabulary of 50,257), a product reaches only the fraction
``unaligned`` of its rate (the same guide, section "Tensor Core requirements").

Narrow operands have kernels of their own. Hopper's want a multiple of 16 rows; over 256 a remainder costs
what ``ragged_rows`` more would, on whatever size, or half as many where the product isn't wider than it has
rows. Tiles of FP4 are of ``fp4_rows``, filled up. Tiles of a wave share operands by asking for them at the
same time. As benchmarks have them, they drift apart wave by wave (``_DRIFT``), and then an operand that
outgrows the L2 cache passes memory again for each ``panel`` of the product, as far as it doesn't fit, while
nothing is computed: on Hopper where a product is wider than it has rows and has under ``panel_rows``. A
training's library (``fp8_training``) orders its tiles so that it needn't.

Fused attention: its products at ``attention_peak``, slower with small heads, whose exponentials take as long
as those of large ones (Shah et al., "FlashAttention-3", arXiv 2407.08608, section 3.1), and with short
sequences. With narrow operands its products are faster, its exponentials aren't. Under a causal mask the last
block of queries has the most to do: no kernel ends before it.

A scan takes as long as its bytes, as element-wise kernels do, or its products at ``scan_peak``.

An element-wise kernel whose operands lie in memory differently, or are of several types, computes where each
element is; that takes a multiprocessor as long whatever the memory's rate (``element_rate``).

A kernel in a training is not a kernel alone: the power limit, which is of an average, lowers the clock
(``sustained_clock``), and its host's ``gap_time`` passes between two. ``GpuTimer(..., alone=True)`` leaves
both out, as benchmarks of kernels do.

Only + - * / and square roots of doubles, so equal on every machine. Not modelled: what temperature does to a
clock, caches (a kernel's operands come from memory even if the kernel before left them in L2), the numbers'
values (zeros take less power).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf, sqrt

from cosim.gpu.gpus import DTYPE_BYTES, DType, Gpu
from cosim.gpu.kernels import NARROW_BYTES, NARROW_ROWS, Kernel, KernelKind, Narrow
from cosim.units import PS_PER_S

_LOAD_BYTES = 16
"""What matrix units of 16-bit numbers and less load at once."""
_SUM_BYTES = 4
_ONE_TILE = 256
"""Rows up to which those that are no multiple of 16 cost nothing: one tile has them."""
_TILE = 128 * 256
_DRIFT = 5
"""Waves of such tiles after which half of what they shared through the cache is shared no more."""
_HEAD = 128
"""Size of the heads that ``attention_peak`` is of."""


class GpuTimer:
    """Times kernels of one number type on a GPU; see ``cosim.models.training.Timer``.

    ``alone``: one kernel at a time on a cool GPU, as benchmarks measure them.
    """

    def __init__(self, gpu: Gpu, dtype: DType, *, alone: bool = False) -> None:
        self.gpu, self.dtype = gpu, dtype
        efficiency, self._alone = gpu.efficiency, alone
        self._clock = 1.0 if alone else efficiency.sustained_clock
        self._each_ps = efficiency.kernel_time + (0 if alone else gpu.host.gap_time)
        self._peak = gpu.peak(dtype) * self._clock
        self._narrow = DTYPE_BYTES[dtype] <= 2
        peaks = gpu.peak_flops
        self._of_16_bits = peaks.get("bf16", peaks.get("fp16", gpu.peak(dtype)))
        own = efficiency.memory_training
        self._slower = 1.0 if alone or own is None else efficiency.memory_peak / own
        """Element-wise kernels of a framework's operators, where those are known apart."""
        self.kernel_ps = cache(self._kernel_ps)

    def kernels_ps(self, kernels: Sequence[Kernel]) -> int:
        """Picoseconds of kernels, one after another."""
        return sum(self.kernel_ps(kernel) for kernel in kernels)

    def host_ps(self, launches: int) -> int:
        """Picoseconds of the host to issue so many operators."""
        return launches * self.gpu.host.operator_time

    def step_ps(self) -> int:
        """Picoseconds of the host in an iteration beside its operators."""
        return self.gpu.host.step_time

    def slowed_ps(self, duration_ps: int) -> int:
        """What a computation takes while a collective runs on the same GPU."""
        return int(duration_ps * (1 + self.gpu.efficiency.interference))

    def _kernel_ps(self, kernel: Kernel) -> int:
        arithmetic_s = 0.0
        if kernel.kind is KernelKind.MATMUL:
            arithmetic_s = self._matmul_s(kernel)
        elif kernel.kind is KernelKind.SCAN:
            arithmetic_s = kernel.flops / (self._peak * self.gpu.efficiency.scan_peak)
        elif kernel.kind is not KernelKind.MEMORY:
            arithmetic_s = self._attention_s(kernel)
        moving_s = self._memory_s(kernel.bytes_moved)
        if kernel.kind in (KernelKind.MEMORY, KernelKind.SCAN) and not kernel.fused:
            moving_s = max(moving_s * self._slower, self._finding_s(kernel.elements))
        return int(max(moving_s, arithmetic_s) * PS_PER_S) + self._each_ps * kernel.launches

    def _memory_s(self, size_bytes: float) -> float:
        return size_bytes * 8 / (self.gpu.memory_rate * self.gpu.efficiency.memory_peak)

    def _finding_s(self, elements: int) -> float:
        """Seconds for elements found one by one."""
        rate = self.gpu.efficiency.element_rate
        return 0.0 if rate is None else elements / (rate * self.gpu.multiprocessors)

    def _product_rate(self, narrow: Narrow | None) -> float:
        """FLOP/s of a large product."""
        efficiency = self.gpu.efficiency
        if narrow is None and self.dtype != "fp8":
            return self._peak * efficiency.matmul_peak
        own = efficiency.fp8_peak
        if narrow == "fp4":
            own = efficiency.fp4_peak
        elif not self._alone and efficiency.fp8_training is not None:
            own = efficiency.fp8_training
        peak = self.gpu.peak(narrow or self.dtype) * self._clock
        return peak * (efficiency.matmul_peak if own is None else own)

    def _effective_inner(self, inner: float, narrow: Narrow | None) -> float:
        """The inner size of a tile, with what filling and draining it takes."""
        efficiency = self.gpu.efficiency
        depth = efficiency.matmul_depth * self.gpu.peak(narrow or self.dtype) / self._of_16_bits
        return sqrt(inner * inner + depth * depth) if efficiency.matmul_overlap else inner + depth

    def _matmul_s(self, kernel: Kernel) -> float:
        """Whole waves of tiles, each tile at the rate that its inner size allows; the fastest of all ways.

        Each launch has waves of its own.
        """
        launches = max(kernel.launches, 1)
        batch = -(-kernel.batch // launches)
        efficiency, processors = self.gpu.efficiency, self.gpu.multiprocessors
        rate = self._product_rate(kernel.narrow)
        if self._narrow and kernel.stride * DTYPE_BYTES[self.dtype] % _LOAD_BYTES:
            rate *= efficiency.unaligned
        split = 1 if kernel.narrow else efficiency.split_inner
        filled = kernel.rows
        if kernel.narrow == "fp4":
            filled += -kernel.rows % efficiency.fp4_rows
        best = inf
        for rows, columns in efficiency.tiles:
            tiles = batch * -(-filled // rows) * -(-kernel.columns // columns)
            parts = 1
            while parts <= split:
                waves = -(-tiles * parts // max(processors - kernel.spared, 1))
                inner = self._effective_inner(kernel.inner / parts, kernel.narrow)
                flops = 2 * rows * columns * inner * waves * processors
                took = flops / rate
                if parts > 1:  # partial sums, in fp32, written and read again
                    took += self._memory_s(2 * _SUM_BYTES * parts * batch * kernel.rows * kernel.columns)
                best = min(best, took)
                parts *= 2
        if kernel.narrow:
            best += batch * self._narrow_s(kernel, kernel.narrow, rate)
        return best * launches

    def _narrow_s(self, kernel: Kernel, narrow: Narrow, rate: float) -> float:
        """What a product of narrow operands takes beside its tiles."""
        efficiency, wide = self.gpu.efficiency, kernel.columns > kernel.rows
        took = 0.0
        if kernel.rows > _ONE_TILE and kernel.rows % NARROW_ROWS:
            ragged = efficiency.ragged_rows * (1.0 if wide else 0.5)
            took = 2 * ragged * kernel.columns * kernel.inner / rate
        below = efficiency.panel_rows
        if self._alone and (not below or (wide and kernel.rows < below)):
            took += self._memory_s(self._again_bytes(kernel, narrow))
        return took

    def _again_bytes(self, kernel: Kernel, narrow: Narrow) -> float:
        """What passes memory again, as tiles that shared it have drifted apart."""
        efficiency, cache = self.gpu.efficiency, self.gpu.cache
        panel = efficiency.fp8_panel if narrow == "fp8" else efficiency.fp4_panel
        if not (panel and cache):
            return 0.0
        smaller = NARROW_BYTES[narrow] * kernel.inner * min(kernel.rows, kernel.columns)
        waves = kernel.rows * kernel.columns / (_TILE * self.gpu.multiprocessors)
        apart = waves / (waves + _DRIFT)
        return max(smaller - cache, 0.0) * max(kernel.rows, kernel.columns) / panel * apart

    def _attention_s(self, kernel: Kernel) -> float:
        """All blocks spread evenly, or the longest one, whichever takes longer (and a bit of both); in any
        order, half of the longest one after all others.
        """
        efficiency = self.gpu.efficiency
        rate = self._peak * efficiency.attention_peak
        if kernel.version != "newest":
            rate *= efficiency.flash2 * (efficiency.triton if kernel.version == "triton" else 1)
        if kernel.kind is KernelKind.ATTENTION_BACKWARD:
            rate *= efficiency.attention_backward
        if kernel.inner:
            half = efficiency.attention_head
            products: float = kernel.inner
            if kernel.narrow is not None:
                products *= self.gpu.peak(self.dtype) / self.gpu.peak(kernel.narrow)
            rate *= kernel.inner * (_HEAD + half) / (_HEAD * (products + half))
        flops = float(kernel.flops)
        if kernel.causal:  # they are of the scores that count, half of all
            flops *= 2 - efficiency.causal_saves
        if kernel.columns:
            flops *= 1 + efficiency.attention_ramp / kernel.columns
        even = flops / rate
        if not (kernel.causal and efficiency.attention_tile and kernel.flops):
            return even
        queries = min(max(efficiency.attention_tile // kernel.inner, 1), kernel.rows)
        share = queries * self.gpu.multiprocessors / (kernel.batch * kernel.rows)
        if not efficiency.attention_sorted:  # the last block has so many times the mean's scores
            return even * (1 + (2 - queries / kernel.rows) * share / 2)
        return even * sqrt(sqrt(1 + (2 * share) ** 4))
