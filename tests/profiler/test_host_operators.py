"""What real runs on the host are given that CUDA has, against what it says of itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from tests.lab.benchmarks.real_ranks import _read
from tests.profiler.profiled import needs_torch

_GIVEN = """
import torch, torch.distributed as dist
from tests.lab.benchmarks import host_operators
host_operators.install()
ids = torch.tensor([0, 3, 3, 1])
counts = torch.histc(ids, bins=4, min=0, max=3)
assert counts.dtype == ids.dtype and counts.tolist() == torch.bincount(ids, minlength=4).tolist()
assert torch.histc(ids.float(), bins=4, min=0, max=3).tolist() == [1.0, 1.0, 0.0, 2.0]
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
for scale, expected in ((dist.ReduceOp.PREMUL_SUM(0.25), 2.0), (dist.ReduceOp.SUM, 8.0)):
    given, out = torch.full((4,), 8.0), torch.empty(4)
    dist.all_reduce(given.clone(), op=scale)
    work = dist.reduce_scatter_tensor(out, given, op=scale, async_op=True)
    work.get_future().wait()
    assert out.tolist() == [expected] * 4
rows, got = torch.arange(3.0), torch.empty(3)
dist.all_to_all_single(got, rows, torch.tensor([3]), input_split_sizes=torch.tensor([3]))
assert got.tolist() == rows.tolist()
dist.destroy_process_group()  # else gloo's threads may still run when the process ends, which aborts it
"""


@needs_torch
def test_the_host_does_what_a_gpu_and_nccl_do() -> None:
    """Counts of whole numbers, sums that are scaled before, futures of all that is asked for, split sizes."""
    done = subprocess.run([sys.executable, "-c", _GIVEN], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def _event(name: str, start: int, length: int, *dims: Sequence[object]) -> dict[str, object]:
    return {"ph": "X", "name": name, "ts": start, "dur": length, "tid": 1, "args": {"Input Dims": [*dims]}}


def test_experts_whose_rows_the_host_multiplies_one_after_the_other_are_one_product() -> None:
    events = [
        _event("aten::_grouped_mm", 0, 10, [24, 16], [2, 16, 8], [2]),
        _event("aten::mm", 1, 2, [8, 16], [16, 8]),
        _event("aten::mm", 4, 2, [16, 16], [16, 8]),
        _event("aten::mm", 11, 2, [5, 16], [16, 8]),
    ]
    assert _read(events) == [("product", 2 * 24 * 16 * 8), ("product", 2 * 5 * 16 * 8)]


def test_an_exchange_or_product_in_its_like_is_one() -> None:
    """A functional collective calls its group's; a DTensor's attention, of all heads, that of the rank's."""
    of = [[2, 8, 4, 16], [2, 8, 4, 16], [2, 8, 4, 16]]
    attention = "aten::_scaled_dot_product_flash_attention_for_cpu"
    events = [
        _event("_c10d_functional::all_gather_into_tensor", 0, 10, [8, 4], [], []),
        _event("c10d::allgather_into_tensor_coalesced_", 1, 8, [[16, 4]], [[8, 4]]),
        _event(attention, 20, 10, *of),
        _event(attention, 21, 8, *([2, 4, 4, 16] for _ in of)),
        _event("c10d::allgather_into_tensor_coalesced_", 40, 8, [[16, 4]], [[8, 4]]),
    ]
    gathered = ("all_gather", 8 * 4 * 4)
    assert _read(events) == [gathered, ("product", 4 * 2 * 4 * 4 * 4 * 16), gathered]
