"""Measures a GPU, and keeps what was found as a table that a scenario can name: ``cosim calibrate``.

What is measured, with PyTorch: kernels alone (:mod:`cosim.gpu.measured_kernels`), and on a GPU what is slower
in a training than alone (:mod:`cosim.gpu.measured_training`). The compute model's parameters are fitted to
that (:func:`fit`): each by least squares of relative errors, on a grid within its bounds, and what a training
has of its own (:func:`fit_training`) so that it gives the seconds measured there. The file has the
parameters, how far off they are for the kernels, and where it all comes from: device, driver, versions, date.

Where there are two GPUs or more, collectives are measured as well, and what a matrix product loses beside
one (``collectives``).

A CPU can be measured too, to try it out; it says so in the table. Not measured: products of FP8 and FP4, what
other hosts add to a collective.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cosim.files.text import write_text
from cosim.gpu import catalogue
from cosim.gpu.collectives import CollectivesMeasured, measure_collectives, why_none
from cosim.gpu.device_name import named_by_driver
from cosim.gpu.efficiency import Calibration
from cosim.gpu.gpus import DType, Gpu
from cosim.gpu.kernels import KernelKind
from cosim.gpu.measured_kernels import Measurement, measure, torch_on
from cosim.gpu.measured_training import TrainingMeasured, measure_training
from cosim.gpu.parameters import bounds, changed, value
from cosim.gpu.timer import GpuTimer
from cosim.units import PS_PER_S
from cosim.written import plain


def fit(measurements: Sequence[Measurement], gpu: Gpu, dtype: DType) -> tuple[Gpu, float]:
    """The GPU, with its host, that reproduces measurements best; root mean square of the relative errors."""
    tiny = min(measurements, key=lambda one: one.kernel.bytes_moved)
    times = {"kernel_time": tiny.seconds * PS_PER_S, "operator_time": tiny.host_s * PS_PER_S, "step_time": 0}
    gpu = changed(gpu, times)
    # Later ones build on those before: a product takes no less than its bytes.
    for kind, odd, names in (
        (KernelKind.MEMORY, False, ("memory_peak",)),
        (KernelKind.ATTENTION, False, ("attention_peak",)),
        (KernelKind.ATTENTION_BACKWARD, False, ("attention_backward",)),
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


def fit_training(measured: TrainingMeasured, gpu: Gpu, dtype: DType) -> Gpu:
    """The GPU, fitted to kernels alone, with what products, element-wise kernels and the host take in a
    training: a slower clock, a memory that operators reach less of.
    """
    alone = GpuTimer(gpu, dtype, alone=True)
    products_s = alone.kernels_ps(measured.products) / PS_PER_S
    bits = measured.moved_bytes * 8
    return changed(
        gpu,
        {
            "sustained_clock": min(products_s / measured.products_s, 1.0),
            "memory_training": bits / measured.memory_s / gpu.memory_rate,
            "operator_time": measured.operator_s * PS_PER_S,
        },
    )


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
    """The GPU as it was measured; ``ranks`` of a collective: all GPUs, if not given.

    ``measure_others`` measures the collectives (:func:`measure_collectives`).

    Raises
    ------
    InputError
        No PyTorch, no such device, fewer GPUs than ranks.
    """
    torch = torch_on(device)
    gpus = torch.cuda.device_count() if device.startswith("cuda") else 0
    why = why_none(device, gpus, ranks)
    measurements, provenance = measure(device, dtype, largest=largest)
    known = _known(torch, device, measurements, dtype)
    fitted, error = fit(measurements, known, dtype)
    training: TrainingMeasured | None = None
    if device.startswith("cuda"):
        training = measure_training(torch, device, dtype, side=min(largest, 4096))
        fitted = fit_training(training, fitted, dtype)
    efficiency = fitted.efficiency
    found = None
    beside = f"{known.name}'s" if known.efficiency.interference else "not measured: it needs two GPUs"
    if why is None:
        side = min(largest, 4096)
        found = measure_others(device, ranks or gpus, largest=largest_message, side=side)
        efficiency = efficiency.model_copy(update={"interference": min(found.interference, 1.0)})
        beside = "of a matrix product beside all-reduces"
    source = f"cosim calibrate on {provenance['device']}, {provenance['date'][:10]}"
    calibration = Calibration(source=source, dtypes=[dtype], uncertainty=max(error, 0.001))
    kept = {name: why for name, why in known.host.fitted.items() if name == "gap_time"}
    host = fitted.host.model_copy(
        update={"name": f"{known.name}'s", "source": source, "fitted": {**kept, "operator_time": source}}
    )
    of = known.efficiency
    moved = [name for name in type(of).model_fields if getattr(of, name) != getattr(efficiency, name)]
    gpu = known.model_copy(
        update={
            "efficiency": efficiency, "host": host, "calibration": calibration,
            "fitted": {**known.fitted, **dict.fromkeys(moved, source)},
        }
    )  # fmt: skip
    table = table_of(gpu, provenance, measurements)
    if training is not None:
        table["training"] = {
            "products_us": round(training.products_s * 1e6, 3),
            "element_wise_us": round(training.memory_s * 1e6, 3),
            "element_wise_bytes": training.moved_bytes,
        }
    table["interference"] = beside
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


TABLE_HEAD = "# A GPU as cosim measured or fitted it; `gpu: {kind: table, path: ...}` reads it."


def write_table(path: Path, table: dict[str, Any]) -> None:
    """Write a table as YAML.

    Raises
    ------
    InputError
        It can't be written.
    """
    write_text(path, f"{TABLE_HEAD}\n{yaml.safe_dump(table, sort_keys=False)}")


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


def _known(torch: Any, device: str, measurements: Sequence[Measurement], dtype: DType) -> Gpu:
    """The catalogue's entry for a device; of one that isn't there, peaks are the best that was measured."""
    name = "CPU"
    if device.startswith("cuda"):
        name, has = torch.cuda.get_device_name(device), torch.cuda.get_device_properties(device)
        entries = map(catalogue.read, catalogue.names())
        found = named_by_driver(name, has.multi_processor_count, has.total_memory, entries)
        if found is not None:
            return found
    rate = max(one.kernel.flops / one.seconds for one in measurements)
    moved = max(one.kernel.bytes_moved / one.seconds for one in measurements if not one.kernel.flops)
    return Gpu.model_validate(
        {
            "name": name,
            "peak_flops": {dtype: rate},
            "memory_rate": f"{moved * 8 / 1e9:.6g}Gbps",
            "multiprocessors": 1,
            "source": "peaks are the best that was measured",
        }
    )
