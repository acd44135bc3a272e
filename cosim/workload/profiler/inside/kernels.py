"""What an operator costs: its kind, FLOPs, bytes and the shape of its matrix product, from its arguments.

FLOPs are those of ``torch.utils.flop_counter``'s registry. Bytes are each operand and result once, at the
elements that are really there (an expanded tensor counts its own); for look-ups, the rows that are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import flop_registry


class Cost(NamedTuple):
    """One kernel: what the profile keeps of it. ``shape`` is (batch, rows, inner, columns)."""

    name: str
    kind: str
    dtype: str
    flops: int
    bytes_moved: int
    shape: tuple[int, int, int, int]


_DTYPES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float8_e4m3fn: "fp8",
    torch.float8_e5m2: "fp8",
}


def number_type(dtype: torch.dtype, *, matmul: bool = False) -> str:
    """The compute model's name of a number type; fp32 products may run as tf32, as torch is told."""
    name = _DTYPES.get(dtype, "fp32")
    if name == "fp32" and matmul and torch.backends.cuda.matmul.allow_tf32:
        return "tf32"
    return name


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of the elements that a tensor really has: an expanded dimension counts once."""
    numbers = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if stride or length == 0:
            numbers *= length
    return numbers * tensor.element_size()


def _product(a: torch.Tensor, b: torch.Tensor) -> tuple[int, int, int, int]:
    return (prod(a.shape[:-2]), a.shape[-2], a.shape[-1], b.shape[-1])


def _convolution(out: torch.Tensor, weight: torch.Tensor, groups: int) -> tuple[int, int, int, int]:
    """As the matrix product that it amounts to: a row for each place of the result."""
    rows = out.shape[0] * prod(out.shape[2:])
    return (groups, rows, prod(weight.shape[1:]), weight.shape[0] // groups)


_Shape = Callable[[Sequence[Any], Any], tuple[int, int, int, int]]
_SHAPES: dict[str, _Shape] = {
    "mm": lambda a, out: _product(a[0], a[1]),
    "bmm": lambda a, out: _product(a[0], a[1]),
    "addmm": lambda a, out: _product(a[1], a[2]),
    "baddbmm": lambda a, out: _product(a[1], a[2]),
    "_scaled_mm": lambda a, out: _product(a[0], a[1]),
    "convolution": lambda a, out: _convolution(out, a[1], a[8]),
    "convolution_backward": lambda a, out: _convolution(a[0], a[2], a[9]),
}
_ATTENTION = ("scaled_dot_product", "flex_attention", "_efficient_attention", "_flash_attention")
_WRITE_ONLY = frozenset({"zero_", "fill_", "normal_", "uniform_", "copy_", "bernoulli_", "random_",
                         "_foreach_zero_", "_foreach_copy_", "exponential_"})  # fmt: skip
_LOOK_UPS = frozenset({"embedding", "gather", "index_select", "index", "_unsafe_index"})
_HEAVY = ("linalg_", "_linalg", "fft_", "_fft", "cdist", "_thnn_", "_cudnn_rnn", "lstm", "gru", "cholesky",
          "svd",           "grid_sampler", "_ctc_loss", "unfold_backward", "_histogram")  # fmt: skip
_OURS = frozenset(
    {"aten", "prim", "prims", "fsdp", "c10d", "_c10d_functional", "_dtensor", "debugprims", "cosim"}
)


def is_unknown(name: str) -> bool:
    """Whether FLOPs of an operator without a formula may matter: another library's, or a heavy one of
    torch.
    """
    space, _, short = name.partition(".")
    return space not in _OURS or (short.startswith(_HEAVY) and short != "linalg_vector_norm")


def cost(
    func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any], out: Any,
    inputs: list[torch.Tensor], written: list[torch.Tensor], fresh: list[torch.Tensor],
) -> Cost:  # fmt: skip
    """What one call costs; ``written`` are arguments that it changes, ``fresh`` results that are new."""
    short = name.partition(".")[2]
    count = flop_registry.get(func._overloadpacket)
    flops = 0
    if count is not None:
        try:
            flops = int(count(*args, **kwargs, out_val=out))
        except (TypeError, AssertionError, NotImplementedError):
            flops = 0
    moved = _bytes(func, short, args, inputs, written, fresh)
    shape, kind = (0, 0, 0, 0), "memory"
    if short.startswith(_ATTENTION):
        kind = "attention"
    elif flops:
        kind = "matmul"
        if short in _SHAPES:
            shape = _SHAPES[short](args, out)
        if short == "_grouped_mm":
            shape = (1, args[0].shape[-2], args[0].shape[-1], args[1].shape[-1])
            flops = 2 * prod(shape)
    first = next((t for t in (*inputs, *fresh) if t.is_floating_point()), None)
    dtype = number_type(first.dtype if first is not None else torch.float32, matmul=kind == "matmul")
    return Cost(name, kind, dtype, flops, moved, shape)


def _bytes(
    func: Any, short: str, args: Sequence[Any], inputs: list[torch.Tensor], written: list[torch.Tensor],
    fresh: list[torch.Tensor],
) -> int:  # fmt: skip
    new = sum(size_of(t) for t in fresh)
    if short in _LOOK_UPS:
        return 2 * new + sum(size_of(t) for t in inputs if not t.is_floating_point())
    if short == "all_gather_copy_in":
        return 2 * sum(size_of(t) for t in args[0])
    if short == "embedding_dense_backward":
        return 2 * size_of(args[0]) + size_of(args[1]) + new
    changed = sum(size_of(t) for t in written)
    read = sum(size_of(t) for t in inputs)
    if short in _WRITE_ONLY or func._overloadname.endswith("out"):
        read -= changed
    return read + changed + new
