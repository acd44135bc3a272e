"""FBGEMM's tables of embeddings, as TorchRec has them: many in one tensor, looked up by one kernel.

The CPU's build registers the kernels for GPUs, but not what shapes they give: that is said here. Of a table
the rows move that are looked up, a duplicate as often as it stands; a backward steps the optimizer as well.
Tables of several widths count by their mean. Optimizers: SGD and row-wise Adagrad, whose state is a number of
fp32 a row; tables of others are refused, as having no fake implementation. By the operators' schemas in
FBGEMM 1.8.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch._subclasses.fake_impls import register_op_impl

_KERNEL = re.compile(
    r"fbgemm[:.]+split_embedding_(?P<single>nobag_)?(?P<back>backward_)?codegen_"
    r"(forward|(?P<adagrad>rowwise_adagrad)|sgd)_(un)?weighted_pt2_wrapper"
)
_TYPES = {0: torch.float32, 1: torch.float16, 5: torch.bfloat16}
"""``SparseType`` of FBGEMM, by number."""


def install() -> None:
    """Give the kernels shapes."""
    register_op_impl(lambda func: knows(func._schema.name))(_result)


def knows(name: str) -> bool:
    """Whether an operator is one of these kernels."""
    return _KERNEL.match(name) is not None


def _result(mode: Any, func: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Rows as they are looked up; of a backward nothing: the tables have been changed."""
    given = _by_name(func, args, kwargs)
    kind = _parts(func)
    rows: tuple[int, ...] = (0,)
    if kind["single"] and not kind["back"]:  # a row for each index
        rows = given["indices"].numel(), given["D"]
    elif not kind["back"]:  # a sample's rows of all tables, each pooled, beside each other
        rows = (given["offsets"].numel() - 1) // _tables(given), given["total_D"]
    with mode:
        number = _TYPES.get(given.get("output_dtype", 0), torch.float32)
        return torch.empty(rows, dtype=number, device=given["dev_weights"].device)


def moved(func: Any, args: Any, kwargs: Any, out: Any) -> int | None:
    """Bytes of one call; None: of another operator."""
    if not knows(func._schema.name):
        return None
    given, kind = _by_name(func, args, kwargs), _parts(func)
    indices, weights = given["indices"], given["dev_weights"]
    rows = given["grad_output"] if kind["back"] else out
    width = rows.shape[1] // (1 if kind["single"] else _tables(given))
    found = _size(indices) + _size(given["offsets"]) + _size(rows)
    one = width * weights.element_size()
    if not kind["back"]:
        return int(found + indices.numel() * one)
    one += 4 if kind["adagrad"] else 0
    return int(found + 2 * indices.numel() * one)


def _parts(func: Any) -> dict[str, Any]:
    found = _KERNEL.match(func._schema.name)
    assert found is not None
    return found.groupdict()


def _by_name(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    return dict(zip((each.name for each in func._schema.arguments), args, strict=False)) | kwargs


def _tables(given: dict[str, Any]) -> int:
    return int(given["D_offsets"].numel()) - 1


def _size(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())
