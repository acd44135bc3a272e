"""The compute model's parameters: what a GPU reaches of its data sheet, and what a framework adds.

Each is physical, with a unit and bounds, and stands with a GPU in the catalogue. ``Calibration`` says what
the values were fitted to and how far off they were there; a GPU without one is uncalibrated, and says so.

The defaults are an A100's under PyTorch and Megatron-DeepSpeed, fitted to 774 measured iteration times
(``python -m tests.validation.fit``): matmul_peak, matmul_depth, unaligned, memory_peak, kernel_time,
host_time and step_time. Tiles are cuBLAS' usual ones, attention_peak is FlashAttention-2's on an A100 (Dao,
arXiv 2307.08691, figure 4, forward and backward); neither is fitted. Nor is interference: no iteration
measured here overlaps the two. `cosim calibrate` measures it; on four A100s, H100s, MI250s and MI210s
computation was slowed by 18.9 % on average, at most by 40 % (Lee et al., "Characterizing
Compute-Communication Overlap in GPU-Accelerated Distributed Deep Learning", arXiv 2507.03114).
"""

from __future__ import annotations

from pydantic import Field, PositiveFloat

from cosim.spec import Spec, TimePs


class Calibration(Spec):
    """What a GPU's efficiencies were fitted to."""

    source: str = Field(description="the measurements")
    dtypes: list[str] = Field(description="number types that were measured")
    uncertainty: PositiveFloat = Field(description="relative error of an iteration time, one sigma")


class Efficiency(Spec):
    """What a GPU reaches of its peaks, and what each kernel costs beside its work."""

    matmul_peak: float = Field(
        0.82, ge=0.3, le=1, description="fraction of peak FLOP/s of a large matrix product (clocks, issue)"
    )
    matmul_depth: float = Field(
        236, ge=0, le=4096, description="inner size at which a matrix product's tiles reach half of that rate"
    )
    unaligned: float = Field(
        0.446,
        ge=0.1,
        le=1,
        description="fraction of its rate that a product reaches if its rows aren't multiples of 16 bytes",
    )
    tile_rows: int = Field(128, ge=16, le=512, description="rows of a matrix product's tile")
    tile_columns: int = Field(128, ge=16, le=512, description="columns of a matrix product's tile")
    attention_peak: float = Field(
        0.55, ge=0.1, le=1, description="fraction of peak FLOP/s of fused attention"
    )
    memory_peak: float = Field(
        0.759, ge=0.3, le=1, description="fraction of the memory rate that element-wise kernels reach"
    )
    kernel_time: TimePs = Field(
        11_000_000,
        ge=0,
        le=50_000_000,
        description="of the GPU for each kernel, beside its work (ramp, tail)",
    )
    host_time: TimePs = Field(
        51_700_000,
        ge=0,
        le=200_000_000,
        description="of the host to issue one operator; 0s: never waited for",
    )
    step_time: TimePs = Field(
        4_560_000_000,
        ge=0,
        le=200_000_000_000,
        description="of the host for an iteration, beside operators (logs, scaling)",
    )
    interference: float = Field(
        0.0,
        ge=0,
        le=1,
        description="how much longer a computation takes while a collective runs on the GPU; "
        "arXiv 2507.03114: 0.19 on average, up to 0.40 (A100, H100, MI250, MI210)",
    )
