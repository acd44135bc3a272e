"""A GPU's training numbers by a few jobs measured on it: ``python -m tests.lab.validation.one_gpu fit``.

``memory_training`` and ``element_rate`` by kernels alone, as many seconds as the jobs' operators have; then
the two powers by the jobs' iterations, and by the watts of those that the limit didn't reach.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.formats.pytorch.kernel_times import kind_of
from cosim.formats.pytorch.kineto import Work
from cosim.gpu.gpus import Gpu
from cosim.gpu.job_clock import within, work
from cosim.gpu.kernels import KernelKind
from cosim.profiler.workload import BATCH_NORM, COMPILED, busy_ps
from cosim.units import PS_PER_S
from tests.lab.validation.one_gpu.jobs import Job

ONE_BY_ONE = (
    "::elementwise_kernel<128",
    "CatArrayBatchedCopy<",
    "unrolled_elementwise",
    "batch_norm_collect_statistics",
)
"""Of PyTorch's kernels those that go through their elements one by one."""
PRODUCTS = (KernelKind.MATMUL, KernelKind.ATTENTION, KernelKind.ATTENTION_BACKWARD)
BELOW = 0.94
"""Part of the limit's watts below which a job isn't held back."""


def operators(job: Job) -> tuple[int, int, float, int, float]:
    """Of a job's element-wise kernels: how many go through elements one by one, as profiled; elements of
    those, and seconds measured; bytes of the others that no compiler made, and seconds.
    """
    one_by_one, elements, moved = 0, 0, 0
    for kernel, times in job.profiled:
        if kernel[1] == "memory" and kernel[5]:
            one_by_one, elements = one_by_one + times, elements + times * kernel[5]
            if kernel[0] == BATCH_NORM:  # and a kernel that applies what was found
                moved += times * kernel[4] * 2 // 3
        elif kernel[1] == "memory" and not kernel[0].startswith(COMPILED):
            moved += times * kernel[4]
    slow_s = other_s = 0.0
    for name, seconds in job.kernels:
        copy = name.startswith(("Memcpy", "Memset"))
        if any(part in name for part in ONE_BY_ONE):
            slow_s += seconds
        elif not name.startswith("triton_") and kind_of(Work(0, 1, name, "7", 1, copy=copy)) not in PRODUCTS:
            other_s += seconds
    return one_by_one, elements, slow_s, moved, other_s


def counted(job: Job) -> tuple[int, int]:
    """Kernels that find elements one by one: measured, profiled."""
    took = sum(any(part in name for part in ONE_BY_ONE) for name, _ in job.kernels)
    return took, operators(job)[0]


def fitted(jobs: Sequence[Job], gpu: Gpu) -> Gpu:
    """The GPU with what these jobs say; those that wait for their host say nothing of its power."""
    each = np.array([operators(job) for job in jobs]).sum(axis=0)
    _, elements, slow_s, moved, other_s = (float(value) for value in each)
    told = {
        "element_rate": elements / slow_s / gpu.multiprocessors,
        "memory_training": moved * 8 / gpu.memory_rate / other_s,
    }
    gpu = gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update=told)})
    assert gpu.power is not None
    busy = [job for job in jobs if sum(done(job, gpu)[:2]) / PS_PER_S > 0.5 * job.seconds]
    powers = least(busy, gpu, gpu.power)
    told = {"arithmetic_power": powers[0], "memory_power": powers[1], "sustained_clock": 1.0}
    return gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update=told)})


def done(job: Job, gpu: Gpu) -> tuple[int, int, int]:
    """What a job's kernels ask of a GPU (:func:`cosim.gpu.job_clock.work`)."""
    return work(gpu, lambda one: busy_ps(job.profile, one))


def least(jobs: Sequence[Job], gpu: Gpu, limit: float) -> tuple[float, float]:
    """Watts of arithmetic and of memory with the least squares of relative errors."""
    works = [done(job, gpu) for job in jobs]
    best, found = np.inf, (0.0, 0.0)
    for arithmetic_w in range(600, 1500, 10):
        for memory_w in range(100, 700, 10):
            wrong = 0.0
            for job, (arithmetic, stalled, products) in zip(jobs, works, strict=True):
                x = within(limit, (arithmetic, stalled, products), arithmetic_w, memory_w)
                takes = (arithmetic / x + stalled) / PS_PER_S
                wrong += (takes / job.seconds - 1) ** 2
                if job.watts < BELOW * limit:
                    watts = (arithmetic_w * products + memory_w * stalled) / (arithmetic + stalled)
                    wrong += (watts / job.watts - 1) ** 2
            if wrong < best:
                best, found = wrong, (float(arithmetic_w), float(memory_w))
    return found
