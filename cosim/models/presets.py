"""Training scripts by name and date: what they set that a scenario would have to say.

``preset: torchtitan-2024-12`` fills in what that version does: attention, norm, optimizer, prefetch,
recomputation. A scenario's own settings hold before it. Each has where it is from, and the GPUs whose jobs it
was held against; an interval widens by :data:`OUTSIDE` on any other, and by as much again where a setting of
the preset is another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

PresetName = Literal[
    "torchtitan-2024-12",
    "llm-foundry-2023-05",
    "llm-foundry-2023-10",
    "llm-foundry-2024-01",
    "megatron-bridge-26.06",
]
OUTSIDE = 0.06
"""Relative error of an iteration, one sigma, that is added in squares."""


@dataclass(frozen=True)
class Preset:
    """Settings of a workload and of its framework; ``held``: what it was held against, on which ``gpus``;
    ``error``: what its jobs were off by beyond the GPU's own, one sigma: 0 where the GPU was fitted to them.
    """

    source: str
    held: str
    gpus: tuple[str, ...]
    error: float
    framework: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)


_COMPOSER: dict[str, Any] = {
    "kind": "pytorch",
    "fsdp_version": 1,
    "parameter_dtype": "fp32",
    "fused_qkv": True,
    "fused_loss": True,
    "metrics": 2,
    "stalls": 0.00028,
}
_FOUNDRY = "mosaicml/llm-foundry, scripts/train/benchmarking (Apache-2.0)"
PRESETS: dict[PresetName, Preset] = {
    "torchtitan-2024-12": Preset(
        "pytorch/torchtitan (BSD-3-Clause) of 2024-12, train_configs/llama3_8b.toml, models/norms.py; fused"
        " AdamW; scaled_dot_product_attention takes FlashAttention-2",
        "Llama 3 8B on 8 H100s of 500 W, eager and compiled: -4.5 and -5.5 %",
        ("h100-sxm",),
        0.05,
        {"kind": "pytorch", "norm": "written", "optimizer": "fused"},
        {"attention": "flash2", "recompute": "selective"},
    ),
    "llm-foundry-2023-05": Preset(
        f"{_FOUNDRY}, README of 2023-05: PyTorch 1.13, Triton's attention, Composer's BACKWARD_POST",
        "MPT jobs of the README on A100s and H100s",
        ("a100-40gb", "a100-80gb", "h100-sxm"),
        0.0,
        {**_COMPOSER, "backward_prefetch": "late", "early_stop": False},
        {"attention": "triton"},
    ),
    "llm-foundry-2023-10": Preset(
        f"{_FOUNDRY}, sweep.sh of 2023-10: PyTorch 2.1, the rest as in 2023-05",
        "MPT jobs of the README on A100s and H100s",
        ("a100-40gb", "a100-80gb", "h100-sxm"),
        0.0,
        {**_COMPOSER, "backward_prefetch": "late"},
        {"attention": "triton"},
    ),
    "llm-foundry-2024-01": Preset(
        f"{_FOUNDRY}, sweep.py of 2024-01 with --attn_impl flash: BACKWARD_PRE, forward_prefetch,"
        " FlashAttention-2 with bert_padding",
        "MPT jobs of the README on 128 H100s and more",
        ("h100-sxm",),
        0.0,
        {**_COMPOSER, "forward_prefetch": True, "unpadded": True},
        {"attention": "flash2"},
    ),
    "megatron-bridge-26.06": Preset(
        "NVIDIA-NeMo/Megatron-Bridge v0.5.0 (Apache-2.0), recipes of dense models: the distributed optimizer,"
        " gradients reduced in bf16, both exchanges overlapped, CUDA graphs",
        "Llama 3 jobs of its performance summary, H100 to GB300",
        ("h100-sxm", "b200", "b300", "gb200", "gb300"),
        0.0,
        {
            "kind": "megatron",
            "overlap_param_gather": True,
            "accumulation_fusion": True,
            "fused_loss": True,
            "tp_comm_overlap": True,
            "overlap_input_gradients": True,
        },
        {
            "gradient_dtype": "bf16",
            "bucket": "256MiB",
            "cuda_graphs": True,
            "sharded_optimizer": True,
        },
    ),
}


def filled(given: Mapping[str, Any]) -> dict[str, Any]:
    """A workload's settings as a scenario says them, with its preset's where it says nothing.

    Raises
    ------
    ValueError
        No such preset, or a framework that its script isn't written in.
    """
    name = given["preset"]
    if name not in PRESETS:
        raise ValueError(f"no preset is called {name}; there are {', '.join(get_args(PresetName))}")
    preset, framework = PRESETS[name], given.get("framework", {})
    kind = preset.framework["kind"]
    if isinstance(framework, str):
        framework = {"kind": framework}
    if not isinstance(framework, Mapping):  # made already, of such settings
        return {**preset.settings, **given}
    if framework.get("kind", kind) != kind:
        raise ValueError(
            f"preset {name} is a script of framework {kind}, and framework {framework['kind']} is given too:"
            " leave one of them out"
        )
    return {**preset.settings, **given, "framework": {**preset.framework, **framework}}
