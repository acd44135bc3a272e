"""What DDP, FSDP and attention need to run on fake tensors, each as close to what a GPU run does as can
be.
"""

from __future__ import annotations

import functools
import sys
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from cosim.profiler.inside import spmd

_FIRST_BUCKET = 1024 * 1024


def install(assume: Any) -> None:
    """Patch all of them."""
    _data_parallel()
    _fully_sharded(assume)
    # Module.to swaps fake parameters and counts weak references to them, of which the mode keeps some.
    import torch.utils

    torch.utils.weakref = SimpleNamespace(getweakrefs=lambda _: [])  # type: ignore[attr-defined]
    _grad_scaler()
    # As on a GPU, optimizers and clipping take many tensors at once.
    from torch.utils import _foreach_utils

    _foreach_utils._foreach_supported_types.append(FakeTensor)
    from torch.optim.optimizer import _foreach_supported_types

    _foreach_supported_types.append(FakeTensor)
    _fused_kernels()


_KEPT: list[Any] = []


def _fused_kernels() -> None:
    """Operators that a GPU has a kernel for, but which torch takes apart where it has been built without."""

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a kernel for fake tensors ran")

    library = torch.library.Library("aten", "IMPL")  # its kernels live as long as it
    for name in ("silu_backward", "mish_backward", "_fused_rms_norm", "_fused_rms_norm_backward"):
        try:
            library.impl(name, never, "CUDA")
        except RuntimeError:  # this torch has it, or doesn't know it
            continue
    _KEPT.append(library)


class _HostZeros(TorchDispatchMode):
    """Zeros of the host have memory: DDP's map of used parameters, of which it compares addresses."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func is torch.ops.aten.zeros.default and torch.device(given.get("device") or "cpu").type == "cpu":
            with no_dispatch():
                return func(*args, **given)
        return func(*args, **given)


def _with_memory(function: Any) -> Any:
    def call(*args: Any, **given: Any) -> Any:
        with _HostZeros():
            return function(*args, **given)

    return call


def _data_parallel() -> None:
    """DDP as it is from its second iteration on: buckets of 1 MiB and then ``bucket_cap_mb``."""
    from torch.nn.parallel import distributed as ddp

    del ddp
    original = dist._compute_bucket_assignment_by_size

    def buckets(tensors: Any, limits: Any, *rest: Any) -> Any:
        if list(limits) != [sys.maxsize]:
            return original(tensors, limits, *rest)
        # As rebuilt after the first iteration: in the order in which gradients are ready, the last parameter
        # first; the caller turns the list of buckets round.
        rest = tuple(list(reversed(r)) if isinstance(r, list) else r for r in rest)
        found, sizes = original(list(reversed(tensors)), [_FIRST_BUCKET, _cap[0]], *rest)
        last = len(tensors) - 1
        return [[last - place for place in bucket] for bucket in reversed(found)], list(reversed(sizes))

    _cap = [25 * 2**20]
    made = torch.nn.parallel.DistributedDataParallel.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **given: Any) -> None:
        _cap[0] = int((given.get("bucket_cap_mb") or 25) * 2**20)
        made(self, *args, **given)

    torch.nn.parallel.DistributedDataParallel.__init__ = init  # type: ignore[method-assign]
    dist._compute_bucket_assignment_by_size = buckets
    for module in list(sys.modules.values()):
        if getattr(module, "_verify_param_shape_across_processes", None) is not None:
            module._verify_param_shape_across_processes = _verified  # type: ignore[attr-defined]
    dist._verify_params_across_processes = _verified
    dist._broadcast_coalesced = _broadcast_coalesced
    dist.Reducer._rebuild_buckets = lambda _: False
    dist.Reducer._set_static_graph = _with_memory(dist.Reducer._set_static_graph)
    dist.Reducer = _with_memory(dist.Reducer)  # type: ignore[misc]
    dist.Logger.set_runtime_stats_and_log = lambda _: None


def _verified(group: Any, tensors: Any, *_: Any) -> None:
    """What c10d exchanges to see that all ranks have the same parameters: how many, then the first rank's
    shapes and strides.
    """
    home = tensors[0].device
    count = torch.tensor([len(tensors)], device=home)
    dist.all_gather([torch.empty_like(count) for _ in range(dist.get_world_size(group))], count, group=group)
    shapes = torch.empty(sum(2 * tensor.dim() for tensor in tensors), dtype=torch.long, device=home)
    dist.broadcast(shapes, group=group, group_src=0)


def _broadcast_coalesced(group: Any, tensors: Any, size: int, source: int = 0) -> None:
    """As c10d's: tensors of one type flattened together, up to ``size`` bytes."""
    waiting: dict[Any, list[torch.Tensor]] = {}

    def flush(batch: list[torch.Tensor]) -> None:
        flat = torch.cat([t.detach().reshape(-1) for t in batch])
        dist.broadcast(flat, group=group, group_src=source)
        at = 0
        for tensor in batch:
            tensor.detach().copy_(flat[at : at + tensor.numel()].view_as(tensor))
            at += tensor.numel()

    for tensor in tensors:
        batch = waiting.setdefault((tensor.dtype, tensor.device), [])
        batch.append(tensor)
        if sum(t.numel() * t.element_size() for t in batch) >= size:
            flush(batch)
            batch.clear()
    for batch in waiting.values():
        if batch:
            flush(batch)


class Chunks:
    """``torch.chunk`` with empty ones at the end, cut when they are asked for: FSDP asks for two of many."""

    def __init__(self, tensor: torch.Tensor, num_chunks: int, dim: int) -> None:
        self.tensor, self.num_chunks, self.dim = tensor, num_chunks, dim
        self.each = -(-tensor.size(dim) // num_chunks)

    def __len__(self) -> int:
        return self.num_chunks

    def __getitem__(self, place: int) -> torch.Tensor:
        place = range(self.num_chunks)[place]
        start, length = place * self.each, self.tensor.size(self.dim)
        if start >= length:
            return self.tensor.new_empty(0)
        return self.tensor.narrow(self.dim, start, min(self.each, length - start))


def _fully_sharded(assume: Any) -> None:
    from torch.distributed.fsdp._fully_shard import _fsdp_common, _fsdp_param

    for module in (_fsdp_common, _fsdp_param):
        module._chunk_with_empty = Chunks  # type: ignore[attr-defined]
    spmd.install(assume)


def _grad_scaler() -> None:
    """The optimizer's step is taken: no gradient is infinite."""
    from torch.amp.grad_scaler import GradScaler

    def step(self: Any, optimizer: Any, state: Any, *args: Any, **given: Any) -> Any:
        return optimizer.step(*args, **given)

    GradScaler._maybe_opt_step = step  # type: ignore[method-assign]
