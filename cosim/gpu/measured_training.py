"""What kernels take in a training, measured with PyTorch: they are slower there than alone.

Products draw so much power that the GPU lowers its clock, as long as they go on; a framework's element-wise
operators aren't all as fast as a sum of two arrays; and the host takes longer to issue an operator that
autograd records. Measured are, for seconds, the products of a transformer's block, forward and backward, with
such operators between them, of as many bytes as an eager block has: each group on the GPU's clock; and
the iteration of a network so small that the GPU waits for its host.

Not measured: other GPUs' heat in the same chassis, data loading, what a cluster adds. A mix with fewer
products runs at a higher clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cosim.gpu.gpus import DTYPE_BYTES, DType
from cosim.gpu.kernels import Kernel, matmul
from cosim.gpu.measured_kernels import TORCH_TYPES

WARM_S, TIMED_S = 3.0, 1.0
"""Seconds of the mix before it counts, and while it does."""
_FP32 = 4
_SMALL_LAYERS, _SMALL_WIDTH, _SMALL_STEPS = 24, 256, 10


@dataclass(frozen=True)
class TrainingMeasured:
    """Products and bytes of one round of the mix, and their seconds; the host's to issue an operator."""

    products: tuple[Kernel, ...]
    products_s: float
    moved_bytes: int
    memory_s: float
    operator_s: float


def measure_training(torch: Any, device: str, dtype: DType, *, side: int = 4096) -> TrainingMeasured:
    """Measure a CUDA device; ``side``: tokens, and the width of the block."""
    width, kind = DTYPE_BYTES[dtype], getattr(torch, TORCH_TYPES[dtype])
    narrow = [torch.randn(side, side, device=device).to(kind) for _ in range(2)]
    wide = [torch.randn(side, 4 * side, device=device).to(kind) for _ in range(3)]
    weight = torch.randn(4 * side, side, device=device).to(kind)
    up, down = matmul(side, side, 4 * side, width), matmul(side, 4 * side, side, width)
    across = matmul(4 * side, side, side, width)  # a weight's gradient
    groups: list[tuple[Callable[[], object], Callable[[], object]]] = []
    operators, moved = element_wise(torch, wide, kind, width)
    products = (
        (up, lambda: narrow[0] @ weight.t()),
        (down, lambda: wide[0] @ weight),
        (up, lambda: narrow[1] @ weight.t()),
        (across, lambda: wide[0].t() @ narrow[0]),
        (down, lambda: wide[1] @ weight),
        (across, lambda: wide[1].t() @ narrow[1]),
    )
    for place, (_, product) in enumerate(products):
        own = operators[place :: len(products)]
        groups.append((product, lambda own=own: [operator() for operator in own]))  # type: ignore[misc]
    products_s, memory_s = _in_turns(torch, groups)
    return TrainingMeasured(
        tuple(kernel for kernel, _ in products), products_s, moved, memory_s, _operator_s(torch, device)
    )


def element_wise(
    torch: Any, wide: list[Any], kind: Any, width: int
) -> tuple[list[Callable[[], object]], int]:
    """Operators between an eager block's products, and the bytes that all of them read and write.

    Both conversions, an activation, a gate, a sum in fp32, a norm, a copy in another order, fused AdamW on a
    quarter as many numbers.
    """
    x, y, z = wide
    full = x.float()
    count = x.numel()
    rows = x.shape[-1]
    half = torch.empty_like(x)
    heads = x.view(x.shape[0], -1, 128)
    parameter = torch.randn(count // 4, device=x.device, requires_grad=True)
    parameter.grad = torch.randn_like(parameter)
    adam = torch.optim.AdamW([parameter], lr=1e-6, fused=True)
    functional = torch.nn.functional
    each = [
        (lambda: full.to(kind), _FP32 + width),
        (lambda: x.float(), width + _FP32),
        (lambda: functional.silu(y), 2 * width),
        (lambda: torch.mul(x, z, out=half), 3 * width),
        (lambda: full.add_(full), 2 * _FP32),
        (lambda: functional.layer_norm(full, (rows,)), 2 * _FP32),
        (lambda: heads.transpose(0, 1).contiguous(), 2 * width),
        (adam.step, 7 * _FP32 / 4),
    ]
    return [call for call, _ in each], int(sum(size for _, size in each) * count)


def _in_turns(
    torch: Any, groups: list[tuple[Callable[[], object], Callable[[], object]]]
) -> tuple[float, float]:
    """Mean seconds of a round's first halves, and of its second ones, once the clock has come down."""
    rounds: list[list[Any]] = []
    began = time.perf_counter()
    while time.perf_counter() - began < WARM_S + TIMED_S:
        marks = [torch.cuda.Event(enable_timing=True)]
        marks[0].record()
        for both in groups:
            for issue in both:
                issue()
                marks.append(torch.cuda.Event(enable_timing=True))
                marks[-1].record()
        rounds.append(marks)
        if len(rounds) > 2:
            rounds[-3][-1].synchronize()  # the host stays two rounds ahead
        if time.perf_counter() - began < WARM_S:
            rounds = rounds[-3:]
    torch.cuda.synchronize()
    sums = [0.0, 0.0]
    for marks in rounds[2:]:
        for place, (one, two) in enumerate(pairwise(marks)):
            sums[place % 2] += one.elapsed_time(two) / 1e3
    count = max(len(rounds) - 2, 1)
    return sums[0] / count, sums[1] / count


def _operator_s(torch: Any, device: str) -> float:
    """Seconds of the host for each kernel of a small network's training, under autocast, AdamW."""
    nn = torch.nn
    layers = [
        layer
        for _ in range(_SMALL_LAYERS)
        for layer in (nn.LayerNorm(_SMALL_WIDTH), nn.Linear(_SMALL_WIDTH, _SMALL_WIDTH), nn.GELU())
    ]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(64, _SMALL_WIDTH, device=device)

    def step() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(_SMALL_STEPS):
        step()
    torch.cuda.synchronize()
    each = (time.perf_counter() - began) / _SMALL_STEPS
    activities = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activities.CPU, activities.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    launches: int = sum(
        event.count for event in seen.key_averages() if event.key.startswith(("cudaLaunch", "cuLaunch"))
    )
    return each / max(launches, 1)
