"""MosaicML's MPT jobs under FSDP as workloads: what llm-foundry's scripts and the table's headings say.

``benchmarking/README.md`` of mosaicml/llm-foundry (Apache-2.0): MPT models of llm-foundry's ``mpt/*.yaml``,
no biases, one matrix for queries, keys and values, tied embeddings, vocabulary of 50,368; hosts of 8 GPUs,
1,600 Gbit/s (A100) or 3,200 Gbit/s (H100). Sharding, checkpointing of whole blocks and precision are columns;
``MP PURE`` reduces gradients in bf16, ``DEFAULT`` in fp32; gradients are clipped. FP8 is Transformer Engine's
linear layers. Composer's FSDP is FSDP1; the benchmarks set ``limit_all_gathers``
(``benchmarking/submit_benchmarks.py``). Three rounds of them differ (docs/validation/fsdp.md):

- 2023-05 (precision ``bf16``), PyTorch 1.13: Triton's attention, Composer's ``BACKWARD_POST``; blocks that
  are checkpointed run again to their end.
- 2023-10, ``sweep.sh``, PyTorch 2.1: the same, but that they end early.
- 2024-01, ``sweep.py``, 128 H100s and more: ``BACKWARD_PRE`` and ``forward_prefetch``; four models with
  FlashAttention-2, and flash-attn's ``bert_padding`` round it (``layers/attention.py`` until "Precompute
  flash attention padding info", 2024-01-17). ``MP`` is the table's, where ``sweep.py`` has ``PURE``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Any

from cosim.models.catalogue.workload import ModelWorkload
from tests.inputs import find

TABLE = find("measured") / "training" / "llm_foundry_fsdp.csv"
SIZES = {
    "MPT-125m": (12, 768, 12), "MPT-350m": (24, 1024, 16), "MPT-760m": (24, 1536, 12),
    "MPT-1b": (24, 2048, 16), "MPT-3b": (32, 2560, 20), "MPT-7b": (32, 4096, 32), "MPT-13b": (40, 5120, 40),
    "MPT-30b": (48, 7168, 56), "MPT-70b": (80, 8192, 64),
}  # fmt: skip
"""Layers, hidden size, heads."""
LARGE = 128
"""H100s from which on jobs were run by ``benchmarking/sweep.py`` (2024-01), with settings of its own."""
FLASH = ("MPT-1b", "MPT-3b", "MPT-7b", "MPT-70b")
"""Models of those that it gives ``--attn_impl flash``; all else has Triton's."""
GPUS = {"a100_40gb": "a100-40gb", "a100_80gb": "a100-80gb", "h100_80gb": "h100-sxm"}


@dataclass(frozen=True)
class Row:
    """A measured job: its columns, seconds of an iteration, and its group."""

    job: dict[str, str]
    seconds: float
    has_experts: bool = False

    @property
    def group(self) -> str:
        """GPU and precision."""
        return f"{self.job['gpu'].split('_')[0]}{' fp8' if 'fp8' in self.job['precision'] else ''}"

    @property
    def family(self) -> str:
        """By the catalogue's name."""
        return self.gpu

    @property
    def gpus(self) -> int:
        """In all."""
        return int(self.job["gpus"])

    @property
    def gpu(self) -> str:
        """By the catalogue's name."""
        return GPUS[self.job["gpu"]]


def rows() -> list[Row]:
    """Every row of the table."""
    with TABLE.open(newline="") as file:
        return [Row(line, _seconds(line)) for line in csv.DictReader(file)]


def _seconds(line: dict[str, str]) -> float:
    return int(line["gbs"]) * int(line["seq"]) / (float(line["tokens_s_gpu"]) * int(line["gpus"]))


def settings(row: Row, micro_batches: int | None = None) -> dict[str, Any]:
    """The workload; of ``micro_batches``, where not as many as the row has."""
    job = row.job
    layers, hidden, heads = SIZES[job["model"]]
    fp8 = "fp8" in job["precision"]
    micro_batch, count = int(job["mbs"]), micro_batches or int(job["ga"])
    large = "h100" in job["gpu"] and row.gpus >= LARGE
    flash = job["model"] in FLASH
    old, again = job["precision"] == "bf16", job["activation_checkpointing"] == "True"
    found: dict[str, Any] = {
        "model": {
            "kind": "transformer", "name": job["model"], "layers": layers, "hidden": hidden, "heads": heads,
            "ffn": 4 * hidden, "gated": False, "vocabulary": 50368, "sequence": int(job["seq"]),
            "positions": int(job["seq"]), "tied": True, "norm": "layer",
        },
        "gpu": row.gpu,
        "parallel": {"fsdp": row.gpus, "reshard": "FULL_SHARD" in job["extra"]},
        "preset": f"llm-foundry-{'2023-05' if old else '2024-01' if large else '2023-10'}",
        "gradient_dtype": "bf16" if "PURE" in job["extra"] else "fp32",
        "recompute": "full" if again else "none",
        "micro_batch": micro_batch,
        "batch": micro_batch * count * row.gpus,
        "memory": "ignore",
    }  # fmt: skip
    if large and not flash:
        found |= {"attention": "triton", "framework": {"unpadded": False}}
    if fp8:
        found["recipe"] = "fp8"
    return found


def workload(row: Row, micro_batches: int | None = None) -> ModelWorkload:
    """As kind ``model``."""
    return ModelWorkload.model_validate(settings(row, micro_batches))
