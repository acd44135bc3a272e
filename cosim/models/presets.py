"""Training scripts by name and date: what they set that a scenario would have to say.

``preset: torchtitan-2024-12`` fills in what that version does: attention, norm, optimizer, prefetch,
recomputation. A scenario's own settings hold before it. Each has where it is from, and the GPUs whose jobs it
was held against. An interval widens by :data:`~cosim.gpu.efficiency.OUTSIDE` on any other GPU, and by as much
again where a setting of the preset is another.
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
    "transformers-4.57",
    "megatron-lm-2021",
    "megatron-lm-2024",
    "megatron-bridge-26.06",
    "megatron-bridge-26.08",
    "vllm-0.19",
]
ENGINE = 0.087
"""One sigma of a decode step's error where no engine is named: 58 of TensorRT-LLM
(``tests.lab.validation.decode``).
"""


@dataclass(frozen=True)
class Preset:
    """Settings of a workload and of its framework; ``held``: what it was held against, on which ``gpus``;
    ``error``: what its jobs were off by beyond the GPU's own, one sigma: 0 where the GPU was fitted to them.
    ``serves``: it makes tokens, others train.
    """

    source: str
    held: str
    gpus: tuple[str, ...]
    error: float
    framework: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    serves: bool = False


_COMPOSER: dict[str, Any] = {
    "kind": "pytorch",
    "fsdp_version": 1,
    "parameter_dtype": "fp32",
    "fused_qkv": True,
    "fused_loss": True,
    "metrics": 2,
    "stalls": 0.00028,
}
_BRIDGE: dict[str, Any] = {
    "kind": "megatron",
    "overlap_param_gather": True,
    "accumulation_fusion": True,
    "fused_loss": True,
    "tp_comm_overlap": True,
    "overlap_input_gradients": True,
}
_BRIDGE_JOB: dict[str, Any] = {
    "gradient_dtype": "bf16",
    "bucket": "256MiB",
    "cuda_graphs": True,
    "sharded_optimizer": True,
}
_FOUNDRY = "mosaicml/llm-foundry, scripts/train/benchmarking (Apache-2.0)"
PRESETS: dict[PresetName, Preset] = {
    "torchtitan-2024-12": Preset(
        "pytorch/torchtitan (BSD-3-Clause) of 2024-12, train_configs/llama3_8b.toml, models/norms.py; fused"
        " AdamW; scaled_dot_product_attention takes FlashAttention-2",
        "Llama 3 8B on 8 H100s of 500 W, eager and compiled: -4.4 and -5.4 %",
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
        _BRIDGE,
        _BRIDGE_JOB,
    ),
    "megatron-bridge-26.08": Preset(
        "NVIDIA-NeMo/Megatron-Bridge v0.6.0 (Apache-2.0), perf_recipes of dense models: as 26.06, each recipe"
        " with its own CUDA graphs (whole iterations of 8B on Blackwell; elsewhere say cuda_graphs: false)",
        "nothing: all rows of 26.08 that are given have experts",
        (),
        0.0,
        _BRIDGE,
        _BRIDGE_JOB,
    ),
    "megatron-lm-2021": Preset(
        "NVIDIA/Megatron-LM (BSD-3-Clause) of 2021, megatron/training.py and model/distributed.py: with"
        " --DDP-impl local gradients are all-reduced once backward has ended; --checkpoint-activations",
        "22B to 1T of arXiv 2205.05198 with full recomputation on A100s, one replica each: +3.5 to +7.9 %",
        ("a100-80gb",),
        0.0,
        {"kind": "megatron"},
        {"attention": "unfused", "recompute": "full", "overlap_gradients": False},
    ),
    "megatron-lm-2024": Preset(
        "NVIDIA/Megatron-LM (BSD-3-Clause), README of 2024-07 (core 0.7), scaling runs: --use-distributed-"
        "optimizer --overlap-grad-reduce --overlap-param-gather --tp-comm-overlap; arguments.py: gradients in"
        " fp32, buckets of 40 M, --gradient-accumulation-fusion, the loss in torch's operators",
        "nothing: the README's throughputs have no row in the given tables",
        (),
        0.0,
        {key: value for key, value in _BRIDGE.items() if key != "fused_loss"},
        {"gradient_dtype": "fp32", "bucket": "160MB", "sharded_optimizer": True},
    ),
    "vllm-0.19": Preset(
        "vllm-project/vllm v0.19 (Apache-2.0), config/compilation.py: decode steps are whole CUDA graphs"
        " (FULL_AND_PIECEWISE), the GPU's newest attention",
        "43 decode steps of Llama 3.1 and Qwen3 32B on H100, A100, RTX 4090 and RTX PRO 6000: mean 4.8 %",
        ("h100-sxm", "a100-40gb", "rtx-4090", "rtx-pro-6000"),
        0.0,
        {"kind": "megatron"},
        {"attention": "flash", "cuda_graphs": True},
        serves=True,
    ),
    "transformers-4.57": Preset(
        "huggingface/transformers v4.57 (Apache-2.0), training_args.py and modeling_llama.py under PyTorch"
        " 2.8 and later: fused AdamW, gradients clipped, norms in operators, positions by slices;"
        " accelerate's FSDP is version 1, and doesn't prefetch (here: late)",
        "nothing: no training of it is in the given tables",
        (),
        0.0,
        {
            "kind": "pytorch",
            "norm": "written",
            "rotary": "sliced",
            "optimizer": "fused",
            "fsdp_version": 1,
            "backward_prefetch": "late",
        },
        {"attention": "flash2"},
    ),
}


def filled(given: Mapping[str, Any]) -> dict[str, Any]:
    """A workload's settings as a scenario says them, with its preset's where it says nothing.

    Raises
    ------
    ValueError
        No such preset, a framework that its script isn't written in, or a task that it doesn't do.
    """
    name = given["preset"]
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"no preset is called {name}; there are {', '.join(get_args(PresetName))}")
    preset, framework = PRESETS[name], given.get("framework", {})
    task = given.get("task", "training")
    if preset.serves == (task == "training"):
        does = "serves: `task: decode`, or leave it out" if preset.serves else "trains: leave one of them out"
        raise ValueError(f"preset {name} and task {task} don't go together, its script {does}")
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
