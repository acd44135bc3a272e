"""What torch dispatches, with the bytes that each operator reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_MOVE_NOTHING = {"view", "split", "split_with_sizes", "slice", "t", "transpose", "detach", "expand", "alias"}


class _Bytes(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.launches = self.size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ not in _MOVE_NOTHING:
            tensors = [each for each in tree_leaves((args, kwargs, out)) if isinstance(each, torch.Tensor)]
            self.launches += 1
            self.size += sum(each.numel() * each.element_size() for each in tensors)
        return out


def dispatched(run: Callable[[], object]) -> tuple[int, int]:
    """Operators that aren't views, and bytes of their operands and results."""
    with _Bytes() as found:
        run()
    return found.launches, found.size
