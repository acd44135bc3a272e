"""A ResNet's trace of one rank of two, in PyTorch's form and in Chakra's; shared/data."""

from __future__ import annotations

import pytest

from cosim.context import Context
from cosim.experiment.run import run
from cosim.experiment.scenario import loads
from cosim.formats.pytorch.read import PyTorchWorkload
from cosim.gpu.catalogue import V100_SXM2
from cosim.workload.check import check
from cosim.workload.program import OpKind, Workload
from tests.inputs import find, needs

pytestmark = needs("pytorch", "chakra/feeder_tests_rank0.et")
BUCKETS = [8196000, 31502336, 26255360, 26550272, 9724160]


def _collectives(workload: Workload) -> list[tuple[str, int]]:
    ops = workload.programs[0].operations
    return [(op.collective, op.size_bytes) for op in ops if op.kind is OpKind.COLLECTIVE]


def test_an_et_alone_is_timed_by_the_compute_model_and_says_so() -> None:
    workload = PyTorchWorkload(et="resnet_2gpu_et.json.gz", gpu=V100_SXM2).build(Context(find("pytorch")))
    check(workload)
    assert workload.world_size == 2
    # DistributedDataParallel's buckets are ResNet-50's gradients: 25,557,032 parameters (torchvision).
    assert _collectives(workload)[2:] == [("all_reduce", size) for size in BUCKETS]
    assert sum(BUCKETS) == 25_557_032 * 4
    ops = workload.programs[0].operations
    forward = [op.flops for op in ops if op.name in ("aten::cudnn_convolution", "aten::addmm")]
    # 4.089 G multiply-adds an image (torchvision), batch 32
    assert sum(forward) / 2 / 32 == pytest.approx(4.089e9, rel=1e-3)
    backward = [op.flops for op in ops if op.name in ("aten::convolution_backward", "aten::mm")]
    first = 2 * 32 * 112 * 112 * 64 * 3 * 7 * 7  # the image needs no gradient
    assert sum(backward) == 2 * sum(forward) - first
    assert any("uncalibrated" in line for line in workload.report.assumed)
    optimizer = [n for n, op in enumerate(ops) if op.name == "aten::_foreach_add_"]
    reduced = [n for n, op in enumerate(ops) if op.collective == "all_reduce"]
    assert all(_reaches(workload, optimizer[0], number) for number in reduced)


def test_chakras_trace_of_the_same_step_gives_a_full_report() -> None:
    text = f"""
topology: {{kind: switch, endpoints: 2, rate: 25GB/s, latency: 1us}}
network: fair_share
jobs:
  - workload:
      kind: chakra
      path: {find("chakra/feeder_tests_rank0.et")}
      world_size: 2
      dependencies: data
"""
    done = run(loads(text))
    workload = done.records.jobs[0].workload
    assert _collectives(workload)[2:] == [("all_reduce", size) for size in BUCKETS]
    assert "feeder_tests_rank0.et runs on all 2 ranks" in workload.report.assumed
    page = str(done)
    assert "31.5 MB" in page
    # Data dependencies chain the operators; what is measured of them is all that they take.
    alone = sum(op.duration_ps for op in workload.programs[0].operations if op.kind is OpKind.COMPUTE)
    assert int(done.records.ops.end_ps.max()) <= alone + 10 * 10**9


def _reaches(workload: Workload, late: int, early: int) -> bool:
    """Whether an operation follows another by dependencies."""
    ops = workload.programs[0].operations
    seen, waiting = set[int](), [late]
    while waiting:
        number = waiting.pop()
        if number == early:
            return True
        if number > early and number not in seen:
            seen.add(number)
            waiting.extend(ops[number].deps)
    return False
