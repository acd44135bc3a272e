"""Exposed communication by kind, against the whole of it and by hand."""

from __future__ import annotations

import numpy as np
import pytest

import cosim
from cosim.results.exposed import exposed_by_kind
from cosim.results.store import run_columns
from cosim.units import PS_PER_MS
from cosim.workload.program import Peer
from tests.inputs import ROOT


def operation(name: str, stream: str, *, after: tuple[int, ...] = (), **more: object) -> cosim.Operation:
    kind = cosim.OpKind.COLLECTIVE if "collective" in more else cosim.OpKind.COMPUTE
    return cosim.Operation(name, kind, stream, after, **more)  # type: ignore[arg-type]


def test_what_is_under_way_together_is_shared_alike_and_what_computes_hides_it() -> None:
    # 8 Gb/s, two ranks, each sends a whole all-to-all's half: 1 MB is 1 ms.
    program = cosim.Program(
        "all",
        (
            operation("step", "compute", duration_ps=2 * PS_PER_MS),
            operation("hidden", "one", collective="all_to_all", size_bytes=2_000_000),
            operation("alone", "one", after=(0, 1), collective="all_gather", size_bytes=2_000_000),
        ),
    )
    work = cosim.Workload("mine", cosim.DeviceMesh({"dp": 2}), (program,), np.zeros(2, np.int32))
    ring = {"kind": "ring", "endpoints": 2, "rate": "8Gbps", "latency": "0ns"}
    run = cosim.run({"topology": ring, "network": "fair_share", "jobs": [{"workload": work}]})
    (parts,) = exposed_by_kind(run_columns(run.records))
    assert parts == {"all_gather": run.summary.jobs[0].exposed.mean_ps}


def test_what_a_stage_waits_for_others_is_its_receives() -> None:
    # 8 Gb/s: 1 MB is 1 ms. The second stage waits for 2 ms of computing and for the message.
    size, milli = 1_000_000, PS_PER_MS
    send = cosim.Operation("on", cosim.OpKind.SEND, "pp", (0,), size_bytes=size, peer=Peer(rank=1))
    receive = cosim.Operation("in", cosim.OpKind.RECV, size_bytes=size, peer=Peer(rank=0))
    programs = (
        cosim.Program("first", (operation("step", "compute", duration_ps=2 * milli), send)),
        cosim.Program("second", (receive, operation("step", "compute", after=(0,), duration_ps=milli))),
    )
    work = cosim.Workload("mine", cosim.DeviceMesh({"pp": 2}), programs, np.arange(2, dtype=np.int32))
    ring = {"kind": "ring", "endpoints": 2, "rate": "8Gbps", "latency": "0ns"}
    run = cosim.run({"topology": ring, "network": "fair_share", "jobs": [{"workload": work}]})
    (parts,) = exposed_by_kind(run_columns(run.records))
    assert parts == {"send": milli / 2, "receive": 3 * milli / 2}  # the mean of both ranks


@pytest.mark.parametrize("job", ["{kind: periodic, compute: 1ms, size: 25MB}", "TRANSFORMER"])
def test_parts_add_up_to_the_exposed_communication(job: str) -> None:
    transformer = (
        "{kind: transformer, layers: 4, hidden: 1024, heads: 16, vocabulary: 51200, sequence: 512,"
        " micro_batch: 2, micro_batches: 2, tensor_parallel: 2, pipeline_parallel: 2, gpu: h100-sxm}"
    )
    run = cosim.run(
        "topology: {kind: switch, endpoints: 4, rate: 100Gbps, latency: 1us}\nnetwork: fair_share\n"
        f"jobs: [{{workload: {job.replace('TRANSFORMER', transformer)}, iterations: 2}}]\n"
    )
    (parts,) = exposed_by_kind(run_columns(run.records))
    assert sum(parts.values()) == pytest.approx(run.summary.jobs[0].exposed.mean_ps, abs=1)
    assert len(parts) > (job == "TRANSFORMER")


def test_utilisation_is_flops_by_time_and_peak() -> None:
    run = cosim.run(ROOT / "scenarios" / "quickstart.yaml")
    (job,) = run.summary.jobs
    assert job.work is not None
    assert job.flops_utilisation is not None
    assert job.tokens_per_gpu_s is not None
    assert job.iteration_mean_ps is not None
    seconds = job.iteration_mean_ps / 1e12
    sizes = {"layers": 8, "hidden": 4096, "sequence": 2048, "vocabulary": 51200}
    assert all(run.settings["jobs"][0]["workload"][name] == value for name, value in sizes.items())
    tokens = job.work.tokens
    # Narayanan et al., SC 2021, equation 3 without recomputation: three quarters of 96 B s l h^2 (...).
    layers, h, s, v = sizes.values()
    flops = 72 * tokens * layers * h**2 * (1 + s / (6 * h) + v / (12 * layers * h))
    assert job.work.flops == pytest.approx(flops, rel=1e-9)
    assert job.flops_utilisation == pytest.approx(flops / seconds / (job.num_ranks * 989.4e12), rel=2e-3)
    assert job.tokens_per_gpu_s == pytest.approx(tokens / seconds / job.num_ranks)


def test_where_operations_say_what_they_compute_utilisation_is_that_of_kernels() -> None:
    run = cosim.run(ROOT / "scenarios" / "profiled-llama.yaml")
    (job,) = run.summary.jobs
    (workload,) = (one.workload for one in run.records.jobs)
    operations = [[one.flops for one in program.operations] for program in workload.programs]
    flops = (
        sum(sum(operations[number]) for number in workload.program_of.tolist()) * run.records.jobs[0].copies
    )
    assert job.work is not None
    assert (job.work.counted, job.work.flops, job.work.memory_bytes) == ("kernels", flops, None)
    assert job.iteration_mean_ps is not None
    each = flops / (job.iteration_mean_ps / 1e12) / 64
    assert job.flops_per_gpu_s == pytest.approx(each)
    assert job.flops_utilisation == pytest.approx(each / 989.4e12, rel=2e-3)  # bf16 on an H100 SXM
    assert job.tokens_per_gpu_s is None


def test_where_nobody_says_on_what_there_is_no_utilisation() -> None:
    step = cosim.Operation("step", cosim.OpKind.COMPUTE, duration_ps=10**9, flops=2e12)
    workload = cosim.Workload(
        "mine", cosim.DeviceMesh({"dp": 2}), (cosim.Program("all", (step,)),), np.zeros(2, np.int32)
    )
    ring = {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"}
    run = cosim.run({"topology": ring, "network": "fair_share", "jobs": [{"workload": workload}]})
    (job,) = run.summary.jobs
    assert job.flops_utilisation is None
    assert job.flops_per_gpu_s == pytest.approx(2e15)
