"""Packages without their compiled part: an engine of this file's own is served without it."""

from __future__ import annotations

from pathlib import Path

from cosim.profiler.file import Profile
from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import flops, needs_torch

pytestmark = needs_torch

SEQUENCES, QUERIES, KEYS, HEADS, GROUPS, HEAD, WIDTH, PAGE, BF16 = 2, 4, 12, 4, 2, 16, 64, 16, 2
TOKENS = SEQUENCES * QUERIES

ENGINE = f"""
import torch
import engine._C_stable
from engine import _vllm_fa2_C


@torch.library.register_fake("_C::doubled")
def doubled(x):
    return torch.cat([x, x])


@torch.library.custom_op("engine::layer", mutates_args=())
def layer(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x, weight)


@layer.register_fake
def _(x, weight):
    return x.new_empty(x.shape[0], weight.shape[0])


@torch.library.custom_op("engine::foreign", mutates_args=())
def foreign(x: torch.Tensor) -> torch.Tensor:
    torch.nn.functional.linear(x, x)
    raise RuntimeError("a library that isn't here")


@foreign.register_fake
def _(x):
    return torch.empty_like(x)


def some(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def attend(lengths):
    q = some({TOKENS}, {HEADS}, {HEAD})
    keys, values = some(2, 64, {PAGE}, {GROUPS}, {HEAD}).unbind(0)
    starts = torch.arange({SEQUENCES} + 1, dtype=torch.int32).cuda() * {QUERIES}
    pages = torch.zeros({SEQUENCES}, 1, dtype=torch.int32, device="cuda")
    out, sums = torch.ops._vllm_fa2_C.varlen_fwd(
        q, keys, values, None, starts, None, lengths, None, pages, None, {QUERIES}, 64, 0.0, 1.0, False, True
    )
    assert out.shape == q.shape and sums.shape == ({HEADS}, {TOKENS})
"""

SERVE = f"""
import ctypes
import subprocess
import sys

import torch
from engine import attend, some

lengths = torch.tensor([{KEYS}] * {SEQUENCES}, dtype=torch.int32, device="cuda")
x, weight = some({TOKENS}, {WIDTH}), some({WIDTH}, {WIDTH})
model = torch.nn.Linear(1, 1, device="cuda")
optimizer = torch.optim.SGD(model.parameters())
for _ in range(2):
    with torch.inference_mode():
        attend(lengths)
        torch.ops._C.fused_add_rms_norm(x, x.clone(), weight[0], 1e-6)
        assert torch.ops._C.doubled(x).shape == ({2 * TOKENS}, {WIDTH})
        torch.ops._C_cache_ops.reshape_and_cache_flash(
            some({TOKENS} + 1, 2, 8), some({TOKENS} + 1, 2, 8), some(9, 16, 2, 8), some(9, 16, 2, 8),
            torch.arange({TOKENS}, device="cuda"), "auto"
        )
        torch.nn.functional.linear(x, weight)
        torch.ops.engine.layer(x, weight)
        torch.ops.engine.foreign(x)
    model(torch.ones(1, 1, device="cuda")).sum().backward()
    optimizer.step()

assert False, "the last iteration ends it"
"""

LOOK = """
import sys
import torch
import engine

print(torch.cuda.device_count(), torch.ops._C.whatever.__name__, sys.stdin.read())
"""

ASK = """
import ctypes
import subprocess
import sys

count, handle = ctypes.c_uint(), ctypes.c_void_p()
library = ctypes.CDLL("libnvidia-ml.so.1")
assert library.nvmlInit_v2() == 0
assert library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and count.value == 4
assert library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(3), ctypes.byref(handle)) == 0
name = ctypes.create_string_buffer(96)
assert library.nvmlDeviceGetName(handle, name, 96) == 0 and b"H100" in name.value
assert library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(4), ctypes.byref(handle)) != 0
assert library.nvmlDeviceGetTemperature(handle) != 0
found = subprocess.run([sys.executable, "-m", "engine.look"], input=b"hello", capture_output=True)
assert found.returncode == 0 and found.stdout.split() == [b"4", b"whatever", b"hello"], found
assert subprocess.run(args=[sys.executable, "-c", "raise SystemExit(3)"], check=False).returncode == 3
assert subprocess.run([sys.executable, "-m", "engine.none"], input=b"", capture_output=True).returncode == 1
"""


def served(tmp_path: Path, script: str, world_size: int = 1) -> Profile:
    """The profile of a script beside the engine."""
    package = tmp_path / "engine"
    package.mkdir()
    (package / "__init__.py").write_text(ENGINE)
    (package / "look.py").write_text(LOOK)
    path = tmp_path / "serve.py"
    path.write_text(script)
    made, _ = profile(ProfileRequest(str(path), world_size=world_size))
    return made


def moved(made: Profile, name: str) -> int:
    """Bytes that the kernels of this name move."""
    found = {kernel[0]: kernel[4] for kernel in made.kernels}
    return int(found[name])


def test_operators_that_are_not_installed_do_what_they_are_known_for(tmp_path: Path) -> None:
    made = served(tmp_path, SERVE)
    attended = 4 * SEQUENCES * QUERIES * KEYS * HEADS * HEAD
    # Under inference mode `linear` is a product, too; an operator in Python is what it calls.
    assert flops(made, "forward") == attended + 2 * 2 * TOKENS * WIDTH * WIDTH + 2
    rows = TOKENS * WIDTH * BF16
    assert moved(made, "_C.fused_add_rms_norm") == 4 * rows + WIDTH * BF16
    tokens = TOKENS * 2 * 8 * BF16
    assert moved(made, "_C_cache_ops.reshape_and_cache_flash") == 2 * 2 * tokens + TOKENS * 8
    cache = 2 * SEQUENCES * KEYS * GROUPS * HEAD * BF16
    numbers = 4 * (HEADS * TOKENS + SEQUENCES + 1 + SEQUENCES + SEQUENCES)
    assert moved(made, "_vllm_fa2_C.varlen_fwd") == cache + 2 * TOKENS * HEADS * HEAD * BF16 + numbers
    # What nobody knows is said, by its name: what its fake returns isn't what it does.
    assert set(made.unknown) == {"_C.doubled", "engine.foreign"}


def test_experts_are_products_of_the_choices_made() -> None:
    import torch

    from cosim.profiler.inside.serving_kernels import carried_out

    tokens, chosen, experts, inner, columns = 3, 2, 8, 16, 32
    rows = torch.empty(tokens, inner, dtype=torch.bfloat16)
    weights = torch.empty(experts, columns, inner, dtype=torch.bfloat16)
    out = torch.empty(tokens, chosen, columns, dtype=torch.bfloat16)
    given = [rows, weights, out, *[None] * 7, columns, inner, 0, tokens * chosen]
    done = carried_out("triton.fused_moe_kernel", given, lambda _: None)
    assert done.flops == tokens * chosen * 2 * inner * columns
    # Six choices can't be of eight experts: two experts' weights stay unread.
    read = tokens * inner + 6 * columns * inner
    assert done.moved == (read + tokens * chosen * columns) * BF16
    assert done.cost("triton.fused_moe_kernel", given).shape == (6, 1, inner, columns)


def test_lengths_that_nobody_knows_are_taken_for_the_longest(tmp_path: Path) -> None:
    made = served(
        tmp_path,
        SERVE.replace(f"[{KEYS}] * {SEQUENCES}", f"[{KEYS}] * {SEQUENCES}").replace(
            "attend(lengths)", "attend(some(2).int())"
        ),
    )
    attended = 4 * SEQUENCES * QUERIES * 64 * HEADS * HEAD
    assert flops(made, "forward") == attended + 2 * 2 * TOKENS * WIDTH * WIDTH + 2
    assert any("lengths of sequences" in text for text in made.assumed)


def test_a_library_and_another_python_see_the_same_machine(tmp_path: Path) -> None:
    served(tmp_path, ASK + SERVE, world_size=4)
