"""The compute model's parameters: what a GPU reaches of its data sheet.

Each is physical, with a unit and bounds, and stands with a GPU in the catalogue. ``Calibration`` says what
the values were fitted to and how far off they were there; a GPU without one is uncalibrated, and says so.

The defaults are an A100's under PyTorch and Megatron-DeepSpeed, fitted to 774 measured iteration times
(``python -m tests.lab.validation.fit``): matmul_peak, matmul_depth, unaligned, memory_peak, kernel_time, and
the host ``unknown``. Tiles are cuBLAS' usual ones, attention_peak is FlashAttention-2's on an A100 (Dao,
arXiv 2307.08691, figure 4, forward and backward); neither is fitted. Nor is interference: no iteration
measured here overlaps the two. `cosim calibrate` measures it; on four A100s, H100s, MI250s and MI210s
computation was slowed by 18.9 % on average, at most by 40 % (Lee et al., "Characterizing
Compute-Communication Overlap in GPU-Accelerated Distributed Deep Learning", arXiv 2507.03114).
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from cosim.registry import located
from cosim.spec import Spec, TimePs

_HOSTS = {"host_time": "operator_time", "gap_time": "gap_time", "step_time": "step_time"}
"""What a host calls them."""


OUTSIDE = 0.06
"""Relative error, one sigma, that is added in squares to jobs unlike those that a number is from: of another
framework, or of a preset on another GPU or with other settings.
"""


class Calibration(Spec):
    """What a GPU's efficiencies were fitted to."""

    source: str = Field(description="the measurements")
    dtypes: list[str] = Field(description="number types that were measured")
    uncertainty: PositiveFloat = Field(description="relative error of an iteration time, one sigma")
    framework: str | None = Field(
        None, description="whose jobs were measured: another's are known 6 % less well; omitted: any"
    )
    experts: PositiveFloat | None = Field(
        None, description="the same of jobs with experts; omitted: as of others"
    )
    common: float = Field(
        0.7, ge=0, le=1, description="part of it that jobs of this GPU share (of the variance, the square)"
    )


class Efficiency(Spec):
    """What a GPU reaches of its peaks, and what each kernel costs beside its work."""

    matmul_peak: float = Field(
        0.82, ge=0.3, le=1, description="fraction of peak FLOP/s of a large matrix product (clocks, issue)"
    )
    matmul_depth: float = Field(
        236,
        ge=0,
        le=4096,
        description="inner size, of 16-bit numbers, that takes as long as filling and draining a matrix "
        "product's tile",
    )
    matmul_overlap: bool = Field(
        False,
        description="whether a tile fills and drains while another one computes, as on Hopper and newer",
    )
    unaligned: float = Field(
        0.446,
        ge=0.1,
        le=1,
        description="fraction of its rate that a product reaches if its rows aren't multiples of 16 bytes",
    )
    ragged_rows: float = Field(
        0.0,
        ge=0,
        le=4096,
        description="rows that a product of narrow operands seems to have more, if it has over 256 and no "
        "multiple of 16",
    )
    fp8_peak: float | None = Field(
        None, ge=0.1, le=1, description="matmul_peak of FP8 products; omitted: as of others"
    )
    fp4_peak: float | None = Field(
        None, ge=0.1, le=1, description="matmul_peak of FP4 products; omitted: as of others"
    )
    fp8_training: float | None = Field(
        None,
        ge=0.1,
        le=1,
        description="fp8_peak with a training's library, where benchmarks had another; omitted: the same",
    )
    fp8_panel: int = Field(
        0,
        ge=0,
        le=1 << 20,
        description="columns (or rows) of a benchmark's FP8 product for each of which an operand that "
        "outgrows the cache passes memory again; 0: it doesn't",
    )
    fp4_panel: int = Field(0, ge=0, le=1 << 20, description="the same of FP4 products")
    panel_rows: int = Field(
        0,
        ge=0,
        le=1 << 20,
        description="rows below which it does, where there are more columns than rows: the order of other "
        "products' tiles keeps them in the cache; 0: of all products",
    )
    fp4_rows: PositiveInt = Field(
        1, description="rows of FP4 products' tiles, which are filled up to a multiple of so many"
    )
    tiles: tuple[tuple[PositiveInt, PositiveInt], ...] = Field(
        ((128, 128),),
        min_length=1,
        description="rows and columns of a matrix product's tiles: the library takes what is fastest",
    )
    split_inner: int = Field(
        1, ge=1, le=16, description="parts that a product's inner size may be split into, a power of two"
    )
    attention_peak: float = Field(
        0.55,
        ge=0.1,
        le=1,
        description="fraction of peak FLOP/s of fused attention forward, long sequences, heads of 128",
    )
    attention_backward: float = Field(
        1.25, ge=0.3, le=1.5, description="attention's rate in backward as a fraction of forward's"
    )
    causal_saves: float = Field(
        0.0, ge=0, le=1, description="fraction of the scores under a causal mask that attention skips"
    )
    flash2: float = Field(
        1.0, ge=0.2, le=1, description="fraction of attention_peak that FlashAttention-2 reaches"
    )
    triton: float = Field(
        0.70,
        ge=0.1,
        le=1,
        description="fraction of FlashAttention-2's rate that Triton's reaches (llm-foundry's jobs on A100)",
    )
    attention_ramp: float = Field(
        0.0, ge=0, le=4096, description="keys that a sequence of attention seems longer: loops that fill"
    )
    attention_head: float = Field(
        0.0, ge=0, le=512, description="size of a head at which attention is half as fast: exponentials"
    )
    attention_tile: int = Field(
        0, ge=0, le=1 << 16, description="numbers of the queries of one block of attention; 0: evenly spread"
    )
    attention_sorted: bool = Field(
        True,
        description="under a causal mask its longest blocks go first (FlashAttention-3); or in any order",
    )
    scan_peak: float = Field(
        0.25,
        ge=0.02,
        le=1,
        description="fraction of peak FLOP/s of the products within a state space's chunks (Mamba-2's kernels"
        " in Triton); assumed, and of no account from 0.15 on, where memory takes longer",
    )
    memory_peak: float = Field(
        0.759, ge=0.3, le=1, description="fraction of the memory rate that element-wise kernels reach"
    )
    memory_training: float | None = Field(
        None,
        ge=0.2,
        le=1,
        description="memory_peak of element-wise kernels in a training, where benchmarks are of products; "
        "omitted: the same",
    )
    element_rate: float | None = Field(
        None,
        ge=1e8,
        le=1e11,
        description="elements a second that each multiprocessor finds one by one, in PyTorch's element-wise "
        "kernels on operands that lie in memory differently or are of several types; omitted: as fast as "
        "memory has them",
    )
    kernel_time: TimePs = Field(
        11_000_000,
        ge=0,
        le=50_000_000,
        description="of the GPU for each kernel, beside its work (ramp, tail)",
    )
    sustained_clock: float = Field(
        1.0,
        ge=0.4,
        le=1,
        description="clock in an hour of training as a fraction of a kernel's alone: the power limit",
    )
    arithmetic_power: float | None = Field(
        None,
        ge=1,
        le=1e5,
        description="watts that large products would take at the rate they have alone, if nothing held them "
        "back; given with memory_power and the GPU's power, each job has a clock of its own "
        "(sustained_clock: a fraction of that)",
    )
    memory_power: float | None = Field(
        None, ge=1, le=1e5, description="watts while the memory is what a kernel waits for"
    )
    interference: float = Field(
        0.0,
        ge=0,
        le=1,
        description="how much longer a computation takes while a collective runs on the GPU; "
        "arXiv 2507.03114: 0.19 on average, up to 0.40 (A100, H100, MI250, MI210)",
    )

    @model_validator(mode="after")
    def _both_powers(self) -> Efficiency:
        if (self.arithmetic_power is None) != (self.memory_power is None):
            raise ValueError("arithmetic_power and memory_power go together: give both, or neither")
        return self

    @model_validator(mode="before")
    @classmethod
    def _without_the_hosts(cls, value: Any) -> Any:
        """Refuse what had been the GPU's and is its host's, with what to write."""
        if isinstance(value, dict) and (said := {key: value[key] for key in _HOSTS if key in value}):
            times = ", ".join(f"{_HOSTS[key]}: {time}" for key, time in said.items())
            text = f"is no GPU's but its host's: write `host: {{kind: custom, {times}}}` beside `gpu`"
            first = next(iter(said))
            raise located("Efficiency", [((first,), f"{first} {text}", said[first])])
        return value

    def written(self) -> dict[str, Any]:
        """As a file writes it: times with their unit."""
        values = self.model_dump()
        return {name: f"{value}ps" if name.endswith("_time") else value for name, value in values.items()}
