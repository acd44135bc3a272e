"""What an operator costs: its kind, FLOPs, bytes and the shape of its matrix product, from its arguments.

FLOPs are those of ``torch.utils.flop_counter``'s registry. Bytes are each operand and result once, at the
elements that are really there (an expanded tensor counts its own), as the CUDA kernels of PyTorch 2.13 read
and write them: an operand given twice is read once, what is only written is not read (``out``, ``fill_``),
what only lends its shape is neither (``zeros_like``), and of a table in which places are looked up or
changed, those count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple

import torch
from torch.utils._mode_utils import no_dispatch
from torch.utils.flop_counter import flop_registry

from cosim.profiler.inside import embedding_tables
from cosim.profiler.inside.strided import elements_one_by_one


class Cost(NamedTuple):
    """One kernel: what the profile keeps of it. ``shape`` is (batch, rows, inner, columns); of an
    element-wise one ``batch`` are the elements that it finds one by one.
    """

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
    torch.bool: "bool",
    torch.uint8: "uint8",
    torch.int8: "int8",
    torch.int16: "int16",
    torch.int32: "int32",
    torch.int64: "int64",
}


def multiplies(func: Any) -> bool:
    """Whether an operator is a product (or attention, a convolution) with a formula for its FLOPs."""
    return getattr(func, "_overloadpacket", None) in flop_registry


def goes_by_places(func: Any) -> bool:
    """Whether an operator looks up, puts or multiplies by groups where another of its operands says."""
    short = func._opname.rstrip("_")
    return short in _LOOK_UPS or short in _PUTS or short.endswith("grouped_mm") or multiplies(func)


def number_type(dtype: torch.dtype, *, matmul: bool = False) -> str:
    """The compute model's name of a number type; fp32 products may run as tf32, as torch is told."""
    name = _DTYPES.get(dtype, "fp32")
    if name == "fp32" and matmul and torch.backends.cuda.matmul.allow_tf32:
        return "tf32"
    return name


def memory_of(tensor: torch.Tensor) -> torch.UntypedStorage:
    """Where a tensor's elements are; of a sparse one, its values."""
    if tensor.layout is torch.sparse_coo:
        tensor = tensor._values()
    return tensor.untyped_storage()


def size_of(tensor: torch.Tensor) -> int:
    """Bytes of the elements that a tensor really has: an expanded dimension counts once, and of a sparse one
    the places that it has, with their indices.
    """
    if tensor.layout is torch.sparse_coo:
        return size_of(tensor._values()) + size_of(tensor._indices())
    numbers = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        # expand() gives a dimension the stride 0: no memory of its own.
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
_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm"})
_ATTENTION = (
    "_scaled_dot_product",
    "flex_attention",
    "_efficient_attention",
    "_flash_attention",
    "_varlen_attn",
)
_WRITE_ONLY = frozenset({"zero_", "fill_", "normal_", "uniform_", "copy_", "bernoulli_", "random_",
                         "_foreach_zero_", "_foreach_copy_", "exponential_", "geometric_", "log_normal_",
                         "cauchy_"})  # fmt: skip
_LIKE = frozenset({"zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like",
                   "new_zeros", "new_ones", "new_full"})  # fmt: skip
_LOOK_UPS = frozenset({"embedding", "gather", "index_select", "index", "_unsafe_index"})
_BAGS = frozenset({"_embedding_bag", "_embedding_bag_forward_only"})
_PUTS = {"index_put": 2, "_index_put_impl": 2, "_unsafe_index_put": 2, "scatter": 3, "scatter_add": 3,
         "scatter_reduce": 3, "index_add": 3, "index_copy": 3}  # fmt: skip
"""Places of a table change: where among the arguments the values for them stand; indices come before."""
_SHAPE_ONLY = {"nll_loss_forward": (0,), "nll_loss2d_forward": (0,), "nll_loss_backward": (1,),
               "nll_loss2d_backward": (1,), "max_pool2d_with_indices_backward": (1,),
               "avg_pool2d_backward": (1,), "_adaptive_avg_pool2d_backward": (1,)}  # fmt: skip
"""Arguments of which a kernel reads no more than an element for each row."""
_READ_TWICE = {"native_batch_norm": (0,), "native_batch_norm_backward": (0, 1), "convolution_backward": (0,),
               "native_layer_norm_backward": (0, 1), "_fused_rms_norm_backward": (0, 1)}  # fmt: skip
"""Arguments that two kernels read: one that adds up, or makes one gradient, and one after it."""
_READ_IN_PASSES = {"_log_softmax": 2, "_softmax": 2, "_log_softmax_backward_data": 1,
                   "_softmax_backward_data": 1}  # fmt: skip
"""How often more a row that doesn't stay in a multiprocessor's shared memory is read: for its largest number
and for the sum (``SoftMax.cu``: ``cunn_SoftMaxForward``, ``cunn_SoftMaxBackward``)."""
_SHARED_BYTES = 48 << 10
_FUSED = frozenset({"_fused_adam_", "_fused_adamw_", "_fused_sgd_"})
_HEAVY = ("linalg_", "_linalg", "fft_", "_fft", "cdist", "_thnn_", "_cudnn_rnn", "lstm", "gru", "cholesky",
          "svd",           "grid_sampler", "_ctc_loss", "unfold_backward", "_histogram")  # fmt: skip
_OURS = frozenset(
    {
        "aten",
        "prim",
        "prims",
        "fsdp",
        "c10d",
        "_c10d_functional",
        "_dtensor",
        "debugprims",
        "cosim",
        "inductor",
    }
)


def is_unknown(name: str) -> bool:
    """Whether FLOPs of an operator without a formula may matter: another library's, or a heavy one of
    torch.
    """
    space, _, short = name.partition(".")
    if embedding_tables.knows(name):
        return False
    return space not in _OURS or (short.startswith(_HEAVY) and short != "linalg_vector_norm")


def cost(
    func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any], out: Any,
    inputs: list[torch.Tensor], written: list[torch.Tensor], results: list[torch.Tensor],
) -> Cost:  # fmt: skip
    """What one call costs; ``written`` are arguments that it changes, ``results`` what it only writes."""
    short = name.partition(".")[2]
    count = flop_registry.get(func._overloadpacket)
    flops = 0
    if count is not None:
        try:
            flops = int(_counted(count, short, args, kwargs, out))
        # A product's shape says its FLOPs, too; of others none are known, which `is_unknown` tells.
        except (TypeError, AssertionError, NotImplementedError):  # an overload that its formula doesn't know
            flops = 2 * prod(_SHAPES[short](args, out)) if short in _PRODUCTS else 0
    moved = embedding_tables.moved(func, args, kwargs, out)
    if moved is None:
        moved = _bytes(short, args, kwargs, inputs, written, results)
    shape, kind = (0, 0, 0, 0), "memory"
    if short.startswith(_ATTENTION):
        kind, shape = _attention(func, short, args, kwargs)
    elif flops:
        kind = "matmul"
        if short in _SHAPES:
            shape = _SHAPES[short](args, out)
    elif short in ("_grouped_mm", "_scaled_grouped_mm"):
        ends = next((t for t in (*args[2:], kwargs.get("offs")) if _is_ends(t)), None)
        kind, shape, flops = (
            "matmul",
            *_grouped(args[0], args[1], out, None if ends is None else ends.constant),
        )
    if kind == "memory":
        shape = (elements_one_by_one(func, args, inputs, written, results), 0, 0, 0)
    operands = (*inputs, *results)
    # Indices and masks don't say at which precision a kernel computes.
    first = next((t for t in operands if t.is_floating_point()), operands[0] if operands else None)
    dtype = number_type(first.dtype if first is not None else torch.float32, matmul=kind == "matmul")
    return Cost(name, kind, dtype, flops, moved, shape)


def _counted(count: Any, short: str, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> Any:
    """FLOPs by torch's formula, told where sequences of one tensor end; it takes all for the longest else.

    Of a convolution's backward, by ours: torch's takes the weights' gradient for one without groups.
    """
    if short == "convolution_backward":
        return _backward_of_convolution(args)
    if not short.startswith(("_flash_attention", "_efficient_attention")):
        return count(*args, **kwargs, out_val=out)
    told = [a if getattr(a, "constant", None) is None or a.dim() != 1 else a.constant for a in args]
    with no_dispatch():
        return count(*told, **kwargs, out_val=out)


def _backward_of_convolution(args: Sequence[Any]) -> int:
    """Each gradient that is asked for has as many products as forward."""
    grad, given, weight, transposed, asked = args[0], args[1], args[2], args[7], args[10]
    places = prod((given if transposed else grad).shape[2:])
    return int(2 * sum(asked[:2]) * grad.shape[0] * places * prod(weight.shape))


def _attention(
    func: Any, short: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[str, tuple[int, int, int, int]]:
    """Its kind, and heads of all sequences, queries, numbers of a head and keys, where arguments tell."""
    given = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | kwargs
    kind = "attention backward" if "backward" in short else "attention"
    query, key = given.get("query"), given.get("key")
    if not (isinstance(query, torch.Tensor) and isinstance(key, torch.Tensor) and query.dim() == 4):
        return kind, (0, 0, 0, 0)
    if given.get("is_causal"):
        kind = f"causal {kind}"
    batch, heads, queries, head = query.shape
    return kind, (batch * heads, queries, head, key.shape[2])


def higher_order_cost(func: Any, name: str, args: Sequence[Any], out: Any) -> Cost | None:
    """The cost of flex attention, forward and backward: as flash attention, whatever its mask leaves out."""
    count = flop_registry.get(func)
    if count is None:
        return None
    moving = [t for t in (*args, *out) if isinstance(t, torch.Tensor)]
    moved = sum(size_of(t) for t in moving)
    return Cost(
        name, "attention", number_type(args[0].dtype), int(count(*args, out_val=out)), moved, (0, 0, 0, 0)
    )


def _is_ends(value: Any) -> bool:
    """Where groups end, if that is known."""
    return getattr(value, "constant", None) is not None and value.dim() == 1 and value.dtype is torch.int32


def _grouped(
    a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, ends: torch.Tensor | None = None
) -> tuple[tuple[int, int, int, int], int]:
    """Products of groups of rows (or of the inner dimension), as so many of the mean size; FLOPs of all.
    Rows after the last group's end, with which frameworks fill up, aren't multiplied.
    """
    groups = max(t.shape[0] if t.dim() == 3 else 1 for t in (a, b, out))
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    if ends is not None and a.dim() == 2:
        with no_dispatch():
            last = int(ends[-1])
        rows, inner = (rows, min(inner, last)) if out.dim() == 3 else (min(rows, last), inner)
    flops = 2 * rows * inner * columns * (groups if a.dim() == b.dim() == 3 else 1)
    if out.dim() == 3 and a.dim() == 2:
        return (groups, rows, -(-inner // groups), columns), flops
    return (groups, rows if a.dim() == 3 else -(-rows // groups), inner, columns), flops


def _bytes(
    short: str, args: Sequence[Any], kwargs: dict[str, Any], inputs: list[torch.Tensor],
    written: list[torch.Tensor], results: list[torch.Tensor],
) -> int:  # fmt: skip
    new = sum(size_of(t) for t in results)
    # What it is made like lends its shape, and isn't read.
    if short in _LIKE:
        return new
    # As many elements of the table are read as are written, and the indices.
    if short in _LOOK_UPS:
        return 2 * new + sum(size_of(t) for t in inputs if not t.is_floating_point())
    if short.rstrip("_") in _PUTS:
        return _put(short, args, kwargs) + (size_of(args[0]) + new if results else 0)
    if short == "all_gather_copy_in":
        return 2 * sum(size_of(t) for t in args[0])
    if short in _BAGS:  # as many rows of the table as there are indices
        rows = args[1].numel() * args[0].shape[1] * args[0].element_size()
        return rows + sum(size_of(t) for t in inputs if t is not args[0]) + new
    if short == "embedding_dense_backward":
        return 2 * size_of(args[0]) + size_of(args[1]) + new
    if short in _FUSED and kwargs.get("grad_scale") is None:  # gradients are changed only to unscale them
        written = [t for t in written if all(t is not grad for grad in args[1])]
    unread = {id(args[k]) for k in _SHAPE_ONLY.get(short, ())}
    if short in _WRITE_ONLY:
        unread |= {id(t) for t in written}
    sparse = [t for t in inputs if t.layout is torch.sparse_coo]
    if sparse:  # of what is dense beside it, its places are read and written
        places = sum(size_of(t._values()) for t in sparse)
        return sum(size_of(t) for t in sparse) + 2 * places * len(written) + new
    read = {id(t): t for t in inputs if id(t) not in unread}
    again = sum(size_of(args[k]) for k in _READ_TWICE.get(short, ()) if _in_two_kernels(short, args))
    if short in _READ_IN_PASSES and args[0].dim():
        row = args[0].shape[args[2] if short.endswith("data") else args[1]] * args[0].element_size()
        again = _READ_IN_PASSES[short] * size_of(args[0]) if row >= _SHARED_BYTES else 0
    return sum(size_of(t) for t in (*read.values(), *written)) + new + again


def _in_two_kernels(short: str, args: Sequence[Any]) -> bool:
    """Batch norm's statistics are given unless it trains; other backward passes may want one gradient."""
    if short == "native_batch_norm":
        return bool(args[5])
    return bool(args[7]) if short == "native_batch_norm_backward" else all(args[-1][:2])


def _put(short: str, args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    """Indices and values read, the places that they name written; read as well where values are added."""
    place = _PUTS[short.rstrip("_")]
    table, values = args[0], args[place] if len(args) > place else None
    indices = [t for t in (args[1] if isinstance(args[1], list | tuple) else [args[2]]) if t is not None]
    told = sum(size_of(t) for t in indices) + (size_of(values) if isinstance(values, torch.Tensor) else 0)
    if any(t.dtype is torch.bool for t in indices):  # a mask: all places are gone through
        return told + 2 * size_of(table)
    if isinstance(args[1], list | tuple):
        places = prod(torch.broadcast_shapes(*(t.shape for t in indices)))
        places *= prod(n for n, t in zip_longest(table.shape, args[1]) if t is None)
    else:
        places = (
            values if isinstance(values, torch.Tensor) and short.startswith("index_") else indices[0]
        ).numel()
    adds = "add" in short or "reduce" in short or "reduce" in kwargs
    adds = adds or (len(args) > 3 and args[3] is True) or bool(kwargs.get("accumulate"))
    return told + places * table.element_size() * (2 if adds else 1)
