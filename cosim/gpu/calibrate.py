"""Measures a GPU, and keeps what was found as a table that a scenario can name: ``cosim calibrate``.

What is measured, with PyTorch: matrix products of several shapes, element-wise kernels of several sizes,
attention, tiny kernels one after another (on the GPU's clock and on its host's). The compute model's
parameters are fitted to that (:func:`fit`): each by least squares of relative errors, on a grid within its
bounds. The file has the parameters, how far off they are for what was measured, and where it all comes from:
device, driver, versions, date.

Where there are two GPUs or more, collectives are measured as well, and what a matrix product loses beside
one (``collectives``); on one GPU, what it loses beside copies within its memory, and the table says so.

A CPU can be measured too, to try it out; it says so in the table. Not measured: the framework's part of an
iteration, what other hosts add to a collective.
"""

from __future__ import annotations

import importlib
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cosim.errors import InputError
from cosim.gpu import catalogue
from cosim.gpu.collectives import CollectivesMeasured, measure_collectives, why_none
from cosim.gpu.efficiency import Calibration
from cosim.gpu.gpus import DTYPE_BYTES, DType, Gpu
from cosim.gpu.kernels import Kernel, KernelKind, fused_attention, matmul, memory
from cosim.gpu.parameters import bounds, changed, value
from cosim.gpu.timer import GpuTimer
from cosim.units import PS_PER_S
from cosim.written import plain

_REPEAT = 10
_TORCH_TYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "tf32": "float32",
    "fp64": "float64",
}


@dataclass(frozen=True)
class Measurement:
    """A kernel and its seconds, on the GPU's clock; ``host_s`` the host's to issue it."""

    kernel: Kernel
    seconds: float
    host_s: float = 0.0


def number_type(name: str) -> DType:
    """A number type by its name.

    Raises
    ------
    InputError
        None of that name that can be measured.
    """
    if name not in _TORCH_TYPES:
        raise InputError(f"there is no number type {name!r} to measure", hint=", ".join(_TORCH_TYPES))
    return name  # type: ignore[return-value]


def kernels_to_measure(dtype: DType, largest: int) -> list[Kernel]:
    """Matrix products of four sizes and four depths, some with odd rows, memory-bound and attention kernels,
    and tiny ones.
    """
    width = DTYPE_BYTES[dtype]
    sides = [largest // 8, largest // 4, largest // 2, largest]
    found = [matmul(side, depth, side, width) for side in sides for depth in sides]
    if width <= 2:
        found += [matmul(side, side, side - 1, width) for side in sides]
    found += [memory(3 * side * side * width) for side in sides]
    found += [
        fused_attention(
            4 * 8 * side * side * 64, 4 * 8 * side * 64 * width, heads=8, queries=side, keys=side, head=64
        )
        for side in sides[:-1]
    ]
    return [*found, memory(3 * width)]


def measure(device: str, dtype: DType, *, largest: int = 8192) -> tuple[list[Measurement], dict[str, str]]:
    """Measure a device; the measurements and their provenance.

    Raises
    ------
    InputError
        No PyTorch, or no such device.
    """
    torch = _torch()
    _check_device(torch, device)
    found = [_measured(torch, device, dtype, kernel) for kernel in kernels_to_measure(dtype, largest)]
    return found, _provenance(torch, device)


def fit(measurements: Sequence[Measurement], gpu: Gpu, dtype: DType) -> tuple[Gpu, float]:
    """The GPU, with its host, that reproduces measurements best; root mean square of the relative errors."""
    tiny = min(measurements, key=lambda one: one.kernel.bytes_moved)
    times = {"kernel_time": tiny.seconds * PS_PER_S, "operator_time": tiny.host_s * PS_PER_S, "step_time": 0}
    gpu = changed(gpu, times)
    # Later ones build on those before: a product takes no less than its bytes.
    for kind, odd, names in (
        (KernelKind.MEMORY, False, ("memory_peak",)),
        (KernelKind.ATTENTION, False, ("attention_peak",)),
        (KernelKind.MATMUL, False, ("matmul_peak", "matmul_depth")),
        (KernelKind.MATMUL, True, ("unaligned",)),
    ):
        own = [
            one
            for one in measurements
            if one.kernel.kind is kind and bool(one.kernel.stride % 8) is odd and one is not tiny
        ]
        if own:
            gpu = _search(own, gpu, dtype, names)
    return gpu, float(np.sqrt(np.mean(_errors(measurements, gpu, dtype) ** 2)))


@dataclass(frozen=True)
class Calibrated:
    """What `cosim calibrate` found: the GPU, its table, and collectives or why there are none."""

    gpu: Gpu
    table: dict[str, Any]
    collectives: CollectivesMeasured | None
    why_none: str

    @property
    def link_rate(self) -> float | None:
        """Bytes a second from the GPU to its peers, by its data sheet; None: unknown."""
        return None if self.gpu.link_rate is None else self.gpu.link_rate / 8


def calibrate(
    device: str,
    dtype: DType,
    *,
    largest: int = 8192,
    ranks: int | None = None,
    largest_message: int = 1 << 30,
    measure_others: Callable[..., CollectivesMeasured] = measure_collectives,
) -> Calibrated:
    """The GPU as it was measured: see :func:`measure`; ``ranks`` of a collective: all GPUs, if not given.

    ``measure_others`` measures the collectives (:func:`measure_collectives`).

    Raises
    ------
    InputError
        No PyTorch, no such device, fewer GPUs than ranks.
    """
    torch = _torch()
    _check_device(torch, device)
    gpus = torch.cuda.device_count() if device.startswith("cuda") else 0
    why = why_none(device, gpus, ranks)
    measurements, provenance = measure(device, dtype, largest=largest)
    known = _known(provenance["device"], measurements, dtype)
    fitted, error = fit(measurements, known, dtype)
    efficiency = fitted.efficiency
    found = None
    beside = "not measured"
    if why is None:
        side = min(largest, 4096)
        found = measure_others(device, ranks or gpus, largest=largest_message, side=side)
        efficiency = efficiency.model_copy(update={"interference": min(found.interference, 1.0)})
        beside = "all-reduces"
    elif device.startswith("cuda"):
        lost = _beside_copies(torch, device, getattr(torch, _TORCH_TYPES[dtype]), min(largest, 4096))
        efficiency = efficiency.model_copy(update={"interference": min(lost, 1.0)})
        beside = "copies within the GPU's memory"
    source = f"cosim calibrate on {provenance['device']}, {provenance['date'][:10]}"
    calibration = Calibration(source=source, dtypes=[dtype], uncertainty=max(error, 0.001))
    kept = {name: why for name, why in known.host.fitted.items() if name == "gap_time"}
    host = fitted.host.model_copy(
        update={"name": f"{known.name}'s", "source": source, "fitted": {**kept, "operator_time": source}}
    )
    gpu = known.model_copy(update={"efficiency": efficiency, "host": host, "calibration": calibration})
    table = table_of(gpu, provenance, measurements)
    table["interference"] = f"of a matrix product beside {beside}" if beside[0] != "n" else beside
    table["collectives"] = why if found is None else found.to_table()
    return Calibrated(gpu, table, found, why or "")


def gpu_values(gpu: Gpu) -> dict[str, Any]:
    """A GPU as a scenario or a table writes it, times and rates with their units."""
    calibration = gpu.calibration
    return {
        **gpu.model_dump(exclude={"efficiency", "host", "calibration", "like"}),
        "memory_rate": f"{gpu.memory_rate / 1e9!r}Gbps",
        "link_rate": None if gpu.link_rate is None else f"{gpu.link_rate / 1e9!r}Gbps",
        "host": plain(gpu.host, defaults=True),
        "efficiency": gpu.efficiency.written(),
        "calibration": None if calibration is None else calibration.model_dump(),
    }


def table_of(gpu: Gpu, provenance: dict[str, str], measurements: Sequence[Measurement]) -> dict[str, Any]:
    """A table's content: the GPU, where it comes from, and what was measured."""
    return {
        "gpu": gpu_values(gpu),
        "provenance": provenance,
        "measured": [
            {
                "kind": one.kernel.kind.value,
                "shape": [one.kernel.batch, one.kernel.rows, one.kernel.inner, one.kernel.columns],
                "bytes": one.kernel.bytes_moved,
                "us": round(one.seconds * 1e6, 3),
            }
            for one in measurements
        ],
    }


def write_table(path: Path, table: dict[str, Any]) -> None:
    """Write a table as YAML."""
    path.write_text(yaml.safe_dump(table, sort_keys=False))


def _search(own: Sequence[Measurement], gpu: Gpu, dtype: DType, names: tuple[str, ...]) -> Gpu:
    """Least squares over a grid within bounds, refined three times around the best."""
    best, least = gpu, np.inf
    spans = [bounds(name) for name in names]
    for _ in range(4):
        axes = [np.linspace(low, high, 25) for low, high in spans]
        for values in np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(names)):
            tried = changed(gpu, dict(zip(names, values.tolist(), strict=True)))
            cost = float((_errors(own, tried, dtype) ** 2).sum())
            if cost < least:
                best, least = tried, cost
        spans = [
            (
                max(low, value(best, name) - (high - low) / 12),
                min(high, value(best, name) + (high - low) / 12),
            )
            for name, (low, high) in zip(names, spans, strict=True)
        ]
    return best


def _errors(measurements: Sequence[Measurement], gpu: Gpu, dtype: DType) -> np.ndarray[Any, Any]:
    timer = GpuTimer(gpu, dtype, alone=True)
    return np.array([timer.kernel_ps(one.kernel) / PS_PER_S / one.seconds - 1 for one in measurements])


def _known(device: str, measurements: Sequence[Measurement], dtype: DType) -> Gpu:
    """The catalogue's entry for a device; of one that isn't there, peaks are the best that was measured."""
    name = device.replace("NVIDIA ", "").upper()
    for parts in (None, 1):  # the whole name, else the family's
        for gpu in map(catalogue.read, catalogue.names()):
            if "-".join(gpu.name.upper().split("-")[:parts]) in name:
                return gpu
    rate = max(one.kernel.flops / one.seconds for one in measurements)
    moved = max(one.kernel.bytes_moved / one.seconds for one in measurements if not one.kernel.flops)
    return Gpu.model_validate(
        {
            "name": device,
            "peak_flops": {dtype: rate},
            "memory_rate": f"{moved * 8 / 1e9:.6g}Gbps",
            "multiprocessors": 1,
            "source": "peaks are the best that was measured",
        }
    )


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise InputError("calibrate needs PyTorch", hint="pip install 'cosim-net[profile]'") from error


def _check_device(torch: Any, device: str) -> None:
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(
            f"there is no {device} here: PyTorch {torch.__version__} finds no GPU",
            hint="run it on a machine with a GPU; `--device cpu` tries it out on this one",
        )
    if device.split(":")[0] not in ("cuda", "cpu"):
        raise InputError(f"device {device!r} isn't known", hint="cuda, cuda:1 or cpu")


def _provenance(torch: Any, device: str) -> dict[str, str]:
    gpu = device.startswith("cuda")
    return {
        "device": str(torch.cuda.get_device_name(device)) if gpu else f"CPU ({platform.machine()})",
        "cuda": str(torch.version.cuda) if gpu else "none",
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _measured(torch: Any, device: str, dtype: DType, kernel: Kernel) -> Measurement:
    """The best of five rounds of a kernel issued several times."""
    call = _call(torch, device, getattr(torch, _TORCH_TYPES[dtype]), kernel)
    for _ in range(3):
        call()
    best = Measurement(kernel, float("inf"), float("inf"))
    for _ in range(5):
        seconds, host = _round(torch, device, call)
        best = replace(best, seconds=min(best.seconds, seconds), host_s=min(best.host_s, host))
    return best


def _round(torch: Any, device: str, call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call on the device's clock, and on the host's to issue it."""
    if not device.startswith("cuda"):
        started = time.perf_counter()
        for _ in range(_REPEAT):
            call()
        each = (time.perf_counter() - started) / _REPEAT
        return each, 0.0
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize(device)
    torch.cuda._sleep(20_000_000)  # the host gets ahead, so that launches don't count on the GPU's clock
    begin.record()
    started = time.perf_counter()
    for _ in range(_REPEAT):
        call()
    host = (time.perf_counter() - started) / _REPEAT
    end.record()
    torch.cuda.synchronize(device)
    return begin.elapsed_time(end) / 1e3 / _REPEAT, host


def _beside_copies(torch: Any, device: str, kind: Any, side: int) -> float:
    """How much longer a matrix product takes while another stream copies within the GPU's memory."""
    one = torch.zeros(side, side, device=device, dtype=kind)
    data, copy = (torch.zeros(1 << 28, device=device, dtype=torch.uint8) for _ in range(2))
    other = torch.cuda.Stream(device)

    def products(beside: bool) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
        if beside:
            with torch.cuda.stream(other):
                for _ in range(50 * _REPEAT):
                    copy.copy_(data)
        begin.record()
        for _ in range(_REPEAT):
            one @ one
        end.record()
        end.synchronize()
        torch.cuda.synchronize(device)
        return float(begin.elapsed_time(end))

    products(False)
    return max(min(products(True) for _ in range(3)) / min(products(False) for _ in range(3)) - 1, 0.0)


def _call(torch: Any, device: str, kind: Any, kernel: Kernel) -> Callable[[], object]:
    def numbers(*shape: int) -> Any:
        return torch.randn(*shape, device=device).to(kind)

    if kernel.kind is KernelKind.MATMUL:
        one, two = numbers(kernel.rows, kernel.inner), numbers(kernel.inner, kernel.columns)
        return lambda: one @ two
    if kernel.kind is KernelKind.ATTENTION:
        side = kernel.flops * torch.empty((), dtype=kind).element_size() // kernel.bytes_moved
        heads = [numbers(1, 8, side, 64) for _ in range(3)]
        return lambda: torch.nn.functional.scaled_dot_product_attention(*heads)
    count = kernel.bytes_moved // 3 // torch.empty((), dtype=kind).element_size()
    one, two, out = (numbers(count) for _ in range(3))
    return lambda: torch.add(one, two, out=out)
