from itertools import pairwise
from math import ceil

import pytest
from pydantic import ValidationError

from cosim.workload.check import check
from cosim.workload.gpus import A100_80GB, Gpu
from cosim.workload.models.layers import Shape, attention_forward
from cosim.workload.models.transformer import Transformer
from cosim.workload.program import COMM_STREAM, COMPUTE_STREAM, Operation, OpKind
from cosim.workload.roofline import compute_ps

GPT3 = {"layers": 96, "hidden": 12288, "heads": 96, "vocabulary": 51200, "sequence": 2048}
SMALL = {"layers": 4, "hidden": 256, "heads": 8, "vocabulary": 1024, "sequence": 128}


def make(shape: dict[str, int], **settings: object) -> Transformer:
    return Transformer.model_validate({**shape, "gpu": A100_80GB, **settings})


def operations(model: Transformer) -> tuple[Operation, ...]:
    workload = model.build()
    check(workload)
    (program,) = workload.programs
    return program.operations


def narayanan_flops(model: Transformer, passes: int) -> int:
    """Layers run 3 or, with recomputation, 4 forward passes' worth; the logits 3."""
    b, s, h, v = model.micro_batch, model.sequence, model.hidden, model.vocabulary
    per_layer = 24 * b * s * h * h + 4 * b * s * s * h
    return passes * model.layers * per_layer + 3 * 2 * b * s * h * v


@pytest.mark.parametrize("tensor_parallel", [1, 2, 8])
@pytest.mark.parametrize(("recompute", "passes"), [("none", 3), ("full", 4)])
def test_flops_are_the_closed_form(tensor_parallel: int, recompute: str, passes: int) -> None:
    model = make(GPT3, tensor_parallel=tensor_parallel, micro_batch=2, recompute=recompute)
    assert sum(op.flops for op in operations(model)) * tensor_parallel == narayanan_flops(model, passes)
    b, s, lay, h, v = 2, 2048, 96, 12288, 51200
    if recompute == "full":
        paper = 96 * b * s * lay * h**2 * (1 + s / (6 * h) + v / (16 * lay * h))
        assert narayanan_flops(model, 4) == pytest.approx(paper, rel=1e-12)


def test_parameters_are_the_closed_form() -> None:
    lay, h, v, s = 96, 12288, 51200, 2048
    assert make(GPT3).parameters == pytest.approx(
        12 * lay * h**2 * (1 + 13 / (12 * h) + (v + s) / (12 * lay * h)), rel=1e-12
    )


@pytest.mark.parametrize("bucket", ["1B", "100kB", "1GB"])
@pytest.mark.parametrize(("gradient_dtype", "width"), [("fp32", 4), ("bf16", 2)])
def test_gradients_of_all_parameters_are_reduced_once(bucket: str, gradient_dtype: str, width: int) -> None:
    model = make(
        SMALL,
        data_parallel=4,
        tensor_parallel=2,
        bucket=bucket,
        gradient_dtype=gradient_dtype,
        micro_batches=3,
    )
    buckets = [op for op in operations(model) if op.axes == ("dp",)]
    assert sum(op.size_bytes for op in buckets) == model.parameters // 2 * width
    assert all(op.size_bytes >= model.bucket for op in buckets[:-1])
    assert {op.stream for op in buckets} == {COMM_STREAM}
    assert len(buckets) == {"1B": 9, "1GB": 1}.get(bucket, len(buckets))


def test_a_layer_has_two_tensor_parallel_all_reduces_each_way() -> None:
    found = [op for op in operations(make(SMALL, tensor_parallel=2, micro_batches=3)) if op.axes == ("tp",)]
    assert len(found) == 3 * 4 * 4
    assert {op.size_bytes for op in found} == {128 * 256 * 2}
    assert sum(op.phase == "forward" for op in found) == sum(op.phase == "backward" for op in found)
    assert not [op for op in operations(make(SMALL)) if op.kind is OpKind.COLLECTIVE]


def test_each_stream_runs_in_program_order_by_dependencies() -> None:
    ops = operations(make(SMALL, tensor_parallel=2, data_parallel=2, bucket="100kB", micro_batches=2))
    before: list[set[int]] = []
    for op in ops:
        assert all(other < len(before) for other in op.deps)
        before.append({*op.deps}.union(*(before[other] for other in op.deps)))
    for stream in {op.stream for op in ops}:
        numbers = [number for number, op in enumerate(ops) if op.stream == stream]
        assert all(first in before[second] for first, second in pairwise(numbers))
    assert before[-1] == set(range(len(ops) - 1))


def test_gradients_leave_while_backward_goes_on() -> None:
    ops = operations(make(SMALL, data_parallel=2, bucket="100kB"))
    first = next(number for number, op in enumerate(ops) if op.axes == ("dp",))
    later = [op for op in ops[first + 1 :] if op.kind is OpKind.COMPUTE and op.phase == "backward"]
    assert later
    assert not any(first in op.deps for op in later)


def test_a_compute_operation_takes_the_sum_of_its_kernels_rooflines() -> None:
    model = make(SMALL, efficiency=0.4, memory_efficiency=0.7)
    ops = operations(model)
    kernels = attention_forward(Shape(1, 128, 256, 1024, 1024, 1, 2))
    expected = sum(
        ceil(max(k.flops / (0.4 * 312e12), k.bytes_moved / (0.7 * 2039e9)) * 1e12) for k in kernels
    )
    attention = next(op for op in ops if op.name == "layer 0 attention forward")
    assert abs(attention.duration_ps - expected) <= len(kernels)
    assert attention.stream == COMPUTE_STREAM


def test_the_size_of_the_program_does_not_grow_with_the_world() -> None:
    small = make(SMALL, data_parallel=2, tensor_parallel=2).build()
    large = make(SMALL, data_parallel=2048, tensor_parallel=2).build()
    assert len(large.programs[0].operations) == len(small.programs[0].operations)
    assert large.world_size == 4096
    assert large.mesh.group(5, ("tp",)) == (4, 5)


def test_computation_and_its_all_reduces_take_about_what_was_measured() -> None:
    # Korthikanti et al., arXiv 2205.05198, table 5, full recomputation on A100s: the default efficiency was
    # chosen for the first; the second (tp 8, pp 8, 64 sequences) is one of eight stages, without its waiting.
    for layers, hidden, heads, batch, batches, measured_s in (
        (48, 6144, 64, 4, 1, 1.42),
        (12, 12288, 96, 1, 64, 18.13),
    ):
        shape = {**GPT3, "layers": layers, "hidden": hidden, "heads": heads}
        settings = {"tensor_parallel": 8, "recompute": "full", "micro_batch": batch, "micro_batches": batches}
        ops = operations(make(shape, **settings))
        compute_s = sum(op.duration_ps for op in ops) / 1e12
        # ring all-reduce over 8: 2 * 7 / 8 of the bytes, at 230 GB/s as nccl-tests measures on a DGX A100
        exchange_s = sum(op.size_bytes for op in ops) * 1.75 / 230e9
        assert compute_s + exchange_s == pytest.approx(measured_s, rel=0.06)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"heads": 7}, "hidden 256 isn't a multiple of heads 7"),
        ({"tensor_parallel": 3}, "heads 8 isn't a multiple of tensor_parallel 3; 9 would be"),
        ({"vocabulary": 1023, "tensor_parallel": 2}, "vocabulary 1023 isn't a multiple .* 1024 would be"),
        ({"dtype": "fp8"}, "A100-SXM4-80GB has no fp8; it has bf16"),
        ({"efficiency": 1.5}, "less than or equal to 1"),
    ],
)
def test_shapes_that_do_not_divide_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(SMALL, **settings)


def test_a_bucket_without_data_parallelism_is_an_idle_setting() -> None:
    assert make(SMALL, bucket="1MB").idle_settings() == [
        ("bucket", "data_parallel is 1: no gradients are exchanged")
    ]
    assert make(SMALL, bucket="1MB", data_parallel=2).idle_settings() == []


def test_a_kernel_takes_the_longer_of_arithmetic_and_memory() -> None:
    gpu = Gpu.model_validate({"peak_flops": {"bf16": 100e12}, "memory_rate": "1TB/s"})
    assert compute_ps(10**9, 0, gpu, "bf16") == 10_000_000  # 1e9 / 1e14 s = 10 us
    assert compute_ps(0, 10**6, gpu, "bf16") == 1_000_000  # 1e6 / 1e12 s = 1 us
    assert compute_ps(10**9, 10**6, gpu, "bf16", efficiency=0.5) == 20_000_000
    assert compute_ps(10**9, 10**8, gpu, "bf16", memory_efficiency=0.25) == 400_000_000
    assert compute_ps(1, 0, gpu, "bf16") == 1  # 0.01 ps, rounded up
    with pytest.raises(ValueError, match="efficiency is 0"):
        compute_ps(1, 1, gpu, "bf16", efficiency=0)
