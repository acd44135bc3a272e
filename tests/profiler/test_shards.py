"""A tensor's parts for each of many ranks, taken and joined as DeepSpeed's ZeRO-3 does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import needs_torch

pytestmark = needs_torch

RANKS, PART = 6, 5
SCRIPT = f"""
import torch

ranks, part = {RANKS}, {PART}
flat = torch.empty(ranks * part, device="cuda", dtype=torch.bfloat16)
table = torch.empty(4, 6, device="cuda").t()


def check(view, shape, stride, offset):
    assert (tuple(view.shape), view.stride(), view.storage_offset()) == (shape, stride, offset), view
    assert view.device == table.device and not view.requires_grad


def train():
    with torch.no_grad():
        check(flat.narrow(0, 5, 5), (5,), (1,), 5)
        check(flat[20:99], (10,), (1,), 20)
        check(flat[-4:-1], (3,), (1,), 26)
        check(flat[9:3], (0,), (1,), 9)
        check(table.narrow(1, 1, 2), (6, 2), (1, 6), 6)
        check(table[2:4], (2, 4), (1, 6), 2)
        check(table.chunk(3)[2], (2, 4), (1, 6), 4)
        check(table.unbind(1)[3], (6,), (1,), 18)
        check(table.t().view(2, 12)[1:], (1, 12), (12, 1), 12)
        check(table[None].expand(3, 6, 4).transpose(0, 2), (4, 6, 3), (6, 1, 0), 0)
        for wrong in (lambda: flat.narrow(0, 28, 5), lambda: flat.narrow(1, 0, 1), lambda: flat.view(7, 7)):
            try:
                wrong()
            except (IndexError, RuntimeError):
                continue
            raise AssertionError("no error")
        parts = [flat.narrow(0, rank * part, part) for rank in range(ranks)]
        parts[2].fill_(1)
        joined = torch.cat(parts)
        for each in parts:
            each.record_stream(torch.cuda.current_stream())
        assert joined.shape == flat.shape and joined.dtype == flat.dtype
        known = torch.arange(8, device="cuda")
        assert known[2:5].tolist() == [2, 3, 4] and known.narrow(0, 1, 2).tolist() == [1, 2]
    weights = torch.ones(4, 2, device="cuda", requires_grad=True)
    taken = weights.narrow(0, 1, 2)
    taken.sum().backward()
    assert weights.grad.shape == (4, 2) and taken._base is weights


model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    train()
    model(torch.randn(2, 4, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_parts_lie_where_torch_says_and_are_moved_once(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    made, _ = profile(ProfileRequest(str(path)))
    steps = made.programs[0].steps
    moved = Counter((made.kernels[k][0], made.kernels[k][4]) for step in steps for k, _ in step.kernels)
    assert moved["aten.cat", 2 * RANKS * PART * 2] == 1  # each read once, and written
    assert moved["aten.fill_", PART * 2] == 1  # a part, not what it is a part of
    # Two known tensors are read, each in one copy.
    assert sum(step.stream == "host" for step in steps) == 2
