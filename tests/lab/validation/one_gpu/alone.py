"""Kernels measured alone on one GPU, beside the package's times and the published tables'."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.gpu.gpus import Gpu
from cosim.gpu.kernels import attention_backward, fused_attention, matmul, memory, narrowed
from cosim.gpu.timer import GpuTimer
from cosim.units import PS_PER_S
from tests.lab.validation.kernels import DATA, LARGE

F64 = NDArray[np.float64]
PASSES = {
    "add": 6, "copy": 4, "fill": 2, "gelu": 4, "silu": 4, "to_float": 6, "layer_norm": 4, "rms_norm": 4,
    "softmax": 4, "sum": 2,
}  # fmt: skip
"""Bytes that kernels over bf16 numbers read and write, a number."""


def report(measured: Path, gpu: Gpu, table: str) -> list[str]:
    """Mean error and bias by kind, and what element-wise kernels reach of the memory's rate; ``table``: the
    published one.
    """
    record = json.loads(measured.read_text())
    return [
        f"{record['device']}, PyTorch {record['torch']}, beside {gpu.name}:",
        *_products(record, gpu, table),
        *_attention(record, gpu),
        *_element_wise(record, gpu),
        *_long(record),
    ]


def _line(what: str, ratios: list[float]) -> str:
    error: F64 = np.array(ratios) - 1
    return f"  {what:58s} {len(error):4d}  {np.abs(error).mean():6.1%}  {error.mean():+6.1%}"


def _products(record: dict[str, list[list[object]]], gpu: Gpu, table: str) -> list[str]:
    alone = GpuTimer(gpu, "bf16", alone=True)
    cool = gpu.efficiency.model_copy(
        update={"sustained_clock": 1.0, "ragged_rows": 0.0, "fp8_training": 0.78}
    )
    training = GpuTimer(gpu.model_copy(update={"efficiency": cool}), "bf16")
    published = {}
    with (DATA / "gpus" / f"{table}_gemm.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            published[(*(int(row[name]) for name in "mnk"), row["dtype"])] = float(row["time_us"]) / 1e6
    lines = []
    for kind in ("bfloat16", "fp8"):
        for large in (True, False):
            beside, package = [], []
            for m, n, k, dtype, seconds in record["products"]:
                assert isinstance(m, int) and isinstance(n, int) and isinstance(k, int)  # noqa: PT018
                product = matmul(m, k, n, 2)
                if dtype != kind or (product.flops >= LARGE) is not large or not isinstance(seconds, float):
                    continue
                beside.append(published[m, n, k, kind] / seconds)
                timer, one = (
                    (alone, product) if kind == "bfloat16" else (training, narrowed(product, 2, "fp8")[1])
                )
                package.append(timer.kernel_ps(one) / PS_PER_S / seconds)
            name = f"{kind} products, {'from' if large else 'below'} 0.1 TFLOP"
            lines.append(_line(f"{name}: the package", package))
            lines.append(_line(f"{name}: the published table", beside))
    lines.append(
        "    (fp8: torch._scaled_mm alone, and a training's product at 0.78; published: with conversions)"
    )
    return lines


def _attention(record: dict[str, list[list[object]]], gpu: Gpu) -> list[str]:
    timer = GpuTimer(gpu, "bf16", alone=True)
    lines = []
    for library, version in (("cudnn", "newest"), ("flash", "flash2")):
        ratios: dict[str, list[float]] = {"forward": [], "backward": []}
        for batch, length, heads, groups, head, by, *causal, took in record["attention"]:
            if by != library or causal == [False] or not isinstance(took, dict) or "error" in took:
                continue
            assert isinstance(batch, int) and isinstance(length, int) and isinstance(heads, int)  # noqa: PT018
            assert isinstance(groups, int) and isinstance(head, int)  # noqa: PT018
            kernel = fused_attention(
                2 * batch * heads * length * length * head, 4 * batch * length * (heads + groups) * head,
                heads=batch * heads, queries=length, keys=length, head=head, causal=True,
                version=version,  # type: ignore[arg-type]
            )  # fmt: skip
            for way, one in (("forward", kernel), ("backward", attention_backward(kernel))):
                ratios[way].append(timer.kernel_ps(one) / PS_PER_S / took[f"{way}_s"])
        lines += [_line(f"attention of {library}, causal, {way}: the package", ratios[way]) for way in ratios]
    return lines


def _element_wise(record: dict[str, dict[str, dict[str, float]]], gpu: Gpu) -> list[str]:
    timer = GpuTimer(gpu, "bf16", alone=True)
    largest = max(record["elementwise"], key=int)
    took = record["elementwise"][largest]
    rate = gpu.memory_rate / 8
    reached = {name: PASSES[name] * int(largest) / seconds / rate for name, seconds in took.items()}
    said = timer.kernel_ps(memory(6 * int(largest))) / PS_PER_S
    shares = ", ".join(f"{name} {share:.2f}" for name, share in reached.items())
    adam = 28 * (1 << 29) / record["optimizer"]["fused"] / rate  # type: ignore[operator]
    return [
        f"  of the memory's rate, {int(largest) / 1e9:.1f} G numbers: {shares}, AdamW fused {adam:.2f}",
        f"  the package: {PASSES['add'] * int(largest) / said / rate:.2f}",
    ]


def _long(record: dict[str, list[list[float]]]) -> list[str]:
    cool, *rest = record["sustained"]
    late = [row for row in rest if row[0] > rest[-1][0] - 2]
    share = cool[1] / (sum(row[1] for row in late) / len(late))
    mhz = sum(row[2] for row in late) / len(late)
    return [f"  a product of 8,192 for 6 s: {share:.2f} of its rate alone, {mhz:.0f} MHz"]
