"""What real runs on the host are given that CUDA has, against what it says of itself."""

from __future__ import annotations

import subprocess
import sys

from tests.benchmarks.real_ranks import _read
from tests.profiler.profiled import needs_torch

_GIVEN = """
import torch, torch.distributed as dist
from tests.benchmarks import host_operators
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
"""


@needs_torch
def test_the_host_does_what_a_gpu_and_nccl_do() -> None:
    """Counts of whole numbers, sums that are scaled before, futures of all that is asked for."""
    done = subprocess.run([sys.executable, "-c", _GIVEN], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_experts_whose_rows_the_host_multiplies_one_after_the_other_are_one_product() -> None:
    def event(name: str, start: int, length: int, *dims: list[int]) -> dict[str, object]:
        return {
            "ph": "X",
            "name": name,
            "ts": start,
            "dur": length,
            "tid": 1,
            "args": {"Input Dims": [*dims]},
        }

    events = [
        event("aten::_grouped_mm", 0, 10, [24, 16], [2, 16, 8], [2]),
        event("aten::mm", 1, 2, [8, 16], [16, 8]),
        event("aten::mm", 4, 2, [16, 16], [16, 8]),
        event("aten::mm", 11, 2, [5, 16], [16, 8]),
    ]
    assert _read(events) == [("product", 2 * 24 * 16 * 8), ("product", 2 * 5 * 16 * 8)]
