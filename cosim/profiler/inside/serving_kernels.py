"""What operators of inference engines do whose compiled part isn't there: paged attention, caches, norms.

Signatures are those of vLLM's compiled part and of its flash attention (0.33). Attention has the FLOPs of
each sequence's queries by its keys, all of them (as torch counts), and reads of a paged cache what its
sequences have in there; what is put into a cache or looked up in a table moves its own places; other
operators move each of their tensors once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from cosim.profiler.inside.host import values_of
from cosim.profiler.inside.kernels import Cost, number_type, size_of

Assume = Callable[[str], None]


@dataclass(frozen=True)
class OperatorCall:
    """One call: bytes it moves, FLOPs, as which (batch, rows, inner, columns); what it returns (None: nothing
    or what its fake implementation says), and whether that is what it does, or no more than a guess.
    """

    moved: int
    returned: Any = None
    kind: str = "memory"
    flops: int = 0
    shape: tuple[int, int, int, int] = (0, 0, 0, 0)
    known: bool = True

    def cost(self, name: str, given: Sequence[Any]) -> Cost:
        """As the profile keeps it; its number type is its first tensor's."""
        types = (t.dtype for t in given if isinstance(t, torch.Tensor) and t.is_floating_point())
        dtype = number_type(next(types, torch.float32), matmul=bool(self.flops))
        return Cost(name, self.kind, dtype, self.flops, self.moved, self.shape)


def knows(name: str) -> bool:
    """Whether more is known of a Triton kernel than its tensors."""
    return name in _WORK


def carried_out(name: str, given: Sequence[Any], assume: Assume) -> OperatorCall:
    """What an operator ``space.name`` of a missing library does with its arguments."""
    space, _, short = name.partition(".")
    if space in _ATTENTION and short == _ATTENTION[space][0]:
        return _attention(_Attention(*(given[k] for k in _ATTENTION[space][1])), space, assume)
    work = _WORK.get(short)
    if work is not None:
        return work(given)
    return OperatorCall(_sizes(*given), known=short in _ONCE)


def _sizes(*given: Any) -> int:
    """Bytes of the tensors among them, each once."""
    return sum(size_of(t) for t in {id(t): t for t in given if isinstance(t, torch.Tensor)}.values())


def _add_and_norm(given: Sequence[Any]) -> OperatorCall:
    """``fused_add_rms_norm(x, residual, weight, ...)``: both are read and written."""
    return OperatorCall(2 * _sizes(*given[:2]) + _sizes(given[2]))


def _rotate(given: Sequence[Any]) -> OperatorCall:
    """``rotary_embedding(positions, query, key, head, table, ...)``: in place, by a row of its table."""
    positions, query, key, _, table = given[:5]
    rows = positions.shape[-1] * table.shape[-1] * table.element_size()
    return OperatorCall(_sizes(positions) + 2 * _sizes(query, key) + rows)


def _look_up(given: Sequence[Any]) -> OperatorCall:
    """``vocab_parallel_embedding(out, tokens, table, ...)``: a row each."""
    return OperatorCall(2 * _sizes(given[0]) + _sizes(given[1]))


def _put_into_cache(given: Sequence[Any]) -> OperatorCall:
    """``reshape_and_cache(keys, values, key cache, value cache, slots, ...)``: as many tokens as slots."""
    tokens = given[4].shape[0]
    moved = 0
    for new, cache in zip(given[:2], given[2:4], strict=True):
        numbers = tokens * new.numel() // max(1, new.shape[0])  # it may be padded beyond
        moved += numbers * (new.element_size() + cache.element_size())
    return OperatorCall(moved + _sizes(given[4]))


def _schedule(given: Sequence[Any]) -> OperatorCall:
    """``get_scheduler_metadata(sequences, ..., lengths, ...)`` of flash attention 3: a few numbers each."""
    lengths = next(t for t in given if isinstance(t, torch.Tensor))
    made = torch.empty(4 * given[0] + 1, dtype=torch.int32, device=lengths.device)
    return OperatorCall(_sizes(*given, made), made)


def _multiply_by_experts(given: Sequence[Any]) -> OperatorCall:
    """Triton's ``fused_moe_kernel(rows, weights, out, ...)``: each choice of an expert by that one's weights.

    Of the experts as many are read as can have been chosen, evenly.
    """
    weights, columns, inner, chosen = given[1], given[10], given[11], given[13]
    experts = min(weights.shape[0], chosen)
    moved = _sizes(given[0], given[2]) + experts * columns * inner * weights.element_size()
    shape = (experts, -(-chosen // experts), inner, columns)
    return OperatorCall(moved, kind="matmul", flops=2 * chosen * inner * columns, shape=shape)


def _refuse_shared(_: Sequence[Any]) -> OperatorCall:
    raise NotImplementedError(
        "memory that host and GPU share isn't profiled; vLLM's first model runner needs none of it:"
        " VLLM_USE_V2_MODEL_RUNNER=0"
    )


_WORK: dict[str, Callable[[Sequence[Any]], OperatorCall]] = {
    "fused_add_rms_norm": _add_and_norm,
    "rotary_embedding": _rotate,
    "reshape_and_cache": _put_into_cache,
    "reshape_and_cache_flash": _put_into_cache,
    "vocab_parallel_embedding": _look_up,
    "get_scheduler_metadata": _schedule,
    "fused_moe_kernel": _multiply_by_experts,
    "get_cuda_view_from_cpu_tensor": _refuse_shared,
}
_ONCE = frozenset(
    {
        "rms_norm",
        "silu_and_mul",
        "gelu_and_mul",
        "gelu_tanh_and_mul",
        "moe_align_block_size",
        "moe_sum",
        "topk_softmax",
    }
)
"""Known to move each tensor once, and to have no FLOPs that matter."""


@dataclass(frozen=True)
class _Attention:
    """Arguments of a kernel: queries one after the other, ``key`` and ``value`` too or in pages; ``used`` of
    their places each sequence has.
    """

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    out: torch.Tensor | None
    starts: torch.Tensor
    key_starts: torch.Tensor | None
    used: torch.Tensor | None
    pages: torch.Tensor | None
    longest: int
    causal: bool


_ATTENTION = {
    "_vllm_fa2_C": ("varlen_fwd", (0, 1, 2, 3, 4, 5, 6, 8, 11, 15)),
    "_vllm_fa3_C": ("fwd", (0, 1, 2, 6, 7, 8, 11, 14, 13, 24)),
}
"""By library: its operator of attention, and where that has them."""


def _attention(given: _Attention, space: str, assume: Assume) -> OperatorCall:
    tokens, heads, head = given.query.shape
    queries = _distances(given.starts)
    keys = _distances(given.key_starts) if given.used is None else _numbers(given.used)
    if queries is None or keys is None:
        assume("lengths of sequences in attention aren't known: each is taken for the longest")
        sequences = given.starts.shape[0] - 1
        queries, keys = [tokens // sequences] * sequences, [given.longest] * sequences
    out = torch.empty_like(given.query) if given.out is None else given.out
    sums = torch.empty((heads, tokens), dtype=torch.float32, device=out.device)
    read = sum(
        cache.shape[-2] * cache.shape[-1] * cache.element_size() for cache in (given.key, given.value)
    ) * sum(keys)
    told = _sizes(given.starts, given.key_starts, given.used, given.pages)
    pairs = sum(q * k for q, k in zip(queries, keys, strict=True))
    alike = len({*queries}) == len({*keys}) == 1
    triangle = given.causal and queries == keys and max(queries) > 1
    return OperatorCall(
        read + 2 * _sizes(given.query) + _sizes(sums) + told,
        (out, sums, None, None) if space == "_vllm_fa3_C" else (out, sums),
        "causal attention" if triangle else "attention",
        2 * heads * (head + given.value.shape[-1]) * pairs,
        (heads * len(queries), queries[0], head, keys[0]) if alike else (0, 0, 0, 0),
    )


def _numbers(tensor: torch.Tensor | None) -> list[int] | None:
    """The values of a tensor, if they are known."""
    known = None if tensor is None else values_of(tensor)
    if known is None:
        return None
    with no_dispatch():
        return [int(n) for n in known.tolist()]


def _distances(starts: torch.Tensor | None) -> list[int] | None:
    """From each of known numbers to the next."""
    known = _numbers(starts)
    return None if known is None else [end - begin for begin, end in pairwise(known)]
