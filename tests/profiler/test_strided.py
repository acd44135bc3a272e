"""Which kernels go through their elements one by one: as PyTorch's launches said on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs PyTorch: pip install '.[profile]'")

import torch

from cosim.profiler.inside.strided import elements_one_by_one

aten = torch.ops.aten
X, NARROW = torch.zeros(4, 6, 8), torch.zeros(4, 6, 8, dtype=torch.bfloat16)
TURNED = torch.zeros(6, 4, 8).transpose(0, 1)


def found(func: Any, *args: Any, out: torch.Tensor) -> int:
    inputs = [one for one in args if isinstance(one, torch.Tensor)]
    return elements_one_by_one(func, args, inputs, (), (out,))


@pytest.mark.parametrize(
    ("func", "args", "out", "elements"),
    [
        (aten.add.Tensor, (X, X), X, 0),
        (aten.add.Tensor, (TURNED, TURNED), TURNED, 0),  # in the same order
        (aten.add.Tensor, (X, TURNED), X, 192),
        (aten.mul.Tensor, (X, torch.zeros(8)), X, 192),  # broadcast
        (aten.mul.Tensor, (X, torch.tensor(2.0)), X, 0),  # a number of the host's
        (aten.add.Tensor, (X, NARROW), X, 192),
        (aten.neg.default, (X[..., :4],), X[..., :4].contiguous(), 96),
        (aten._to_copy.default, (NARROW,), X, 192),
        (aten._to_copy.default, (X,), NARROW, 0),  # bfloat16_copy_kernel_cuda
        (aten.clone.default, (TURNED,), X, 192),
        (aten.gelu.default, (NARROW,), NARROW, 0),
        (aten.sum.default, (TURNED,), torch.zeros(()), 0),  # not element by element
        (aten.where.self, (X > 0, X, X), X, 0),
    ],
)
def test_operands_that_lie_differently_or_are_of_several_types(
    func: Any, args: tuple[torch.Tensor, ...], out: torch.Tensor, elements: int
) -> None:
    assert found(func, *args, out=out) == elements


def test_what_is_joined_counts_if_it_has_gaps() -> None:
    for parts, elements in (([X, X], 0), ([X[..., :4], X[..., 4:]], 192)):
        out = torch.cat(parts)
        assert elements_one_by_one(aten.cat.default, (parts,), parts, (), (out,)) == elements
