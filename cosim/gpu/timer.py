"""The time of kernels: a roofline whose roofs depend on a kernel's shape.

A matrix product runs in tiles; tiles run in waves over the GPU's multiprocessors, and the last wave may be
part empty (wave quantisation; NVIDIA, "Matrix Multiplication Background User's Guide", DU-09798-001). A tile
of a short inner size spends much of its time filling and draining its pipeline: rate = peak * K / (K +
depth). A product, like any kernel, takes no less than its bytes take at the achievable memory rate
(Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009, doi:10.1145/1498765.1498785), and a fixed time
beside. Matrix units load 16 bytes at once: where the rows of a matrix don't begin at a multiple of that (a
vocabulary of 50,257), a product reaches only the fraction ``unaligned`` of its rate (the same guide, section
"Tensor Core requirements").

Only + - * / on doubles, so equal on every machine. Not modelled: clocks that follow temperature and power,
split-K kernels, caches (a kernel's operands come from memory even if the kernel before left them in L2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from cosim.gpu.gpus import DTYPE_BYTES, DType, Gpu
from cosim.gpu.kernels import Kernel, KernelKind
from cosim.units import PS_PER_S

_LOAD_BYTES = 16
"""What matrix units of 16-bit numbers and less load at once."""


class GpuTimer:
    """Times kernels of one number type on a GPU; see ``cosim.models.training.Timer``."""

    def __init__(self, gpu: Gpu, dtype: DType) -> None:
        self.gpu, self.dtype = gpu, dtype
        self._peak = gpu.peak(dtype)
        self._narrow = DTYPE_BYTES[dtype] <= 2
        self.kernel_ps = cache(self._kernel_ps)

    def kernels_ps(self, kernels: Sequence[Kernel]) -> int:
        """Picoseconds of kernels, one after another."""
        return sum(self.kernel_ps(kernel) for kernel in kernels)

    def host_ps(self, launches: int) -> int:
        """Picoseconds of the host to issue so many operators."""
        return launches * self.gpu.efficiency.host_time

    def step_ps(self) -> int:
        """Picoseconds of the host in an iteration beside its operators."""
        return self.gpu.efficiency.step_time

    def slowed_ps(self, duration_ps: int) -> int:
        """What a computation takes while a collective runs on the same GPU."""
        return int(duration_ps * (1 + self.gpu.efficiency.interference))

    def _kernel_ps(self, kernel: Kernel) -> int:
        efficiency = self.gpu.efficiency
        memory_s = kernel.bytes_moved * 8 / (self.gpu.memory_rate * efficiency.memory_peak)
        arithmetic_s = 0.0
        if kernel.kind is KernelKind.ATTENTION:
            arithmetic_s = kernel.flops / (self._peak * efficiency.attention_peak)
        elif kernel.kind is KernelKind.MATMUL:
            arithmetic_s = self._matmul_s(kernel)
        return int(max(memory_s, arithmetic_s) * PS_PER_S) + efficiency.kernel_time * kernel.launches

    def _matmul_s(self, kernel: Kernel) -> float:
        """Whole waves of tiles, each tile at the rate that its inner size allows."""
        efficiency, processors = self.gpu.efficiency, self.gpu.multiprocessors
        rows, columns = efficiency.tile_rows, efficiency.tile_columns
        tiles = kernel.batch * -(-kernel.rows // rows) * -(-kernel.columns // columns)
        waves = -(-tiles // processors)
        flops = 2 * rows * columns * (kernel.inner + efficiency.matmul_depth) * waves * processors
        rate = self._peak * efficiency.matmul_peak
        if self._narrow and kernel.stride * DTYPE_BYTES[self.dtype] % _LOAD_BYTES:
            rate *= efficiency.unaligned
        return flops / rate
