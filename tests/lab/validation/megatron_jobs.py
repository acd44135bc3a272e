"""NVIDIA's Megatron-Bridge performance summary as workloads, and rows that can't be stated with why.

NVIDIA-NeMo/Megatron-Bridge, performance summary (Apache-2.0). What the table doesn't say is what its recipes
do: the distributed optimizer with gradients reduced in bf16 and both exchanges overlapped, sequence
parallelism, tensor-parallel overlap (by userbuffers, but with NVFP4) and CUDA graphs in dense models, and
what ``megatron_recipes`` says where there are experts. Where a row gives two values (two recipes), the first
counts. DeepSeek-V3 predicts a token ahead, unless the row says that it doesn't, and its layers are spread as
the recipes' ``layout_map`` has them. Models from their published configurations (Hugging Face). Hosts: DGX
H100, B200 and B300 with a NIC for each GPU (400, 400 and 800 Gbit/s), GB200 and GB300 racks of which a job
uses 64 GPUs' NVLink.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import Any

from cosim.models.catalogue.workload import ModelWorkload
from tests.inputs import find
from tests.lab.validation import megatron_recipes

TABLE = find("measured") / "training" / "megatron_bridge.csv"
GPUS = {
    "DGX-H100": "h100-sxm", "DGX-B200": "b200", "DGX-B300": "b300",
    "DGX-GB200": "gb200", "DGX-GB300": "gb300",
}  # fmt: skip
DOMAIN = {"h100-sxm": 8, "b200": 8, "b300": 8, "gb200": 64, "gb300": 64}
"""GPUs that share an NVLink domain, of those that a job has."""
NIC_BYTES = {"h100-sxm": 50e9, "b200": 50e9, "b300": 100e9, "gb200": 50e9, "gb300": 100e9}
LAYERS_OUT = {("LLAMA3_70B", "gb200"): 40, ("LLAMA3_70B", "gb300"): 20}
"""Layers whose activations wait in the host's memory (``cpu_offloading_num_layers``), of FP8 under FSDP."""
HOST_BYTES = {"gb200": 225e9, "gb300": 225e9}
"""A GPU's half of what NVLink-C2C carries each way (900 GB/s both ways: NVIDIA, "GB200 Grace Blackwell
Superchip" data sheet), which two GPUs share."""
RECIPES = {
    "BF16": None, "FP8": "fp8", "FP8-CS": "fp8", "FP8-MX": "mxfp8", "MXFP8": "mxfp8", "NVFP4": "nvfp4",
}  # fmt: skip
SQUAD = 180
"""Tokens of a paragraph, its question and its answer, about; 128 to 512 change an iteration by 1 %."""
MODELS: dict[str, Any] = {
    "LLAMA3_8B": "llama3-8b",
    "LLAMA3_70B": "llama3-70b",
    "LLAMA3.1_405B": "llama3-405b",
    "DeepSeekV3": "deepseek-v3",
    "Kimi_K2": {
        "kind": "transformer", "name": "Kimi K2", "layers": 61, "hidden": 7168, "heads": 64, "ffn": 18432,
        "vocabulary": 163840, "sequence": 4096,
        "experts": {"num": 384, "top_k": 8, "ffn": 2048, "shared": 1, "first_dense": 1},
        "latent": {"query_rank": 1536, "key_value_rank": 512, "nope": 128, "rope": 64, "value": 128},
    },
    "Qwen3_235B_a22B": {
        "kind": "transformer", "name": "Qwen3 235B", "layers": 94, "hidden": 4096, "heads": 64, "kv_heads": 4,
        "head_dim": 128, "head_norms": True, "ffn": 12288, "vocabulary": 151936, "sequence": 4096,
        "experts": {"num": 128, "top_k": 8, "ffn": 1536},
    },
    "Qwen3_30B_a3B": {
        "kind": "transformer", "name": "Qwen3 30B", "layers": 48, "hidden": 2048, "heads": 32, "kv_heads": 4,
        "head_dim": 128, "head_norms": True, "ffn": 6144, "vocabulary": 151936, "sequence": 4096,
        "experts": {"num": 128, "top_k": 8, "ffn": 768},
    },
    "Nemotron_3_Nano": "nemotron-3-nano",
    "Nemotron_3_5_Lightning": {
        "kind": "nemotron-3-nano", "name": "Nemotron 3.5 Lightning", "ahead": 2, "ahead_pattern": "*E",
        "ahead_shared": True,
    },
    "Nemotron_3_Super": {"kind": "nemotron-3-super", "ahead": 2},
    "Nemotron_3_Ultra": {"kind": "nemotron-3-ultra", "ahead": 2},
    "GPT OSS 120B": {
        "kind": "transformer", "name": "GPT-OSS 120B", "layers": 36, "hidden": 2880, "heads": 64,
        "kv_heads": 8, "head_dim": 64, "scaled_positions": True, "ffn": 2880, "vocabulary": 201088,
        "sequence": 4096, "window": 128, "window_every": 2,
        "experts": {"num": 128, "top_k": 4, "ffn": 2880, "biases": True, "clamped": True},
    },
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A measured job: its columns."""

    job: dict[str, str]

    def number(self, name: str) -> int:
        """A column; of two values the first, 1 where there is none."""
        found = re.match(r"\d+", self.job[name])
        return int(found[0]) if found else 1

    @property
    def model(self) -> str:
        """Without what stands in brackets."""
        return self.job["model"].split(" (")[0]

    @property
    def gpu(self) -> str:
        """By the catalogue's name."""
        return GPUS[self.job["gpu"]]

    @property
    def recipe(self) -> str | None:
        """By the scenario's name."""
        return RECIPES[self.job["precision"].split(" (")[0]]

    @property
    def has_experts(self) -> bool:
        """Its layers have experts."""
        return not self.model.startswith("LLAMA")

    @property
    def family(self) -> str:
        """GPU, dense or experts."""
        return f"{self.gpu} {'experts' if self.has_experts else 'dense'}"

    @property
    def group(self) -> str:
        """GPU, dense or experts, number type."""
        return f"{self.family} {self.recipe or 'bf16'}"

    @property
    def gpus(self) -> int:
        """In all."""
        return self.number("gpus")

    @property
    def replicas(self) -> int:
        """Data-parallel ranks."""
        return self.gpus // (self.number("tp") * self.number("pp") * self.number("cp"))

    @property
    def release(self) -> str:
        """Of NeMo."""
        found = re.search(r"NeMo (\d+\.\d+)", self.job["extra"])
        assert found is not None, self.job
        return found[1]

    @property
    def layout(self) -> tuple[int, ...] | None:
        """Layers of each part of the pipeline, where the recipe doesn't spread them evenly."""
        parts = self.number("pp") * self.number("vp")
        each = {32: 2, 16: 4, 8: 8, 4: 16}.get(parts)
        if self.model not in ("DeepSeekV3", "Kimi_K2") or each is None:
            return None
        if each == 2:
            return (1, *[2] * 30, 0)
        return (*[each] * (parts - 1), 61 - each * (parts - 1))

    @property
    def seconds(self) -> float:
        """Of an iteration."""
        tokens = self.number("gbs") * self.number("seq")
        return tokens / (self.number("tokens_s_gpu") * self.gpus)

    @property
    def micro_batches(self) -> int:
        """Of a replica."""
        return self.number("gbs") // (self.replicas * self.number("mbs"))

    def why_not(self) -> str:
        """Why it can't be stated; nothing where it can."""
        if self.model.startswith("DeepSeekV4"):
            return "compressed sparse attention and hyper-connections: the catalogue has neither"
        if self.model not in MODELS:
            return "no sizes of that model are written down here"
        if "LoRA" in self.job["extra"]:
            return "low-rank adapters beside frozen weights: the catalogue has none"
        if self.micro_batches == 0 or self.number("gbs") % (self.replicas * self.number("mbs")):
            return "the batch doesn't divide over replicas and micro-batches"
        if self.number("vp") > 1 and self.micro_batches % self.number("pp"):
            return "interleaved micro-batches don't come in whole rounds of stages"
        return ""


def rows() -> list[Row]:
    """Every row of the table."""
    with TABLE.open(newline="") as file:
        return [Row(line) for line in csv.DictReader(file)]


def settings(row: Row, micro_batches: int | None = None) -> dict[str, Any]:
    """The workload; of ``micro_batches``, where not as many as the row has."""
    sharded = row.job["fsdp"].split(" ")[0] not in ("", "0", "1")
    count = micro_batches or row.micro_batches
    parallel: dict[str, Any] = {"tp": row.number("tp"), "pp": row.number("pp"), "cp": row.number("cp")}
    parallel |= {"fsdp" if sharded else "dp": row.replicas, "ep": row.number("ep")}
    if (
        row.model == "Nemotron_3_Ultra"
    ):  # sharded among a rack's GPUs, as _apply_nemotron_3_ultra_fsdp_hsdp has it
        sharded, parallel = True, parallel | {"fsdp": 64, "dp": row.replicas // 64}
    if row.has_experts and row.number("tp") > 1:
        parallel["etp"] = 1  # expert_tensor_parallel_size of every recipe
    if row.number("vp") > 1 and row.number("pp") > 1:
        parallel |= {"schedule": "interleaved", "virtual_stages": row.number("vp")}
    if row.layout is not None:
        parallel["layout"] = row.layout
    framework: dict[str, Any] = {
        "kind": "megatron",
        "overlap_param_gather": not sharded,
        "accumulation_fusion": not sharded,  # Megatron-FSDP has none
        "fused_loss": True,
    }
    found: dict[str, Any] = {
        "model": MODELS[row.model], "gpu": row.gpu, "parallel": parallel,
        "sequence": row.number("seq"), "micro_batch": row.number("mbs"),
        "batch": count * row.replicas * row.number("mbs"), "gradient_dtype": "bf16", "bucket": "256MiB",
        "cuda_graphs": True, "memory": "ignore",
    }  # fmt: skip
    if row.model == "DeepSeekV3" and "w/o MTP" not in row.job["model"]:
        found["model"] = {"kind": "deepseek-v3", "ahead": 1}
    if row.model.startswith("LLAMA"):
        if row.number("tp") > 1:
            framework["tp_comm_overlap"] = row.recipe != "nvfp4"  # llama31_llm_pretrain.py
            framework["overlap_input_gradients"] = True
        if "SFT" in row.job["extra"]:  # llama3_llm_finetune.py
            found |= {"packed": SQUAD, "cuda_graphs": False}
            framework["graphs"] = ["mlp"]
    else:
        names = {name: row.number(name) for name in megatron_recipes.LAYOUT}
        precision = row.job["precision"].split(" (")[0]
        recipe = megatron_recipes.of(
            row.model, row.job["gpu"].removeprefix("DGX-"), precision, row.release, names
        )
        if recipe is not None:
            ranks = row.number("ep")
            more = megatron_recipes.settings(recipe, ranks=ranks, domain=DOMAIN[row.gpu])
            framework |= more.pop("framework") | {"padded_experts": "tokendrop" in row.job["model"]}
            found |= more
    if row.model.startswith("Nemotron"):
        framework |= _of_nemotron(row)
    found["framework"] = framework
    if sharded and (layers := LAYERS_OUT.get((row.model, row.gpu))):
        found["offload"] = {
            **dict.fromkeys(("optimizer", "gradients", "parameters"), "local"),
            "activations": layers,
        }
    if not sharded and row.replicas > 1:
        found["sharded_optimizer"] = True
    if row.recipe:
        found["recipe"] = row.recipe
    return found


def _of_nemotron(row: Row) -> dict[str, Any]:
    """What its recipes run in other types than the rest (``te_quant.cfg``, ``mixed_precision.py``)."""
    found: dict[str, Any] = {}
    if row.number("tp") > 1:
        found["overlap_input_gradients"] = True
    if row.recipe == "fp8":
        found["wide_layers"] = (1, 1)
    if row.recipe == "nvfp4":
        found["wide_layers"] = (0, 14)
        found["recipes"] = {"attention": "none", "latent": "none", "ahead": "none", "mamba_out": "mxfp8"}
    return found


def workload(row: Row, micro_batches: int | None = None) -> ModelWorkload:
    """As kind ``model``."""
    return ModelWorkload.model_validate(settings(row, micro_batches))
