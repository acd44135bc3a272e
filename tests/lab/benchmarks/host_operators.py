"""Operators that CUDA has and the host's torch hasn't, or not for all that CUDA takes: with the same result.

For ``cuda_on_host``. Nothing here is a product or a collective: those are torch's own.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch


def install() -> None:
    """Put them up; once a process."""
    _scaled_sums()
    _split_sizes()
    _histograms_of_whole_numbers()
    _attention_of_sharded_heads()
    _files_of_tensors()
    _futures()


def _scaled_sums() -> None:
    """NCCL scales what it sums (``PREMUL_SUM``); gloo's is scaled before, and summed."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    def scaling(plain: Any, scaled: str) -> Any:
        def reduce(*given: Any, **named: Any) -> Any:
            asked = inspect.signature(plain).bind(*given, **named)
            op = asked.arguments.get("op")
            if op is None or op != dist.ReduceOp.PREMUL_SUM:
                return plain(*given, **named)
            asked.arguments |= {"op": dist.ReduceOp.SUM}
            asked.arguments[scaled].mul_(op.factor)
            return plain(*asked.args, **asked.kwargs)

        return reduce

    for name, scaled in (
        ("all_reduce", "tensor"),
        ("reduce_scatter_single", "input"),
        ("reduce_scatter_tensor", "input"),
    ):
        made = scaling(getattr(c10d, name), scaled)
        setattr(dist, name, made)
        setattr(c10d, name, made)


def _split_sizes() -> None:
    """Sizes that a script copies from the GPU before it sends are on the host already, as a tensor."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    plain = c10d.all_to_all_single

    def all_to_all_single(*given: Any, **named: Any) -> Any:
        asked = inspect.signature(plain).bind(*given, **named)
        for each in ("output_split_sizes", "input_split_sizes"):
            sizes = asked.arguments.get(each)
            if isinstance(sizes, torch.Tensor):
                asked.arguments[each] = sizes.tolist()
        return plain(*asked.args, **asked.kwargs)

    dist.all_to_all_single = c10d.all_to_all_single = all_to_all_single


def _histograms_of_whole_numbers() -> None:
    plain = torch.histc

    def histc(of: Any, *given: Any, **named: Any) -> Any:
        if of.is_floating_point():
            return plain(of, *given, **named)
        return plain(of.double(), *given, **named).to(of.dtype)

    torch.histc = histc


def _attention_of_sharded_heads() -> None:
    """DTensor's rule for the CPU's flash attention, as it has one for CUDA's: by batch or by heads."""
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.experimental import register_sharding

    kept: list[Any] = [Replicate(), Shard(0), Shard(1)]
    aten = torch.ops.aten

    def forward(*_: Any, **__: Any) -> Any:
        return [([each] * 2, [each] * 3 + [None] * 2) for each in kept]

    def backward(*_: Any, **__: Any) -> Any:
        return [([each] * 3, [each] * 6 + [None] * 2) for each in kept]

    register_sharding(aten._scaled_dot_product_flash_attention_for_cpu.default)(forward)
    register_sharding(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)(backward)


def _files_of_tensors() -> None:
    """``map_location`` of a GPU is the host, too: it is no argument of a function of torch's."""
    plain = torch.load

    def load(file: Any, map_location: Any = None, **named: Any) -> Any:
        on_gpu = str(map_location).startswith("cuda")
        return plain(file, map_location="cpu" if on_gpu else map_location, **named)

    torch.load = load


def _futures() -> None:
    """Not all that gloo carries out has a future: what is waited for has happened."""
    from torch.distributed import Work

    plain = Work.get_future

    def get_future(self: Any) -> Any:
        try:
            return plain(self)
        except RuntimeError:
            self.wait()
            made: Any = torch.futures.Future()
            made.set_result(None)
            return made

    Work.get_future = get_future
