"""An accelerator that the catalogue lacks."""

from __future__ import annotations

from cosim.plugins import Gpu

TPU = Gpu.model_validate(
    {
        "name": "TPU v5p",
        "peak_flops": {"bf16": 459e12},
        "memory_rate": "2765GB/s",
        "memory": "95GiB",
        "source": "cloud.google.com/tpu/docs/v5p",
    }
)
