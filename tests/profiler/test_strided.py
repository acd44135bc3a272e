"""Which kernels go through their elements one by one: as PyTorch's launches said on a GPU."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="needs PyTorch: pip install '.[profile]'")


def found(func: Any, *args: Any, out: Any) -> int:
    import torch

    from cosim.profiler.inside.strided import elements_one_by_one

    inputs = [one for one in args if isinstance(one, torch.Tensor)]
    return elements_one_by_one(func, args, inputs, (), (out,))


def test_operands_that_lie_differently_or_are_of_several_types(torch: Any) -> None:
    aten = torch.ops.aten
    x, narrow = torch.zeros(4, 6, 8), torch.zeros(4, 6, 8, dtype=torch.bfloat16)
    turned = torch.zeros(6, 4, 8).transpose(0, 1)
    for func, args, out, elements in (
        (aten.add.Tensor, (x, x), x, 0),
        (aten.add.Tensor, (turned, turned), turned, 0),  # in the same order
        (aten.add.Tensor, (x, turned), x, 192),
        (aten.mul.Tensor, (x, torch.zeros(8)), x, 192),  # broadcast
        (aten.mul.Tensor, (x, torch.tensor(2.0)), x, 0),  # a number of the host's
        (aten.add.Tensor, (x, narrow), x, 192),
        (aten.neg.default, (x[..., :4],), x[..., :4].contiguous(), 96),
        (aten._to_copy.default, (narrow,), x, 192),
        (aten._to_copy.default, (x,), narrow, 0),  # bfloat16_copy_kernel_cuda
        (aten.clone.default, (turned,), x, 192),
        (aten.gelu.default, (narrow,), narrow, 0),
        (aten.sum.default, (turned,), torch.zeros(()), 0),  # not element by element
        (aten.where.self, (x > 0, x, x), x, 0),
    ):
        assert found(func, *args, out=out) == elements, (func, args)


def test_what_is_joined_counts_if_it_has_gaps(torch: Any) -> None:
    from cosim.profiler.inside.strided import elements_one_by_one

    x = torch.zeros(4, 6, 8)
    for parts, elements in (([x, x], 0), ([x[..., :4], x[..., 4:]], 192)):
        out = torch.cat(parts)
        assert elements_one_by_one(torch.ops.aten.cat.default, (parts,), parts, (), (out,)) == elements
