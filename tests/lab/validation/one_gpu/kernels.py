"""Times kernels one at a time on a GPU: ``kernels.py OUT.json [SHAPES.json]``.

Products in BF16 and FP8, attention forward and backward by library, element-wise kernels by size, and what
a large product loses when it goes on for seconds. A kernel is issued several times behind a sleeping one,
so that no launch counts; the best of three rounds is kept, as for a cool GPU.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel

ROUND_S, ROUNDS = 0.004, 3
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def best(call: Callable[[], object]) -> float:
    """Seconds of a call on the GPU."""
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    once = rounds(call, 2, 1)
    return rounds(call, max(3, min(int(ROUND_S / once), 200)), ROUNDS)


def rounds(call: Callable[[], object], repeat: int, count: int, *, ahead: bool = True) -> float:
    """Seconds of a call, the best round; ``ahead``: the host gets ahead of the GPU, 0.1 ms a call."""
    least = float("inf")
    for _ in range(count):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if ahead:
            torch.cuda._sleep(min(2_000_000 + repeat * 200_000, 40_000_000))
        begin.record()
        for _ in range(repeat):
            call()
        end.record()
        end.synchronize()
        least = min(least, begin.elapsed_time(end) / 1e3 / repeat)
    return least


def product(m: int, n: int, k: int, kind: str) -> float:
    one, two = torch.randn(m, k, device="cuda"), torch.randn(n, k, device="cuda")
    if kind == "bfloat16":
        a, b = one.bfloat16(), two.bfloat16().t()
        return best(lambda: a @ b)
    unit = torch.ones((), device="cuda")
    c, d = one.to(torch.float8_e4m3fn), two.to(torch.float8_e4m3fn).t()
    return best(lambda: torch._scaled_mm(c, d, unit, unit, out_dtype=torch.bfloat16, use_fast_accum=True))


def attention(
    batch: int, length: int, heads: int, groups: int, head: int, library: str, causal: bool = True
) -> dict[str, float]:
    """Seconds forward and backward."""
    q = torch.randn(batch, heads, length, head, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    k, v = (
        torch.randn(batch, groups, length, head, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        for _ in range(2)
    )
    with sdpa_kernel(BACKENDS[library]):
        call = partial(F.scaled_dot_product_attention, q, k, v, is_causal=causal, enable_gqa=groups < heads)
        with torch.no_grad():
            forward = best(call)
        y = call()
        given = torch.randn_like(y)
        backward = best(lambda: torch.autograd.grad(y, (q, k, v), given, retain_graph=True))
    return {"forward_s": forward, "backward_s": backward}


def elementwise(numbers: int) -> dict[str, float]:
    """Seconds of kernels over so many bf16 numbers, in rows of 4,096; fp32's of an optimizer's step."""
    x, y, z = (torch.randn(numbers // 4096, 4096, device="cuda").bfloat16() for _ in range(3))
    weight = torch.ones(4096, device="cuda", dtype=torch.bfloat16)
    calls: dict[str, Callable[[], object]] = {
        "add": lambda: torch.add(x, y, out=z),
        "copy": lambda: z.copy_(x),
        "fill": lambda: z.zero_(),
        "gelu": lambda: F.gelu(x),
        "silu": lambda: F.silu(x),
        "to_float": lambda: x.float(),
        "layer_norm": lambda: F.layer_norm(x, (4096,), weight, weight),
        "rms_norm": lambda: F.rms_norm(x, (4096,), weight),
        "softmax": lambda: torch.softmax(x, -1),
        "sum": lambda: x.sum(0),
    }
    return {name: best(call) for name, call in calls.items()}


def optimizer(numbers: int) -> dict[str, float]:
    found = {}
    for name, how in (("fused", {"fused": True}), ("foreach", {"foreach": True})):
        parameters = [torch.randn(numbers // 32, device="cuda", requires_grad=True) for _ in range(32)]
        for one in parameters:
            one.grad = torch.randn_like(one)
        adam = torch.optim.AdamW(parameters, **how)
        found[name] = best(lambda adam=adam: adam.step())  # type: ignore[misc]
        found[f"clip_{name}"] = best(lambda ps=parameters: torch.nn.utils.clip_grad_norm_(ps, 1.0))  # type: ignore[misc]
        del parameters, adam
    return found


def sustained(seconds: float, side: int = 8192) -> list[list[float]]:
    """[seconds since the beginning, seconds of a product, MHz, W] every quarter of a second."""
    from timed import Clock  # type: ignore[import-not-found]  # beside this script

    clock = Clock()
    clock.start()
    a, b = (torch.randn(side, side, device="cuda").bfloat16() for _ in range(2))
    cool = best(lambda: a @ b)
    time.sleep(1.0)
    found: list[list[float]] = [[0.0, cool, 0.0, 0.0]]
    began = time.perf_counter()
    repeat = max(int(0.25 / cool), 1)
    while time.perf_counter() - began < seconds:
        at = time.perf_counter()
        took = rounds(lambda: a @ b, repeat, 1, ahead=False)
        mean = clock.mean(at, time.perf_counter())
        found.append([at - began, took, mean.get("clock_mhz", 0.0), mean.get("watts", 0.0)])
    return found


def tiny() -> dict[str, float]:
    """Seconds on the GPU of the smallest kernels one after another, and on the host to issue one."""
    x = torch.ones(8, device="cuda")
    gpu = rounds(lambda: x.add_(1), 200, 5)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(500):
        x.add_(1)
    host = (time.perf_counter() - began) / 500
    torch.cuda.synchronize()
    return {"gpu_s": gpu, "host_s": host}


def tried(call: Callable[[], Any]) -> Any:
    """What a call finds, or why it can't."""
    try:
        return call()
    except Exception as error:
        torch.cuda.empty_cache()
        return {"error": str(error)[:200]}


def main() -> None:
    out = Path(sys.argv[1])
    shapes = (
        json.loads(Path(sys.argv[2]).read_text()) if len(sys.argv) > 2 else {"products": [], "attention": []}
    )
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "properties": str(torch.cuda.get_device_properties(0)),
    }

    def keep(name: str, value: Any) -> None:
        found[name] = value
        out.write_text(json.dumps(found))

    keep("tiny", tried(tiny))
    keep("products", [[*row, tried(partial(product, *row))] for row in shapes["products"]])
    keep("attention", [[*row, tried(partial(attention, *row))] for row in shapes["attention"]])
    sizes = [1 << power for power in range(18, 31, 2)]
    keep("elementwise", {str(size): tried(partial(elementwise, size)) for size in sizes})
    keep("optimizer", tried(partial(optimizer, 1 << 29)))
    keep("sustained", tried(partial(sustained, 6.0)))


if __name__ == "__main__":
    main()
