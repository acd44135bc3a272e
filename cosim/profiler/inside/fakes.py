"""The costliest steps of a fake tensor's dispatch, shorter: what is remembered, views, and what joins parts.

torch remembers an operator's result by its operands' metadata and makes another of the same. For dense
tensors of known sizes (all that training scripts have) the key is one tuple here, and a result that is no
view is made without entering and leaving kernel mode. Views are not remembered but taken at once; parts of a
tensor where no gradients are asked for (a shard of each of hundreds of ranks) without any dispatch: such a
part has no ``_base``. Anything else goes torch's own way.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

_C: Any = torch._C
_PLAIN = frozenset(
    {int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
)
_VIEWS = frozenset(
    {
        "_reshape_alias", "alias", "detach", "diagonal", "expand", "permute", "select", "slice", "split",
        "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unsqueeze", "view",
    }
)  # fmt: skip
"""Operators that do no more than give a tensor's memory other sizes."""
_KEY_OF = FakeTensorMode._prep_args_for_hash
_RESULT_OF = FakeTensorMode._get_output_tensor_from_cache_entry


def install(mode: FakeTensorMode, recorder: Any) -> None:
    """Put them in place of torch's; ``recorder``: the mode that sees every operator."""
    FakeTensorMode._prep_args_for_hash = _prepare  # type: ignore[method-assign]
    FakeTensorMode._get_output_tensor_from_cache_entry = _output  # type: ignore[method-assign]
    _parts(mode, recorder)


def view(mode: FakeTensorMode, func: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operator that only takes a view; None where it has to go torch's own way."""
    base: Any = args[0] if args else None
    if func._opname not in _VIEWS or kwargs or not _is_dense(mode, base) or not _has_no_tensors(args[1:]):
        return None
    found = _on_meta(mode, func, args)
    if isinstance(found, torch.Tensor):
        return _wrapped(mode, found, base.fake_device)
    return [_wrapped(mode, each, base.fake_device) for each in found]


def empty(
    mode: FakeTensorMode, shape: Any, strides: Any, dtype: torch.dtype, device: torch.device
) -> FakeTensor:
    """A tensor that nobody has written, without any dispatch."""
    with _C._DisableTorchDispatch():
        bare = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
    return _wrapped(mode, bare, device)


def joined(mode: FakeTensorMode, parts: Any, *given: Any) -> Any:
    """``cat`` of dense parts; None where it has to go torch's own way."""
    home: Any = parts[0].fake_device if parts and type(parts[0]) is FakeTensor else None
    if not all(_is_dense(mode, each) and each._fake_device == home for each in parts):
        return None
    return _wrapped(mode, _on_meta(mode, torch.ops.aten.cat.default, (parts, *given)), home)


def _is_dense(mode: FakeTensorMode, tensor: Any) -> bool:
    return (
        type(tensor) is FakeTensor
        and tensor.fake_mode is mode
        and tensor.constant is None
        and tensor.layout is torch.strided
        and not tensor._has_symbolic_sizes_strides
        and not tensor.is_conj()
        and not tensor.is_neg()
    )


def _has_no_tensors(values: Any) -> bool:
    return all(
        type(each) in _PLAIN or (type(each) in (list, tuple) and _has_no_tensors(each)) for each in values
    )


def _on_meta(mode: FakeTensorMode, func: Any, args: Any) -> Any:
    """What the kernel of tensors without memory gives."""
    with fake_tensor.in_kernel_invocation_manager(mode):
        return func(*args)


def _wrapped(mode: Any, bare: torch.Tensor, device: torch.device) -> FakeTensor:
    """A fake tensor, with the attributes that torch's own constructor gives the first one of its device."""
    blanks = mode.__dict__.setdefault("_cosim_blanks", {})
    blank = blanks.get(device)
    if blank is None:
        made = FakeTensor(mode, bare, device)
        blanks[device] = {**vars(made)}
        return made
    made = torch.Tensor._make_subclass(
        FakeTensor, bare, bare.requires_grad, dispatch_device=True, device_for_backend_keys=device
    )  # type: ignore[call-overload]
    _C._set_warn_deprecated_on_mutable_data_ptr(made)
    made.__dict__.update(blank)
    return made  # type: ignore[no-any-return]


def _parts(mode: FakeTensorMode, recorder: Any) -> None:
    """``narrow`` and ``[a:b]`` without gradients, and ``record_stream``: nothing that is recorded."""
    narrow, item, record_stream = FakeTensor.narrow, FakeTensor.__getitem__, FakeTensor.record_stream

    def is_watched_only(tensor: Any) -> bool:
        return (
            not torch.is_grad_enabled()
            and _C._len_torch_dispatch_stack() == 2
            and _C._get_dispatch_stack_at(1) is recorder
            and _is_dense(mode, tensor)
        )

    def part(tensor: Any, dim: int, start: int, length: int) -> Any:
        shape, stride = tensor.shape, tensor.stride()
        shape = (*shape[:dim], length, *shape[dim + 1 :])
        with _C._DisableTorchDispatch():
            bare = torch.empty_strided(shape, stride, dtype=tensor.dtype, device="meta")
            bare.set_(tensor.untyped_storage(), tensor.storage_offset() + start * stride[dim], shape, stride)
        return _wrapped(mode, bare, tensor.fake_device)

    def narrowed(tensor: Any, *args: Any, **given: Any) -> Any:
        if len(args) == 3 and type(args[0]) is type(args[1]) is type(args[2]) is int:
            dim, start, length = args
            fits = 0 <= dim < tensor.dim() and start >= 0 <= length and start + length <= tensor.shape[dim]
            if fits and is_watched_only(tensor):
                return part(tensor, dim, start, length)
        return narrow(tensor, *args, **given)

    def taken(tensor: Any, places: Any) -> Any:
        if type(places) is slice and places.step is None and tensor.dim() and is_watched_only(tensor):
            ends = places.start, places.stop
            if all(end is None or type(end) is int for end in ends):
                start, stop, _ = places.indices(tensor.shape[0])
                return part(tensor, 0, start, max(stop - start, 0))
        return item(tensor, places)

    def streamed(tensor: Any, stream: Any) -> None:
        if not is_watched_only(tensor):
            record_stream(tensor, stream)

    FakeTensor.narrow = narrowed  # type: ignore[assignment,method-assign]
    FakeTensor.__getitem__ = taken  # type: ignore[assignment,method-assign]
    FakeTensor.record_stream = streamed  # type: ignore[assignment,method-assign]


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
    return _wrapped(self, empty, metadata.device)
