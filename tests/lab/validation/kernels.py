"""Computed times of kernels beside measured ones: matrix products and attention on five GPUs.

``python -m tests.lab.validation.kernels``: the error of every row of the tables that the fit has not seen, by
GPU and type, large kernels apart. ``--fit``: fits each GPU's numbers anew to every other row and prints
them, as they stand in ``cosim/gpu/data``. Tables: ai-dynamo/aiconfigurator (Apache-2.0), kernels one after
another, TensorRT-LLM's. ``--left-out``: each GPU as if only its data sheet were known, with another one's
numbers (``cosim.gpu.neighbour``), and as they are: large kernels of all its rows.

The rows with an even number in their table are fitted to, the others are held out. An FP8 or FP4 product's
row has its left operand's conversion in it, FP8's also the search for its largest value before
(TensorRT-LLM's ``quantize_e4m3_per_tensor``, where weights come without an input's scale), an attention row
what comes before it (bias, positions, cache), which newer kernels do on the way. H200's attention rows are
left out: half of them would take more than the peak.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from cosim.gpu.catalogue import read
from cosim.gpu.efficiency import Efficiency
from cosim.gpu.gpus import Gpu
from cosim.gpu.kernels import Kernel, fused_attention, matmul, memory, narrowed
from cosim.gpu.timer import GpuTimer
from cosim.units import PS_PER_S
from tests.inputs import find

F64 = NDArray[np.float64]
DATA = find("measured")
TABLES = {
    "a100_sxm": "a100-80gb", "h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200",
    "gb200": "gb200",
}  # fmt: skip
"""Tables' names, and the catalogue's."""
LARGE = 1e11
"""FLOPs from which a matrix product counts as large."""
LONG = 1024
"""Sequence from which attention does."""
ATTENTION_KERNELS = 3
"""Of an attention row: what goes before, and the kernel itself."""
PASSES = {"a100_sxm": 1.5, "h100_sxm": 0.5}
"""How often queries, keys and values go through memory before, less the newer the kernels are."""
ONE_PASS = {"h100_sxm"}
"""Tables whose large FP8 products look as if their operand were read once, with a scale known before."""
SMALL = 0.02
"""Relative errors below which a larger one counts more than in proportion."""
NAMES = (
    "matmul_peak",
    "fp8_peak",
    "fp4_peak",
    "ragged_rows",
    "matmul_depth",
    "memory_peak",
    "kernel_time",
    "attention_peak",
)
SCALE = {"matmul_depth": 100.0, "ragged_rows": 500.0, "kernel_time": 3e6}


@dataclass(frozen=True)
class Row:
    """Kernels that were measured together, and their seconds."""

    what: str
    large: bool
    kernels: tuple[Kernel, ...]
    seconds: float


def rows_of(table: str) -> list[Row]:
    """Every row of a GPU's two tables."""
    found = [_product(line, largest=table not in ONE_PASS) for line in _lines(f"{table}_gemm.csv")]
    if table != "h200_sxm":
        found += [_attention(line, PASSES.get(table, 0.0)) for line in _lines(f"{table}_attention.csv")]
    return found


def _lines(name: str) -> list[dict[str, str]]:
    with (DATA / "gpus" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def _product(line: dict[str, str], *, largest: bool) -> Row:
    m, n, k = (int(line[name]) for name in "mnk")
    kernel = matmul(m, k, n, 2)
    kernels: tuple[Kernel, ...] = (kernel,)
    if line["dtype"] != "bfloat16":
        kernels = narrowed(kernel, 2, "fp8" if line["dtype"] == "fp8" else "fp4")
    if line["dtype"] == "fp8" and largest:
        kernels = (memory(2 * m * k, launches=0), *kernels)
    return Row(line["dtype"], kernel.flops >= LARGE, kernels, float(line["time_us"]) / 1e6)


def _attention(line: dict[str, str], passes: float) -> Row:
    batch, tokens, heads, kv, head = (
        int(line[name]) for name in ("batch", "sequence", "heads", "kv_heads", "head_dim")
    )
    flops = 2 * batch * heads * tokens * tokens * head
    moved = 4 * batch * tokens * (heads + kv) * head
    read = 4 * batch * tokens * (heads + 2 * kv) * head
    before = memory(int(read * passes), launches=ATTENTION_KERNELS - 1)
    core = fused_attention(
        flops, moved, heads=batch * heads, queries=tokens, keys=tokens, head=head, causal=True
    )
    return Row("attention", tokens >= LONG, (before, core), float(line["time_us"]) / 1e6)


def predicted(gpu: Gpu, rows: Sequence[Row]) -> F64:
    """Seconds of each row, kernels alone."""
    timer = GpuTimer(gpu, "bf16", alone=True)
    return np.array([timer.kernels_ps(row.kernels) / PS_PER_S for row in rows])


def fit(gpu: Gpu, rows: Sequence[Row]) -> Efficiency:
    """The numbers that reproduce rows best: relative errors, each kind of kernel alike, large ones twice, a
    loss that spares odd ones.
    """
    names = [name for name in NAMES if name[:3] not in ("fp8", "fp4") or name[:3] in gpu.peak_flops]
    names = [name for name in names if name != "ragged_rows" or gpu.efficiency.ragged_rows]
    scale = np.array([SCALE.get(name, 0.7) for name in names])
    measured = np.array([row.seconds for row in rows])
    alike = Counter((row.what, row.large) for row in rows)
    weight = np.array([(2.0 if row.large else 1.0) / alike[row.what, row.large] for row in rows])

    def efficiency(z: F64) -> Efficiency:
        values = dict(zip(names, (z * scale).tolist(), strict=True))
        if "kernel_time" in values:
            values["kernel_time"] = round(values["kernel_time"])
        return gpu.efficiency.model_copy(update=values)

    def residuals(z: F64) -> F64:
        tried = gpu.model_copy(update={"efficiency": efficiency(z)})
        return np.asarray(_spared(np.log(predicted(tried, rows) / measured)) * np.sqrt(weight))

    bounds = tuple(np.array([bound(name)[side] for name in names]) / scale for side in (0, 1))
    found = least_squares(
        residuals,
        np.ones(len(names)),
        bounds=bounds,
        diff_step=[1e-3] * len(names),
        xtol=1e-4,
    )
    return efficiency(found.x)


def _spared(error: F64) -> F64:
    """What squared is an error's size, smoothly: its square where it is small."""
    return np.asarray(np.sign(error) * np.sqrt(np.sqrt(error * error + SMALL * SMALL) - SMALL))


def bound(name: str) -> tuple[float, float]:
    """A parameter's bounds."""
    metadata = Efficiency.model_fields[name].metadata
    low = next(one.ge for one in metadata if hasattr(one, "ge"))
    return low, next(one.le for one in metadata if hasattr(one, "le"))


def report(gpu: Gpu, rows: Sequence[Row]) -> list[str]:
    """A line for each kind of kernel: rows, mean error and bias of the large ones and of those below."""
    found = []
    error = predicted(gpu, rows) / np.array([row.seconds for row in rows]) - 1
    for what in dict.fromkeys(row.what for row in rows):
        cells = []
        for large in (True, False):
            chosen = error[[row.what == what and row.large is large for row in rows]]
            cells.append(f"{len(chosen):5d}  {np.abs(chosen).mean():6.1%}  {chosen.mean():+6.1%}")
        found.append(f"{gpu.name:16s} {what:10s} {cells[0]} {cells[1]}")
    return found


def from_sheet(name: str, other: str) -> Gpu:
    """A GPU of the catalogue that only its data sheet and a neighbour are known of."""
    gpu = read(name)
    sheet = {
        "name": gpu.name, "peak_flops": gpu.peak_flops, "memory_rate": f"{gpu.memory_rate / 8e9}GB/s",
        "cache": gpu.cache, "multiprocessors": gpu.multiprocessors, "power": gpu.power, "like": other,
    }  # fmt: skip
    return Gpu.model_validate(sheet)


def left_out() -> list[str]:
    """A line for each GPU and each neighbour: mean error and bias of large kernels, by kind; last BF16's mean
    error with the neighbour's numbers as they are.
    """
    lines = []
    for table, name in TABLES.items():
        rows = [row for row in rows_of(table) if row.large]
        for other in TABLES.values():
            if other == name:
                continue
            error, same = (
                predicted(gpu, rows) / np.array([row.seconds for row in rows]) - 1
                for gpu in (
                    from_sheet(name, other),
                    read(name).model_copy(update={"efficiency": read(other).efficiency}),
                )
            )
            cells = [f"{name:10s} by {other:10s}"]
            for what in dict.fromkeys(row.what for row in rows):
                own = error[[row.what == what for row in rows]]
                cells.append(f"{what} {np.abs(own).mean():.1%} ({own.mean():+.1%})")
            own = same[[row.what == "bfloat16" for row in rows]]
            lines.append("  ".join([*cells, f"as it is {np.abs(own).mean():.1%}"]))
    return lines


def main(arguments: Sequence[str]) -> None:
    """Report, or fit."""
    if "--left-out" in arguments:
        print("\n".join(left_out()))
        return
    print(f"{'held out':27s}  rows   error    bias  below   error    bias")
    for table, name in TABLES.items():
        if not (DATA / "gpus" / f"{table}_gemm.csv").exists():
            continue
        gpu, rows = read(name), rows_of(table)
        if "--fit" in arguments:
            efficiency = fit(gpu, rows[::2])
            gpu = gpu.model_copy(update={"efficiency": efficiency})
            shown = {each: getattr(efficiency, each) for each in NAMES}
            print(
                name,
                {each: value if value is None else float(f"{value:.4g}") for each, value in shown.items()},
            )
        print("\n".join(report(gpu, rows[1::2])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
