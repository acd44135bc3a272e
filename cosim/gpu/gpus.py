"""GPUs: peak arithmetic and memory rate, each from its vendor's data sheet.

Peaks are dense (without structured sparsity), in FLOP/s with a multiply-add counted as two; matrix units
where a type has them. What a GPU reaches of its peaks are its ``efficiency``'s parameters. Not modelled:
clocks under power limits, caches.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt, field_validator

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.files import located_yaml
from cosim.gpu.contract import GpuSpec
from cosim.gpu.efficiency import Calibration, Efficiency
from cosim.spec import RateBps, SizeBytes

DType = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8"]

DTYPE_BYTES: dict[DType, int] = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
"""Bytes of one number in memory."""


class Gpu(GpuSpec):
    """A GPU of your own: peak FLOP/s by number type, and memory rate."""

    name: str = Field(default="custom", description="what reports call it")
    peak_flops: dict[DType, PositiveFloat] = Field(description="dense FLOP/s by number type, {bf16: 312e12}")
    memory_rate: RateBps = Field(description="of the GPU's own memory")
    memory: SizeBytes | None = Field(
        default=None, description="size of the GPU's own memory; omitted: nobody asks whether a job fits"
    )
    multiprocessors: PositiveInt = Field(default=108, description="streaming multiprocessors, compute units")
    source: str = Field(default="the scenario", description="where the numbers are from")
    efficiency: Efficiency = Field(
        default=Efficiency(), description="what it reaches of its peaks; the compute model's parameters"
    )
    calibration: Calibration | None = Field(
        default=None, description="what the efficiency was fitted to; omitted: nothing, it is uncalibrated"
    )

    @field_validator("peak_flops")
    @classmethod
    def _some(cls, value: dict[DType, float]) -> dict[DType, float]:
        if not value:
            raise ValueError("needs at least one number type, as in {bf16: 312e12}")
        return value

    def build(self, context: Context) -> Gpu:  # noqa: ARG002 - nothing is read
        """The GPU itself."""
        return self

    def about(self) -> str:
        """Its name, and where its numbers are from."""
        return f"{self.name}, {self.source}"

    def peak(self, dtype: DType) -> float:
        """Dense FLOP/s.

        Raises
        ------
        ValueError
            No peak known for the type.
        """
        if dtype not in self.peak_flops:
            raise ValueError(f"{self.name} has no {dtype}; it has {', '.join(sorted(self.peak_flops))}")
        return self.peak_flops[dtype]

    def trust(self, dtype: DType) -> str:
        """How far the compute model can be trusted for a number type, for a report's reader."""
        known = self.calibration
        if known is None:
            return "uncalibrated: the efficiencies are another GPU's"
        if dtype not in known.dtypes:
            return f"uncalibrated for {dtype} (calibrated for {', '.join(known.dtypes)} on {known.source})"
        return f"calibrated on {known.source}, +-{known.uncertainty:.0%}"

    def beside_collectives(self) -> str:
        """What computation is taken to lose beside a collective, for a report's reader."""
        if self.efficiency.interference:
            return f"computation beside a collective takes {self.efficiency.interference:.0%} longer"
        return (
            "computation beside a collective isn't slowed (interference: 0, uncalibrated; measured: "
            "19 % on average, up to 40 %, arXiv 2507.03114)"
        )


def _gpu(
    name: str,
    source: str,
    memory: str,
    size: str,
    multiprocessors: int,
    calibration: Calibration | None = None,
    **teraflops: float,
) -> Gpu:
    peaks = {dtype: round(value * 1e12) for dtype, value in teraflops.items()}
    return Gpu.model_validate(
        {
            "name": name,
            "source": source,
            "memory_rate": memory,
            "memory": size,
            "multiprocessors": multiprocessors,
            "peak_flops": peaks,
            "calibration": calibration,
        }
    )


MEGATRON_A100 = Calibration(
    source="774 iterations of Megatron-DeepSpeed on A100-80GB (vTrain's tables, arXiv 2312.12391)",
    dtypes=["fp16", "bf16"],
    uncertainty=0.12,
)
"""Root mean square error: 10 % in one host, 12 % over many; mean error of rows not seen: 7 % and 8 %."""

V100_SXM2 = _gpu(
    "V100-SXM2", "NVIDIA V100 datasheet (2020)", "900GB/s", "32GiB", 80, fp64=7.8, fp32=15.7, fp16=125
)
A100_40GB = _gpu(
    "A100-SXM4-40GB",
    "NVIDIA A100 datasheet (2021)",
    "1555GB/s",
    "40GiB",
    108,
    fp64=19.5,
    fp32=19.5,
    tf32=156,
    bf16=312,
    fp16=312,
)
A100_80GB = _gpu(
    "A100-SXM4-80GB",
    "NVIDIA A100 datasheet (2021)",
    "2039GB/s",
    "80GiB",
    108,
    MEGATRON_A100,
    fp64=19.5,
    fp32=19.5,
    tf32=156,
    bf16=312,
    fp16=312,
)
H100_SXM = _gpu(
    "H100-SXM5",
    "NVIDIA H100 Tensor Core GPU Architecture, v1.04, table 2",
    "3350GB/s",
    "80GiB",
    132,
    fp64=66.9,
    fp32=66.9,
    tf32=494.7,
    bf16=989.4,
    fp16=989.4,
    fp8=1978.9,
)
H200_SXM = _gpu(
    "H200-SXM",
    "NVIDIA H200 datasheet (2024); arithmetic as the H100",
    "4800GB/s",
    "141GiB",
    132,
    fp64=66.9,
    fp32=66.9,
    tf32=494.7,
    bf16=989.4,
    fp16=989.4,
    fp8=1978.9,
)
B200 = _gpu(
    "B200",
    "NVIDIA DGX B200 datasheet (2024), an eighth of the system, dense",
    "8000GB/s",
    "180GiB",
    148,
    fp64=37,
    fp32=75,
    tf32=1125,
    bf16=2250,
    fp16=2250,
    fp8=4500,
)
MI300X = _gpu(
    "MI300X",
    "AMD Instinct MI300X data sheet (2023)",
    "5300GB/s",
    "192GiB",
    304,
    fp64=163.4,
    fp32=163.4,
    tf32=653.7,
    bf16=1307.4,
    fp16=1307.4,
    fp8=2614.9,
)


LINK_RATE = {
    "V100-SXM2": 150e9,
    "A100-SXM4-40GB": 300e9,
    "A100-SXM4-80GB": 300e9,
    "H100-SXM5": 450e9,
    "H200-SXM": 450e9,
    "B200": 900e9,
    "MI300X": 448e9,
}
"""Bytes a second from a GPU to its peers, one way: half of what data sheets give for both."""

CATALOGUE = (V100_SXM2, A100_40GB, A100_80GB, H100_SXM, H200_SXM, B200, MI300X)
"""Every GPU above."""


class GpuTable(GpuSpec):
    """A GPU as `cosim calibrate` measured it."""

    path: str = Field(description="file that `cosim calibrate` wrote, relative to the scenario")

    def build(self, context: Context) -> Gpu:
        """The GPU in the file.

        Raises
        ------
        WorkloadError
            No file, or not such a table.
        """
        hint = "`cosim calibrate -o FILE` makes one"
        table = located_yaml.read(context.base / self.path, WorkloadError, hint=hint)
        return located_yaml.as_model(table, Gpu, WorkloadError, "gpu")
