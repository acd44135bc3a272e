"""Traces of which nothing of a GPU can be timed: refused, or doubtful on top."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.errors import WorkloadError
from tests.formats.pytorch.trace_files import Rank, data_parallel


def run(path: Path, **settings: Any) -> cosim.Run:
    fabric = {"kind": "switch", "endpoints": 2, "rate": "100Gbps", "latency": "0ns"}
    job = {"workload": {"kind": "pytorch", **settings}}
    return cosim.run({"topology": fabric, "network": "fair_share", "jobs": [job]}, out=path / "out")


def operators(folder: Path, devices: list[str], name: str = "aten::mm") -> Path:
    """An ET of one product on each device."""
    nodes = []
    for number, device in enumerate(devices):
        tensor = [number, number, 0, 64 * 64, 4, device]
        nodes.append(
            {"id": number + 2, "name": name, "ctrl_deps": 1,
             "inputs": {"values": [tensor, tensor], "shapes": [[64, 64]] * 2, "types": ["Tensor(float)"] * 2},
             "outputs": {"values": [tensor], "shapes": [[64, 64]], "types": ["Tensor(float)"]},
             "attrs": [{"name": "rf_id", "type": "uint64", "value": number}]}
        )  # fmt: skip
    path = folder / "et.json"
    path.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes}))
    return path


def test_a_cpus_execution_trace_is_refused(tmp_path: Path) -> None:
    path = operators(tmp_path, ["cpu"] * 5)
    with pytest.raises(
        WorkloadError, match="nothing can be timed: 5 of 5 operators work on the CPU"
    ) as caught:
        run(tmp_path, et=str(path), gpu="h100-sxm")
    assert "on a GPU" in str(caught.value)


@pytest.mark.parametrize("shapes", [[["x", 64], [64, 64]], [[-1, 64], [64, 64]], [[64, 64], [65, 64]]])
def test_shapes_that_make_no_product_are_refused(tmp_path: Path, shapes: list[Any]) -> None:
    path = operators(tmp_path, ["cuda:0"])
    trace = json.loads(path.read_text())
    trace["nodes"][0]["inputs"]["shapes"] = shapes
    path.write_text(json.dumps(trace))
    with pytest.raises(WorkloadError, match=r"et\.json: node 2 'aten::mm': input shapes are"):
        run(tmp_path, et=str(path), gpu="h100-sxm")


@pytest.mark.parametrize("device", ["cuda:0", "xpu:0", "npu:1", "hpu:0"])
def test_any_device_that_computes_is_timed(tmp_path: Path, device: str) -> None:
    done = run(tmp_path, et=str(operators(tmp_path, [device] * 3)), gpu="a100-80gb")
    assert sum(op.flops > 0 for op in done.records.jobs[0].workload.programs[0].operations) == 3


def test_a_trace_that_is_mostly_a_cpus_is_doubtful(tmp_path: Path) -> None:
    done = run(tmp_path, et=str(operators(tmp_path, ["cpu", "cpu", "cuda:0"])), gpu="a100-80gb")
    assert "2 of 3 operators work on the CPU" in done.doubts[0].why


def test_operators_that_are_mostly_guessed_are_doubtful(tmp_path: Path) -> None:
    done = run(tmp_path, et=str(operators(tmp_path, ["cuda:0"] * 4, "mine::fused")), gpu="a100-80gb")
    assert "4 of 4 are guesses, by tensors' bytes: mine::fused" in done.doubts[0].why


def test_a_number_type_that_no_measurement_has_is_doubtful(tmp_path: Path) -> None:
    done = run(tmp_path, et=str(operators(tmp_path, ["cuda:0"])), gpu="a100-80gb")
    (doubt,) = done.doubts
    assert "times of fp32 kernels on A100" in doubt.what
    assert "uncalibrated for fp32" in doubt.why


def made(category: str) -> Rank:
    """A step whose device's work is of a category."""
    rank = Rank(0)
    rank.op("ProfilerStep#1", 0, 1000)
    for k in range(5):
        rank.kernel("work", 100 * k, 100 * k + 80, 7, rank.cuda("launch", 100 * k, 100 * k + 5), category)
    return rank


@pytest.mark.parametrize("category", ["mtia_ccp_events", "hpu_op", "tpu_things"])
def test_device_events_that_nobody_knows_are_doubtful(tmp_path: Path, category: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(made(category).kineto()))
    (doubt,) = run(tmp_path, kineto=str(path)).doubts
    assert f"5 events of its work are of kinds that aren't known ({category})" in doubt.why


@pytest.mark.parametrize("category", ["kernel", "Kernel"])
def test_device_events_of_every_age_are_read(tmp_path: Path, category: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(made(category).kineto()))
    done = run(tmp_path, kineto=str(path))
    assert done.doubts == ()
    assert done.summary.jobs[0].compute.mean_ps == 400 * 10**6


def test_a_trace_with_a_gpu_and_none_of_its_work_is_doubtful(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    rank = Rank(0)
    rank.op("ProfilerStep#1", 0, 1000)
    rank.cuda("cudaLaunchKernel", 10, 20)
    path.write_text(json.dumps(rank.kineto()))
    (doubt,) = run(tmp_path, kineto=str(path)).doubts
    assert "only the host's threads are timed" in doubt.why


def test_work_without_launches_and_nccl_without_work_are_doubtful(tmp_path: Path) -> None:
    """As Holistic Trace Analysis' traces have them that were cut down to a few events."""
    whole = data_parallel(0, 1).kineto()
    path = tmp_path / "kineto.json"
    cut = [event for event in whole["traceEvents"] if event.get("cat") != "cuda_runtime"]
    path.write_text(json.dumps({**whole, "traceEvents": cut}))
    doubts = [doubt.why for doubt in run(tmp_path, kineto=str(path), collectives="measured").doubts]
    assert any("works have no launch in the trace" in why for why in doubts)
    host = [event for event in cut if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset")]
    path.write_text(json.dumps({"traceEvents": host}))
    assert not run(tmp_path / "gloo", kineto=str(path), collectives="measured").doubts
    host.append(
        {**host[0], "cat": "user_annotation", "name": "nccl:all_reduce", "ph": "X", "ts": 0, "dur": 1}
    )
    path.write_text(json.dumps({"traceEvents": host}))
    doubts = [doubt.why for doubt in run(tmp_path, kineto=str(path), collectives="measured").doubts]
    assert any("the trace has a GPU and nothing of its work" in why for why in doubts)
