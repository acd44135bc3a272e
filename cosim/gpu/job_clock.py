"""The clock at which a job keeps within its GPU's power limit.

A power limit is of an average over milliseconds, so that all kernels of an iteration share one clock, the
lower the more of them are products. With a rank's kernels at the clock that each has alone, ``A`` seconds of
them bound by arithmetic and ``M`` by memory, and its FLOPs as many as ``I`` seconds of large products have
(:func:`clocked`), an iteration at the fraction ``x`` of that clock takes ``A / x + M``, and its energy is

    arithmetic_power * I * x  +  memory_power * M,

as an operation's energy goes with the clock: by the square that voltage alone would say, less what doesn't
change with it (the watts of 33 jobs on an H100 and an H200 fit powers of 0.2 to 1.1). ``x`` is where both
together are the limit (a quadratic's root), at most 1. So a product of a number type whose peak is twice as
high takes half the energy, and attention, whose exponentials keep products waiting, less power than these.

Only + - * / and square roots of doubles. Not modelled: waiting for others (communication, the host), in which
a GPU takes less, so that a job that waits much has a higher clock; the GPU's temperature; one GPU's chip and
another's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from cosim.gpu.gpus import DType, Gpu
from cosim.gpu.kernels import Kernel, KernelKind
from cosim.gpu.timer import GpuTimer
from cosim.host.hosts import Host
from cosim.units import PS_PER_S

Busy = Callable[[Gpu], Sequence[int]]
"""Picoseconds that each of a job's programs keeps a GPU busy, were it this one."""


def clocked(gpu: Gpu, busy: Busy) -> Gpu:
    """The GPU at the clock that its power leaves a job's busiest rank; as it is where no power is known."""
    efficiency = gpu.efficiency
    if efficiency.arithmetic_power is None or efficiency.memory_power is None or gpu.power is None:
        return gpu
    share = within(gpu.power, work(gpu, busy), efficiency.arithmetic_power, efficiency.memory_power)
    said = f"{gpu.source}; its power leaves this job {share:.0%} of the clock that kernels have alone"
    return at_clock(gpu, efficiency.sustained_clock * share).model_copy(update={"source": said})


def work(gpu: Gpu, busy: Busy) -> tuple[int, int, int]:
    """Picoseconds of a job's busiest rank bound by arithmetic and by memory, at the clock that kernels have
    alone, and of its FLOPs at the rate of large products.
    """
    full = busy(at_clock(gpu, 1.0))
    most = max(full, default=0)
    if not most:
        return 0, 0, 0
    place = full.index(most)
    arithmetic = busy(at_clock(gpu, 0.5))[place] - most
    return arithmetic, max(most - arithmetic, 0), busy(of_products(gpu))[place]


def within(
    limit: float, done: tuple[float, float, float], arithmetic_power: float, memory_power: float
) -> float:
    """The fraction of the clock at which a job is within its limit, watts.

    ``done``: what :func:`work` gives, in any unit.
    """
    arithmetic, memory, products = done
    if not arithmetic or not products:
        return 1.0
    square, linear = arithmetic_power * products, (memory_power - limit) * memory
    return min((sqrt(linear * linear + 4 * square * limit * arithmetic) - linear) / (2 * square), 1.0)


def at_clock(gpu: Gpu, clock: float) -> Gpu:
    """At this clock, whatever its power."""
    told = {"sustained_clock": clock, "arithmetic_power": None, "memory_power": None}
    return gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update=told)})


def of_products(gpu: Gpu) -> Gpu:
    """A GPU whose kernels take as long as their FLOPs do at the rate of large products, and no host."""
    return _Products.model_construct(**{**dict(gpu), "host": Host(operator_time=0)})


class _Products(Gpu):
    def timer(self, dtype: DType) -> GpuTimer:
        return _ProductsTimer(at_clock(self, 1.0), dtype)


class _ProductsTimer(GpuTimer):
    def _kernel_ps(self, kernel: Kernel) -> int:
        if kernel.kind in (KernelKind.MEMORY, KernelKind.SCAN):
            return 0
        return int(kernel.flops / self._product_rate(kernel.narrow) * PS_PER_S)
