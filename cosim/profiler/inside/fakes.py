"""The two costliest steps of a fake tensor's dispatch, shorter: the key of what is remembered, and a result.

torch remembers an operator's result by its operands' metadata and makes another of the same. For dense
tensors of known sizes (all that training scripts have) the key is one tuple here, and a result that is no
view is made without entering and leaving kernel mode. Anything else goes torch's own way.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

_PLAIN = frozenset(
    {int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
)
_KEY_OF = FakeTensorMode._prep_args_for_hash
_RESULT_OF = FakeTensorMode._get_output_tensor_from_cache_entry


def install() -> None:
    """Put both in place of torch's."""
    FakeTensorMode._prep_args_for_hash = _prepare  # type: ignore[method-assign]
    FakeTensorMode._get_output_tensor_from_cache_entry = _output  # type: ignore[method-assign]


def _prepare(self: Any, result: list[Any], args: Any, state: Any, kept: list[Any]) -> None:
    if isinstance(args, dict):
        result.append((dict, *args))
        args = args.values()
    else:
        result.append((type(args), len(args)))
    for arg in args:
        kind = type(arg)
        if kind is FakeTensor:
            if arg.fake_mode is not self or arg.constant is not None:
                raise fake_tensor._BypassDispatchCache("of another mode, or with known values")
            if arg._has_symbolic_sizes_strides or arg.layout is not torch.strided:
                _KEY_OF(self, result, (arg,), state, kept)
                continue
            flags = arg.requires_grad, arg.is_conj(), arg.is_neg(), arg.is_inference(), arg.is_quantized
            result.append(
                (arg.dtype, arg.shape, arg.stride(), arg.fake_device, arg.storage_offset(),
                 arg.untyped_storage().nbytes(), *flags)
            )  # fmt: skip
        elif kind in _PLAIN:
            result.append((kind, arg))
        elif kind is list or kind is tuple:
            _prepare(self, result, arg, state, kept)
        else:
            _KEY_OF(self, result, (arg,), state, kept)


def _output(self: Any, state: Any, entry: Any, key: Any, func: Any, args: Any) -> Any:
    metadata = entry.metadata
    if (
        metadata is None
        or entry.inplace_idx is not None
        or func.is_view
        or metadata.is_conj
        or metadata.is_neg
    ):
        return _RESULT_OF(self, state, entry, key, func, args)
    sizes = (*metadata.shape, *metadata.stride)
    if any(type(size) is not int for size in sizes) or self.shape_env is not None:
        return _RESULT_OF(self, state, entry, key, func, args)
    with torch._C._DisableTorchDispatch():
        empty = torch.empty_strided(
            metadata.shape, metadata.stride, dtype=metadata.dtype, device="meta",
            requires_grad=metadata.requires_grad,
        )  # fmt: skip
    return FakeTensor(self, empty, metadata.device)
