"""Tokens over experts: what `--routing` says is what is computed and exchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.errors import InputError
from cosim.profiler.distributions import read_counts
from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import SCRIPTS, needs_torch

pytestmark = needs_torch

_LAYER = """
import torch
gate = torch.nn.Linear(16, 8).cuda()
experts = torch.nn.ModuleList(torch.nn.Linear(16, 16, bias=False) for _ in range(8)).cuda()
optimizer = torch.optim.SGD([*gate.parameters(), *experts.parameters()], lr=0.1)
for _ in range(3):
    x = torch.randn(64, 16, device="cuda")
    weight, chosen = gate(x).softmax(-1).topk(2)
    out = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        place, row = torch.where((chosen == number).t())
        out.index_add_(0, row, expert(x[row]) * weight[row, place, None])
    out.sum().backward()
    optimizer.step()
"""


_ACCURACY = """
import torch
model = torch.nn.Linear(8, 1000).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    labels = torch.randint(0, 1000, (32,)).cuda()
    scores = model(torch.randn(32, 8, device="cuda"))
    best = scores.topk(5).indices.t()
    right = best.eq(labels.view(1, -1).expand_as(best)).float().sum().item()
    torch.nn.functional.cross_entropy(scores, labels).backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def routing() -> Any:
    """Imports torch, which takes seconds: of the processes that run tests, only in one that gets here."""
    from cosim.profiler.inside import routing

    return routing


def rows(folder: Path, routing: str) -> list[int]:
    """Tokens of each expert, by the products of the forward that have its shape."""
    (folder / "train.py").write_text(_LAYER)
    made, _ = profile(ProfileRequest(str(folder / "train.py"), routing=routing))
    assert any(text.endswith("128 over 8 experts") for text in made.assumed)
    return [
        made.kernels[k][6]
        for step in made.programs[0].steps
        if step.phase == "forward"
        for k, _ in step.kernels
        if made.kernels[k][0] == "aten.mm" and made.kernels[k][7:] == (16, 16)
    ]


def test_even_zipf_and_counts_of_a_file_reach_the_experts(tmp_path: Path) -> None:
    assert rows(tmp_path, "even") == [16] * 8
    shares = [k**-1.1 for k in range(1, 9)]
    found = rows(tmp_path, "zipf:1.1")
    assert sum(found) == 128
    assert all(abs(n - 128 * share / sum(shares)) < 1 for n, share in zip(found, shares, strict=True))
    (tmp_path / "counts").write_text("# layer 0\n1 1 2 4\n4, 2, 1, 1\n")
    assert sorted(rows(tmp_path, str(tmp_path / "counts"))) == sorted([8, 8, 16, 32] * 2)


def test_an_accuracy_among_the_best_five_is_no_routing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_ACCURACY)
    made, _ = profile(ProfileRequest(str(tmp_path / "train.py")))
    assert not any("routed" in text for text in made.assumed)
    assert any("the value of a tensor isn't known" in text for text in made.assumed)


@given(st.integers(1, 500), st.lists(st.floats(0, 100), min_size=1, max_size=20).filter(sum), st.data())
def test_counts_add_up_and_none_is_over_the_most(
    routing: Any, total: int, shares: list[float], data: st.DataObject
) -> None:
    most = data.draw(st.integers(-(-total // len(shares)), total))
    found = routing.divided(total, shares, most)
    assert sum(found) == total
    assert max(found) <= most


@given(st.integers(2, 60), st.integers(2, 12), st.data(), st.sampled_from(["even", "zipf:1.1", "zipf:4"]))
def test_each_token_gets_different_experts(
    routing: Any, tokens: int, experts: int, data: st.DataObject, how: str
) -> None:
    each = data.draw(st.integers(1, experts - 1))
    chosen = routing.TokenRouting(how, lambda _: None).experts(tokens, each, experts).tolist()
    assert all(len(set(row)) == each for row in chosen)
    assert len(chosen) == tokens


@pytest.mark.parametrize("said", ["zipf:", "zipf:-1", "uniform", "no/such/file"])
def test_a_routing_that_is_none_is_refused(said: str) -> None:
    with pytest.raises(InputError, match=r"zipf:1\.1"):
        profile(ProfileRequest(str(SCRIPTS / "experts.py"), routing=said))


@pytest.mark.parametrize("text", ["", "1 two 3", "0 0", "-1 2"])
def test_a_file_without_counts_names_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "counts").write_text(text)
    with pytest.raises(InputError, match="counts:1: " if text else "no counts in it"):
        read_counts(str(tmp_path / "counts"))
