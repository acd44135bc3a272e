"""Hosts: what a job names beside its GPU is what its operators take."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml

from cosim.context import HERE, Context
from cosim.errors import InputError, WorkloadError
from cosim.experiment.scenario import loads
from cosim.gpu import catalogue as gpus
from cosim.gpu.gpus import Gpu, build_gpu
from cosim.gpu.timer import GpuTimer
from cosim.host import catalogue
from cosim.host.hosts import Host, HostTable
from cosim.models.transformer import Transformer
from cosim.registry import find
from cosim.workload.program import CPU_STREAM, OpKind

SHAPE = {"layers": 2, "hidden": 256, "heads": 2, "vocabulary": 64, "sequence": 64}
"""Kernels so small that the host is always behind."""


def issued_and_computed_ps(host: Any, gpu: Any = "a100-80gb") -> tuple[int, int]:
    model = Transformer.model_validate({**SHAPE, "gpu": gpu, "host": host})
    operations = [op for op in model.build(HERE).programs[0].operations if op.kind is OpKind.COMPUTE]
    issued = sum(op.duration_ps for op in operations if op.stream == CPU_STREAM)
    return issued, sum(op.duration_ps for op in operations if op.stream != CPU_STREAM)


@pytest.mark.parametrize("name", catalogue.names())
def test_each_file_is_an_entry_point_with_its_source(name: str) -> None:
    host = find("cosim.hosts", name)
    assert host == catalogue.read(name)
    assert host.name == name
    assert len(host.source) > 20
    named = {point.name for point in entry_points(group="cosim.hosts")}
    assert named == {*catalogue.names(), "custom", "table"}


@pytest.mark.parametrize("name", gpus.names())
def test_a_gpu_has_at_most_eight_fitted_numbers_and_its_host_has_its_own(name: str) -> None:
    gpu = gpus.read(name)
    assert len(gpu.fitted) <= 8
    assert gpu.host in [catalogue.read(host) for host in catalogue.names()]
    written = yaml.safe_load((Path(gpus.__file__).parent / "data" / f"{name}.yaml").read_text())["gpu"]
    if "host" in written:
        assert gpu.host == catalogue.read(written["host"])
    elif gpu.like is not None:
        assert gpu.host == gpus.read(gpu.like).host


def test_operators_take_what_the_named_host_takes() -> None:
    slow, slower = ({"kind": "custom", "operator_time": time} for time in ("30us", "60us"))
    (once, computed), (twice, same) = issued_and_computed_ps(slow), issued_and_computed_ps(slower)
    assert twice == 2 * once
    assert computed == same
    own = catalogue.read("megatron-deepspeed-2022")
    assert issued_and_computed_ps(None) == issued_and_computed_ps("megatron-deepspeed-2022")
    steps = own.step_time + once // 30_000_000 * own.operator_time
    assert issued_and_computed_ps(None)[0] == steps


def test_gaps_are_the_gpus_to_wait_and_no_kernels_own() -> None:
    none, some = ({"kind": "custom", "operator_time": "30us", "gap_time": gap} for gap in ("0us", "5us"))
    (issued, computed), (same, more) = issued_and_computed_ps(none), issued_and_computed_ps(some)
    assert issued == same
    assert (more - computed) % 5_000_000 == 0
    assert more > computed
    gpu = gpus.A100_80GB.on(Host(operator_time=0, gap_time="5us"))
    bare = gpus.A100_80GB.on(Host(operator_time=0))
    assert GpuTimer(gpu, "bf16", alone=True)._each_ps == GpuTimer(bare, "bf16", alone=True)._each_ps


def test_a_job_says_what_issues_its_operators() -> None:
    named = Transformer.model_validate({**SHAPE, "gpu": "h100-sxm", "host": "pytorch-2026"})
    assert "issued by pytorch-2026: PyTorch 2.11" in named.build(HERE).report.assumed[0]
    own = Transformer.model_validate({**SHAPE, "gpu": "h100-sxm"})
    assert "issued by" not in own.build(HERE).report.assumed[0]


def test_a_host_is_a_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "host.yaml").write_text("host: {operator_time: 15us, step_time: 1ms}\n")
    built = HostTable(path="host.yaml").build(Context(tmp_path))
    assert (built.operator_time, built.gap_time, built.step_time) == (15_000_000, 0, 10**9)
    gpu = build_gpu(gpus.H100_SXM, HostTable(path="host.yaml"), Context(tmp_path))
    assert gpu.host == built
    with pytest.raises(WorkloadError, match="there is no such file"):
        HostTable(path="other.yaml").build(Context(tmp_path))
    (tmp_path / "host.yaml").write_text("host: {operator_time: 15us,\n  step: 1ms}\n")
    with pytest.raises(WorkloadError, match=r"host\.yaml:2: host\.step: unknown key 'step'.*'step_time'"):
        HostTable(path="host.yaml").build(Context(tmp_path))


JOB = """
topology: {kind: switch, endpoints: 1, rate: 1Gbps, latency: 0ns}
network: fair_share
jobs: [{workload: {kind: model, model: bert-base, gpu: {kind: a100-80gb, GPU}, HOST}}]
"""


@pytest.mark.parametrize(
    ("gpu", "host", "said"),
    [
        (
            "efficiency: {host_time: 23us, gap_time: 1us}",
            "dtype: bf16",
            r"host_time is no GPU's but its host's: write "
            r"`host: {kind: custom, operator_time: 23us, gap_time: 1us}` beside `gpu`$",
        ),
        ("efficiency: {step_time: 1ms}", "dtype: bf16", "write `host: {kind: custom, step_time: 1ms}`"),
        ("host: {kind: table, path: x.yaml}", "dtype: bf16", "a HostTable is a job's, beside its `gpu`"),
        ("name: x", "host: pytorch", "there is no host 'pytorch'; did you mean 'pytorch-2026'"),
        ("name: x", "host: {kind: custom}", "operator_time: is missing"),
        ("name: x", "host: {kind: custom, operator_time: 1s}", "less than or equal to 200000000"),
        (
            "name: x",
            "host: {kind: custom, operator_time: 1us, fitted: {name: x}}",
            "a host has no number name",
        ),
    ],
)
def test_what_is_wrong_is_one_line(gpu: str, host: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        loads(JOB.replace("GPU", gpu).replace("HOST", host))
    assert "Traceback" not in str(caught.value)


def test_a_gpus_file_has_its_host_by_name_or_by_numbers() -> None:
    given = {"peak_flops": {"bf16": 1e15}, "memory_rate": "1TB/s"}
    assert Gpu.model_validate(given).host == catalogue.read("unknown")
    named = Gpu.model_validate(
        {**given, "like": "h100-sxm", "host": {"kind": "pytorch-2026", "gap_time": "1us"}}
    )
    assert (named.host.operator_time, named.host.gap_time) == (19_600_000, 1_000_000)
    assert Gpu.model_validate({**given, "like": "a100-80gb"}).host == gpus.A100_80GB.host
