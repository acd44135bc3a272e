"""What only some models have, against closed forms: sparse gradients, convolutions in groups."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import needs_torch

pytestmark = needs_torch

ROWS, WIDTH, INDICES, BAGS = 100_000, 16, 256, 64
BODY = f"""
import torch
bag = torch.nn.EmbeddingBag({ROWS}, {WIDTH}, mode="sum", sparse=True).cuda()
top = torch.nn.Conv1d({WIDTH}, 32, 3, groups=4, bias=False).cuda()
optimizer = OPTIMIZER
for _ in range(3):
    indices = torch.randint(0, {ROWS}, ({INDICES},)).cuda()
    optimizer.zero_grad()
    found = bag(indices, torch.arange(0, {INDICES}, {INDICES // BAGS}).cuda())
    top(found.t()[None]).sum().backward()
    optimizer.step()
"""
SGD = "torch.optim.SGD([*bag.parameters(), *top.parameters()], lr=0.1)"
SPARSE_ADAM = "torch.optim.SparseAdam(bag.parameters(), lr=0.1)"


def kernels(folder: Path, optimizer: str) -> tuple[list[list[object]], Counter[str]]:
    """Name, phase, FLOPs and bytes of each kernel; names in the optimizer."""
    (folder / "train.py").write_text(BODY.replace("OPTIMIZER", optimizer))
    made, _ = profile(ProfileRequest(str(folder / "train.py")))
    found = [
        [made.kernels[k][0], step.phase, made.kernels[k][3], made.kernels[k][4]]
        for step in made.programs[0].steps
        for k, _ in step.kernels
    ]
    return found, Counter(str(name) for name, phase, *_ in found if phase == "optimizer")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[list[object]]:
    return kernels(tmp_path_factory.mktemp("sgd"), SGD)[0]


def moved(made: list[list[object]], name: str) -> list[object]:
    return [one[3] for one in made if one[0] == name]


def test_rows_that_are_looked_up_are_moved_and_not_the_table(made: list[list[object]]) -> None:
    rows, places = INDICES * WIDTH * 4, INDICES * 8
    # Indices and offsets read, rows read, sums written, and of each index its bag, of each bag its size.
    assert moved(made, "aten._embedding_bag") == [places + BAGS * 8 + rows + BAGS * (WIDTH * 4 + 8) + places]
    # The step reads the gradient's rows and places, and reads and writes as many rows of the table.
    assert rows + places + 2 * rows in moved(made, "aten.add_")
    assert not any(one[3] >= ROWS * WIDTH * 4 for one in made if isinstance(one[3], int))


def test_a_sparse_gradient_is_taken_over_as_accumulategrad_does(made: list[list[object]]) -> None:
    assert not moved(made, "aten.clone")


def test_groups_divide_both_products_of_a_convolutions_backward(made: list[list[object]]) -> None:
    forward = 2 * (BAGS - 2) * 32 * (WIDTH // 4) * 3
    assert [(one[1], one[2]) for one in made if one[2]] == [("forward", forward), ("backward", 2 * forward)]


def test_adam_of_sparse_gradients_looks_its_moments_up(tmp_path: Path) -> None:
    found, steps = kernels(tmp_path, SPARSE_ADAM)
    assert steps["aten.sparse_mask"] == 2
    assert steps["aten.add_"] >= 3  # both moments, and the table
    assert not any(one[3] >= ROWS * WIDTH * 4 for one in found if isinstance(one[3], int))
