"""A GPU by its data sheet, its clock as a setting."""

from pydantic import Field

from cosim.plugins import Efficiency, Gpu, GpuSpec


class Clocked(GpuSpec):
    """An accelerator of ours: 400 bf16 TFLOP/s at 1.5 GHz"""

    clock: float = Field(1.5, gt=0, description="GHz, which its arithmetic goes by")

    def build(self, context):
        return Gpu(
            name=f"ours at {self.clock:g} GHz",
            peak_flops={"bf16": 400e12 * self.clock / 1.5, "fp32": 50e12 * self.clock / 1.5},
            memory_rate="3TB/s",
            memory="96GiB",
            source="our data sheet",
            efficiency=Efficiency(matmul_peak=0.75),
        )
