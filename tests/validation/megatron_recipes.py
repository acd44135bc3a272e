"""What Megatron-Bridge's released recipes ran experts with, and no column of its performance summary says.

``megatron_recipes.csv``: of each release (25.11: v0.2.0, 26.02: v0.3.0, 26.04: v0.4.0, 26.06: v0.5.0), model,
GPU, number types and layout, as ``scripts/performance/configs`` of NVIDIA-NeMo/Megatron-Bridge (Apache-2.0)
has them: CUDA graphs (of which parts of a layer, or ``full``: the whole iteration), how tokens are dispatched
(HybridEP counts as DeepEP), 1F1B overlap of all-to-alls, grouped products in one kernel (``cutedsl``), FP8
attention, operators that backward runs again. A job's is that of its release and layout; where the release
has none of that layout and batch, of the nearest release that has, or else of the layout that differs least.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

RELEASES = ["25.09", "25.11", "26.02", "26.04", "26.06", "26.08"]
TYPES = {"BF16": "BF16", "FP8": "FP8_CS", "FP8-CS": "FP8_CS", "FP8-MX": "FP8_MX", "MXFP8": "FP8_MX"}
LAYOUT = ("gbs", "tp", "pp", "cp", "vp", "ep", "mbs")


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
    }
    if not whole and recipe["graphs"]:
        framework["graphs"] = recipe["graphs"].split()
    if recipe["dispatcher"] == "deepep":
        framework["expert_hosts"] = -(-ranks // domain)
    found: dict[str, Any] = {"cuda_graphs": whole, "framework": framework}
    if recipe["recompute"]:
        found["recompute"] = recipe["recompute"].split()
    return found
