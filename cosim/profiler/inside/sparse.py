"""Sparse gradients, as embeddings with ``sparse=True`` have them: what torch's rules of fake tensors lack.

Of a sparse tensor its places count: copied, coalesced (as if all were different ones) or looked up, there are
as many as before. What is dense and has a sparse one added stays as it is. A gradient that nobody else holds
is not copied when it is accumulated: AccumulateGrad takes it over, which it can't see of fake ones.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses import fake_impls

from cosim.profiler.inside.kernels import memory_of

aten = torch.ops.aten


def install() -> None:
    """Put the rules beside torch's."""
    table: Any = fake_impls.op_implementations_dict
    table.update(
        {
            aten.clone.default: _cloned,
            aten._coalesce.default: _copied,
            aten.add_.Tensor: _added,
            aten.sparse_mask.default: _looked_up,
        }
    )


def is_sparse(tensor: Any) -> bool:
    """Whether it has a list of places."""
    return isinstance(tensor, torch.Tensor) and tensor.layout is torch.sparse_coo


def is_taken_over(func: Any, args: Any, out: Any) -> bool:
    """Whether a clone is none: the same memory, handed on."""
    return func is aten.clone.default and is_sparse(out) and memory_of(out) is memory_of(args[0])


def _cloned(mode: Any, func: Any, given: Any, **_: Any) -> Any:
    if not is_sparse(given) or torch._C._current_graph_task_id() == -1:
        return _copied(mode, func, given)
    with mode:
        return _of(given._indices(), given._values(), given.shape)


def _copied(mode: Any, func: Any, given: Any, **_: Any) -> Any:
    if not is_sparse(given):
        return NotImplemented
    with mode:
        return _of(given._indices().clone(), given._values().clone(), given.shape)


def _added(mode: Any, func: Any, to: Any, other: Any, **_: Any) -> Any:
    return to if is_sparse(other) and not is_sparse(to) else NotImplemented


def _looked_up(mode: Any, func: Any, table: Any, mask: Any, **_: Any) -> Any:
    if not is_sparse(mask) or is_sparse(table):
        return NotImplemented
    with mode:
        values = torch.empty_like(mask._values(), dtype=table.dtype)
        return _of(mask._indices().clone(), values, table.shape)


def _of(indices: Any, values: Any, shape: Any) -> Any:
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=False)
