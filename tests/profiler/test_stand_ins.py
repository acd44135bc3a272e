"""Libraries that can't be installed without CUDA: scripts that import them are profiled all the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import flops, needs_torch

pytestmark = needs_torch

ATTENTION = """
import torch
import flash_attn.layers.rotary
from flash_attn import flash_attn_kvpacked_func, flash_attn_qkvpacked_func
from flash_attn.flash_attn_interface import flash_attn_func, flash_attn_varlen_func


def some(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)


q, k, v = some(2, 32, 8, 16), some(2, 32, 2, 16), some(2, 32, 2, 16)
ends = torch.tensor([0, 16, 64], dtype=torch.int32, device="cuda")
rows = some(64, 8, 16)
model = torch.nn.Linear(16, 16, device="cuda", dtype=torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters())
for _ in range(2):
    out = flash_attn_func(q, k, v, causal=True)
    assert out.shape == q.shape == flash_attn_qkvpacked_func(some(2, 32, 3, 8, 16)).shape
    assert flash_attn_kvpacked_func(q, some(2, 32, 2, 2, 16)).shape == q.shape
    packed = flash_attn_varlen_func(rows, rows, rows, ends, ends, 48, 48, causal=True)
    assert packed.shape == rows.shape
    model(out + packed.sum()).sum().backward()
    optimizer.step()
"""


@pytest.mark.skipif(importlib.util.find_spec("flash_attn") is not None, reason="flash_attn is installed")
def test_flash_attention_is_torchs_flash_kernel(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(ATTENTION)
    made, _ = profile(ProfileRequest(str(path)))
    dense, sequences = 4 * 2 * 8 * 32 * 32 * 16, 4 * 8 * (16 * 16 + 48 * 48) * 16
    product = 2 * (2 * 32 * 8) * 16 * 16
    assert flops(made, "forward") == 3 * dense + sequences + product
    assert flops(made, "backward") == 2 * product + (dense + sequences) * 5 // 2


@pytest.mark.skipif(importlib.util.find_spec("triton") is not None, reason="triton is installed")
def test_a_folder_of_a_librarys_name_beside_the_script_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "triton" / "python").mkdir(parents=True)
    path = tmp_path / "train.py"
    path.write_text("""
import torch, triton
assert triton.cdiv(7, 2) == 4
weight = torch.nn.Parameter(torch.ones(4, 4, device="cuda"))
optimizer = torch.optim.SGD([weight])
for _ in range(2):
    (weight @ weight).sum().backward()
    optimizer.step()
""")
    assert flops(profile(ProfileRequest(str(path)))[0], "forward") == 2 * 4**3
