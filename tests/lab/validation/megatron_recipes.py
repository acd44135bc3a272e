"""What Megatron-Bridge's released recipes ran experts with, and no column of its performance summary says.

``megatron_recipes.csv``: of each release (25.11: v0.2.0, 26.02: v0.3.0, 26.04: v0.4.0, 26.06: v0.5.0,
26.08: v0.6.0), model, GPU, number types and layout, as ``scripts/performance/configs`` (26.08:
``perf_recipes``) of NVIDIA-NeMo/Megatron-Bridge (Apache-2.0) has them: CUDA graphs (of which parts of a
layer, or ``full``: the whole iteration), how tokens are dispatched, 1F1B overlap of all-to-alls, grouped
products in one kernel (``cutedsl``), FP8 attention, logits in FP8 (where the recipe is MXFP8's), operators
that backward runs again. A job's is that of its release and layout; where the release has none of that layout
and batch, of the nearest release that has, or else of the layout that differs least.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

RELEASES = ["25.09", "25.11", "26.02", "26.04", "26.06", "26.08"]
TYPES = {"BF16": "BF16", "FP8": "FP8_CS", "FP8-CS": "FP8_CS", "FP8-MX": "FP8_MX", "MXFP8": "FP8_MX"}
LAYOUT = ("gbs", "tp", "pp", "cp", "vp", "ep", "mbs")

HYBRID_EP = {2: 0.69, 4: 0.89, 8: 0.90}
"""HybridEP's rate over NICs on 16, 32 and 64 H100s as a fraction of NCCL's (0.97 of 50 GB/s): its README's
table of kernels with 16 multiprocessors (deepseek-ai/DeepEP, branch hybrid-ep), dispatch and combine of BF16,
algorithm bandwidth, of which (hosts - 1) / hosts pass a NIC: 35.9 and 31.5, 43.3 and 43.1, 43.7 and 43.5."""

FUSED_MARGIN = 16
"""Multiprocessors: ``perf_plugins.py`` of v0.5.0 has fused experts leave 8 clusters (of two, cudnn-frontend's
``grouped_gemm``) to all-to-alls beside them."""


@cache
def recipes() -> list[dict[str, str]]:
    """Every line."""
    with Path(__file__).with_suffix(".csv").open(newline="") as file:
        return list(csv.DictReader(file))


def of(model: str, gpu: str, precision: str, release: str, layout: dict[str, int]) -> dict[str, str] | None:
    """The recipe that comes nearest to a job; None: the model has none on that GPU."""
    kind = TYPES.get(precision, precision)

    def off(line: dict[str, str]) -> tuple[int, bool, int]:
        return (
            sum(int(line[name]) != layout[name] for name in LAYOUT),
            kind not in line["precisions"].split(),
            abs(RELEASES.index(line["release"]) - RELEASES.index(release)),
        )

    own = [line for line in recipes() if line["model"] == model and line["gpu"] == gpu]
    return min(own, key=off, default=None)


def settings(recipe: dict[str, str], *, ranks: int, domain: int) -> dict[str, Any]:
    """As settings of the workload, of ``framework: megatron`` under that name.

    ``ranks``: of an expert-parallel group; ``domain``: GPUs that share NVLink.
    """
    whole = recipe["graphs"] == "full"
    framework: dict[str, Any] = {
        "dispatcher": recipe["dispatcher"],
        "overlap_experts": recipe["overlap"] == "1",
        "fused_experts": recipe["fused"] == "1",
        "fp8_attention": recipe["fp8_attention"] == "1",
        "fp8_output_proj": recipe["fp8_output_proj"] == "1",
    }
    if framework["fused_experts"] and framework["overlap_experts"]:
        framework["fused_margin"] = FUSED_MARGIN
    if not whole and recipe["graphs"]:
        framework["graphs"] = recipe["graphs"].split()
    if recipe["dispatcher"] != "all_to_all":
        hosts = framework["expert_hosts"] = -(-ranks // domain)
        framework["dispatcher_efficiency"] = HYBRID_EP.get(hosts, 1.0) if domain == 8 else 1.0
    found: dict[str, Any] = {"cuda_graphs": whole, "framework": framework}
    if recipe["recompute"]:
        found["recompute"] = recipe["recompute"].split()
    return found
