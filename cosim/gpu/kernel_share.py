"""What a job's kernels of one kind take in all: the job, built for a GPU that takes time for no other.

Programs say how long operations take, not which kernels they are made of. Their times are sums over kernels,
so a GPU on which all other kernels take none gives those of one kind, of any workload that asks it.
"""

from __future__ import annotations

from cosim.gpu.gpus import DType, Gpu
from cosim.gpu.job_clock import Busy
from cosim.gpu.kernels import Kernel, KernelKind
from cosim.gpu.timer import GpuTimer
from cosim.host.hosts import Host


class KernelShare(Gpu):
    """A GPU of which only kernels of one kind count, without gaps between them, and no host."""

    counted: KernelKind

    @classmethod
    def of(cls, gpu: Gpu, kind: KernelKind) -> KernelShare:
        """What kernels of this kind take on a GPU."""
        return cls.model_construct(**{**dict(gpu), "host": Host(operator_time=0)}, counted=kind)

    def on(self, host: Host) -> KernelShare:  # noqa: ARG002 - none counts
        """Itself, on any host."""
        return self

    def clocked(self, busy: Busy) -> KernelShare:
        """At the clock of the whole job."""
        return self.of(Gpu.model_construct(**dict(self)).clocked(busy), self.counted)

    def timer(self, dtype: DType) -> GpuTimer:
        """The GPU's own, of kernels that count."""
        return _ShareTimer(self, dtype, self.counted)


class _ShareTimer(GpuTimer):
    def __init__(self, gpu: Gpu, dtype: DType, counted: KernelKind) -> None:
        super().__init__(gpu, dtype)
        self._counted = counted

    def _kernel_ps(self, kernel: Kernel) -> int:
        return super()._kernel_ps(kernel) if kernel.kind is self._counted else 0
