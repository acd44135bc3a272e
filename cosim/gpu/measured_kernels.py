"""Times kernels on a device with PyTorch: what :mod:`cosim.gpu.calibrate` fits a GPU's numbers to.

Matrix products of several shapes, element-wise kernels, causal attention both ways, tiny kernels, each alone:
issued several times behind a sleeping kernel, so that no launch counts, the best of five rounds.
"""

from __future__ import annotations

import importlib
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from cosim.errors import InputError, install_extra
from cosim.gpu.gpus import DTYPE_BYTES, DType
from cosim.gpu.kernels import Kernel, KernelKind, attention_backward, fused_attention, matmul, memory

TORCH_TYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "tf32": "float32",
    "fp64": "float64",
}
_REPEAT = 10
_TOKENS = 2
"""Attention has so many times as many tokens as the largest matrix has rows."""


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
    if name not in TORCH_TYPES:
        raise InputError(f"there is no number type {name!r} to measure", hint=", ".join(TORCH_TYPES))
    return name  # type: ignore[return-value]


def kernels_to_measure(dtype: DType, largest: int) -> list[Kernel]:
    """Matrix products of four sizes and four depths, some with odd rows, memory-bound kernels that outgrow
    caches, attention under a causal mask, forward and backward, and a tiny kernel.
    """
    width = DTYPE_BYTES[dtype]
    sides = [largest // 8, largest // 4, largest // 2, largest]
    found = [matmul(side, depth, side, width) for side in sides for depth in sides]
    if width <= 2:
        found += [matmul(side, side, side - 1, width) for side in sides]
    found += [memory(3 * times * largest * largest * width) for times in (1, 2, 4)]
    for keys in sides[:-1]:
        for head in (64, 128):
            heads = _TOKENS * largest // keys * max(2048 // head, 1)
            forward = fused_attention(
                2 * heads * keys * keys * head, 4 * heads * keys * head * width, heads=heads, queries=keys,
                keys=keys, head=head, causal=True,
            )  # fmt: skip
            found += [forward, attention_backward(forward)]
    return [*found, memory(3 * width)]


def measure(device: str, dtype: DType, *, largest: int = 8192) -> tuple[list[Measurement], dict[str, str]]:
    """Measure a device; the measurements and their provenance.

    Raises
    ------
    InputError
        No PyTorch, or no such device.
    """
    torch = torch_on(device)
    found = [_measured(torch, device, dtype, kernel) for kernel in kernels_to_measure(dtype, largest)]
    return found, _provenance(torch, device)


def torch_on(device: str) -> Any:
    """PyTorch, which has that device.

    Raises
    ------
    InputError
        No PyTorch, or no such device.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise InputError("calibrate needs PyTorch", hint=install_extra("profile")) from error
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(
            f"there is no {device} here: PyTorch {torch.__version__} finds no GPU",
            hint="run it on a machine with a GPU; `--device cpu` tries it out on this one",
        )
    if device.split(":")[0] not in ("cuda", "cpu"):
        raise InputError(f"device {device!r} isn't known", hint="cuda, cuda:1 or cpu")
    return torch


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
    call = _call(torch, device, getattr(torch, TORCH_TYPES[dtype]), kernel)
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


def _call(torch: Any, device: str, kind: Any, kernel: Kernel) -> Callable[[], object]:
    def numbers(*shape: int, grad: bool = False) -> Any:
        return torch.randn(*shape, device=device).to(kind).requires_grad_(grad)

    if kernel.kind is KernelKind.MATMUL:
        one, two = numbers(kernel.rows, kernel.inner), numbers(kernel.inner, kernel.columns)
        return lambda: one @ two
    if kernel.kind in (KernelKind.ATTENTION, KernelKind.ATTENTION_BACKWARD):
        backward = kernel.kind is KernelKind.ATTENTION_BACKWARD
        shape = (kernel.batch, 1, kernel.rows, kernel.inner)
        heads = [numbers(*shape, grad=backward) for _ in range(3)]
        attention = torch.nn.functional.scaled_dot_product_attention
        if not backward:
            return lambda: attention(*heads, is_causal=True)
        out, given = attention(*heads, is_causal=True), numbers(*shape)
        return lambda: torch.autograd.grad(out, heads, given, retain_graph=True)
    count = kernel.bytes_moved // 3 // torch.empty((), dtype=kind).element_size()
    one, two, out = (numbers(count) for _ in range(3))
    return lambda: torch.add(one, two, out=out)
