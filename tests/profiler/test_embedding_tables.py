"""FBGEMM's tables without FBGEMM: kernels of its schemas, and what they move."""

from __future__ import annotations

from pathlib import Path

from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import needs_torch

TABLES, BATCH, EACH, WIDTH, ROWS = 3, 4, 2, 16, 1000

SCRIPT = f"""
import torch
where = "split_embedding_codegen_forward_unweighted_pt2_wrapper"
back = "split_embedding_backward_codegen_rowwise_adagrad_unweighted_pt2_wrapper"
told = "Tensor dev_weights, Tensor D_offsets, {{}}Tensor indices, Tensor offsets, int output_dtype"
torch.library.define(f"fbgemm::{{where}}", f"({{told.format('SymInt total_D, ')}}) -> Tensor")
torch.library.define(f"fbgemm::{{back}}", f"(Tensor grad_output, {{told.format('')}}) -> Tensor")
cuda = dict(device="cuda")
weights = torch.empty({TABLES * ROWS * WIDTH}, dtype=torch.float16, **cuda)
widths = torch.arange(0, {TABLES * WIDTH} + 1, {WIDTH}, dtype=torch.int32, **cuda)
indices = torch.zeros({TABLES * BATCH * EACH}, dtype=torch.int64, **cuda)
offsets = torch.arange(0, {TABLES * BATCH * EACH} + 1, {EACH}, **cuda)
model = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    found = getattr(torch.ops.fbgemm, where)(weights, widths, {TABLES * WIDTH}, indices, offsets, 1)
    assert found.shape == ({BATCH}, {TABLES * WIDTH}) and found.dtype is torch.float16, found
    getattr(torch.ops.fbgemm, back)(found, weights, widths, indices, offsets, 1)
    model(torch.ones(2, 2, **cuda)).sum().backward()
    optimizer.step()
"""


@needs_torch
def test_rows_that_are_looked_up_move_and_not_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    made, _ = profile(ProfileRequest(str(path)))
    moved = {row[0]: row[4] for row in made.kernels if row[0].startswith("fbgemm")}
    indices = TABLES * BATCH * EACH
    told = 8 * indices + 8 * (TABLES * BATCH + 1)
    pooled = BATCH * TABLES * WIDTH * 2
    assert moved == {
        "fbgemm.split_embedding_codegen_forward_unweighted_pt2_wrapper": (
            told + indices * WIDTH * 2 + pooled
        ),
        "fbgemm.split_embedding_backward_codegen_rowwise_adagrad_unweighted_pt2_wrapper": (
            told + pooled + 2 * indices * (WIDTH * 2 + 4)
        ),
    }
    assert not made.unknown
