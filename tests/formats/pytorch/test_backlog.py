"""Steps cut out of timelines whose host runs ahead of the GPU: they last as long as the GPU works for them.

Every timeline is made by hand: a host that issues a kernel each 10 us, and a GPU that takes longer. So
a step lasts as long as its kernels, whatever was in flight when it began.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.units import PS_PER_US
from tests.formats.pytorch.trace_files import Rank

KERNELS, LASTS = 20, 1000


class Gpu:
    """Streams that run what they are given in order, 8 us after its launch at the earliest."""

    def __init__(self, made: Rank) -> None:
        self.made = made
        self.free: dict[int, int] = {}

    def launch(self, at: int, lasts: int, stream: int = 7, after: int = 0) -> int:
        """A kernel that waits for its launch, its stream, and until ``after``; when it ends."""
        begin = max(at + 8, self.free.get(stream, 0), after)
        self.free[stream] = begin + lasts
        self.made.launch("gemm", at, begin, begin + lasts, stream)
        return begin + lasts


def steps(made: Rank, gpu: Gpu, count: int, begin: int = 0, streams: tuple[int, ...] = (7,)) -> None:
    """Steps of 20 kernels of 1 ms on each stream, issued in 200 us each."""
    for number in range(1, count + 1):
        at = begin
        for k in range(KERNELS * len(streams)):
            gpu.launch(at, LASTS, streams[k % len(streams)])
            at += 10
        made.op(f"ProfilerStep#{number}", begin, at)
        begin = at + 2


def replayed(folder: Path, made: Rank, step: int | str, **settings: Any) -> tuple[float, cosim.Summary]:
    """Microseconds of an iteration, and what is said of it."""
    folder.mkdir(exist_ok=True)
    (folder / "trace.json").write_text(json.dumps(made.kineto()))
    workload = {"kind": "pytorch", "kineto": str(folder / "trace.json"), "step": step, **settings}
    fabric = {"kind": "switch", "endpoints": 2, "rate": "100Gbps", "latency": "0ns"}
    summary = cosim.run(
        {"topology": fabric, "network": "fair_share", "jobs": [{"workload": workload}]}
    ).summary
    return (summary.jobs[0].iteration_mean_ps or 0) / PS_PER_US, summary


@pytest.mark.parametrize("step", [2, 3, 4])
def test_a_step_lasts_its_kernels_time_however_far_the_gpu_is_behind(tmp_path: Path, step: int) -> None:
    made = Rank(0)
    steps(made, Gpu(made), 4)
    took, summary = replayed(tmp_path, made, step)
    assert took == pytest.approx(KERNELS * LASTS, rel=1e-9)
    assert summary.doubts == ()
    assert any("work in flight when the step begins" in line for line in summary.jobs[0].read)


def test_steps_add_up_to_all_of_them(tmp_path: Path) -> None:
    made = Rank(0)
    steps(made, Gpu(made), 4)
    each = [replayed(tmp_path, made, step)[0] for step in (1, 2, 3, 4)]
    assert sum(each) == pytest.approx(replayed(tmp_path, made, "all")[0], rel=1e-9)


def test_work_from_before_the_trace_is_in_flight_though_nobody_knows_its_launch(tmp_path: Path) -> None:
    made = Rank(0)
    gpu = Gpu(made)
    for k in range(30):
        made.kernel("from before", k * 500, k * 500 + 500, 7, 10 + k)
    gpu.free[7] = 15_000
    steps(made, gpu, 1)
    took, summary = replayed(tmp_path, made, 1)
    assert took == pytest.approx(KERNELS * LASTS, rel=1e-9)
    assert not any("without its launch" in line for line in summary.jobs[0].assumed)


def test_two_streams_in_flight_are_each_free_when_they_were(tmp_path: Path) -> None:
    made = Rank(0)
    steps(made, Gpu(made), 3, streams=(7, 20))
    # Stream 20 is 10 us behind stream 7 throughout.
    assert replayed(tmp_path, made, 3)[0] == pytest.approx(KERNELS * LASTS + 10, rel=1e-9)


def test_a_long_copy_from_before_keeps_its_own_stream_only(tmp_path: Path) -> None:
    made = Rank(0)
    gpu = Gpu(made)
    copied = gpu.launch(0, 50_000, stream=30)
    steps(made, gpu, 2, begin=20)
    # Step 2 begins when stream 7 has done step 1, after 20,028 us; the copy is under way until the end.
    assert replayed(tmp_path, made, 2)[0] == pytest.approx(copied - 20_028, rel=1e-9)


def test_what_waits_for_work_from_before_waits(tmp_path: Path) -> None:
    made = Rank(0)
    gpu = Gpu(made)
    early = gpu.launch(0, 30_000, stream=30)
    made.op("ProfilerStep#1", 10, 700)
    gpu.launch(20, 1000)
    made.cuda("cudaStreamWaitEvent", 40, 41)
    gpu.launch(50, 1000, after=early)
    gpu.launch(60, 1000)
    took, summary = replayed(tmp_path, made, 1)
    assert took == pytest.approx(early + 2000 - 10, rel=1e-9)
    assert summary.doubts == ()


def test_a_host_that_waits_each_step_has_nothing_in_flight(tmp_path: Path) -> None:
    made = Rank(0)
    gpu = Gpu(made)
    begin = 0
    for number in (1, 2):
        end = max(gpu.launch(begin + 10 * k, LASTS) for k in range(KERNELS))
        made.cuda("cudaDeviceSynchronize", begin + 300, end + 4)
        made.op(f"ProfilerStep#{number}", begin, end + 5)
        begin = end + 10
    took, summary = replayed(tmp_path, made, 2)
    assert took == pytest.approx(KERNELS * LASTS + 13, rel=1e-9)
    assert not any("in flight" in line for line in summary.jobs[0].read)


def test_a_replay_that_differs_says_so_on_top_and_names_the_stream(tmp_path: Path) -> None:
    """Two GPUs of one process, whose streams have one number: the trace has them work side by side."""
    made = Rank(0)
    made.op("ProfilerStep#1", 0, 200)
    for k in range(10):
        made.launch("gemm", 10 * k, 10 + 500 * (k // 2), 510 + 500 * (k // 2))
    took, summary = replayed(tmp_path, made, 1)
    assert took > 4000
    (doubt,) = summary.doubts
    assert "measured to take 2.51 ms" in doubt.why
    assert "stream 7 differs most" in doubt.why
    assert str(summary).splitlines()[3] == "doubtful:"
