"""What each operator is written down as: bytes by hand, as CUDA's kernels read and write them."""

from __future__ import annotations

from collections import Counter

from tests.profiler.profiled import needs_torch, profiled

N, ROWS, COLUMNS, TOUCHED = 4096, 64, 1000, 16  # operators.py's
F32, BF16, I64 = 4, 2, 8
TABLE = ROWS * COLUMNS * F32
SOME = TOUCHED * COLUMNS * F32
LABELS = ROWS * I64
MATRIX = 8 * 8 * F32


@needs_torch
def test_every_byte_is_counted_once_and_only_if_it_moves() -> None:
    made = profiled("operators.py", world_size=1)
    moved = Counter(
        (*made.kernels[k][:3], made.kernels[k][4]) for s in made.programs[0].steps for k, _ in s.kernels
    )
    told = {
        "pow": 2 * N * F32,
        "mul": 2 * N * F32,  # x times x reads x once
        "add_": 3 * N * F32,
        "copy_": 2 * N * F32,  # what was there is not read
        "zero_": N * F32,
        "zeros_like": N * F32,  # of which only the shape is looked at
        "_to_copy": N * (F32 + BF16),
        "clone": 2 * N * F32,  # the view before is no kernel
        "index_put_": 2 * SOME + TOUCHED * I64,  # the rows that change, not the table
        "index_add_": 3 * SOME + TOUCHED * I64,
        "index_select": 2 * SOME + TOUCHED * I64,
        "gt": TABLE + ROWS * COLUMNS,
        "masked_fill_": 2 * TABLE + ROWS * COLUMNS,
        "_log_softmax": 2 * TABLE,
        "nll_loss_forward": LABELS + 2 * F32,  # a number of each row; and the sum, and how many
        "nll_loss_backward": TABLE + LABELS + 2 * F32,
        "_log_softmax_backward_data": 3 * TABLE,
        "_foreach_add_": 4 * N * F32,  # two tensors, each the other's operand
        "_fused_adamw_": 7 * MATRIX + F32,  # gradients are only read; and the step's number
    }  # fmt: skip
    for name, size in told.items():
        assert moved[f"aten.{name}", "memory", "fp32", size], name
    assert moved["aten.add", "memory", "fp32", 3 * N * F32], "out= is written, not read"
    assert moved["aten.add", "memory", "fp32", (2 * N + 64) * F32], "an expanded row counts once"


@needs_torch
def test_grouped_products_are_products_of_the_mean_size() -> None:
    made = profiled("operators.py", world_size=1)
    flops = 2 * 256 * 64 * 32
    moved = (256 * 64 + 4 * 64 * 32 + 256 * 32) * BF16 + 4 * 4
    assert ("aten._grouped_mm", "matmul", "bf16", flops, moved, 4, 64, 64, 32) in made.kernels
