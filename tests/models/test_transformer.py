from itertools import pairwise

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.gpu.catalogue import A100_80GB
from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.transformer import Transformer
from cosim.workload.check import check
from cosim.workload.program import COMM_STREAM, CPU_STREAM, NO_STREAM, Operation, OpKind, Workload

GPT3 = {"layers": 96, "hidden": 12288, "heads": 96, "vocabulary": 51200, "sequence": 2048}
SMALL = {"layers": 8, "hidden": 256, "heads": 8, "vocabulary": 1024, "sequence": 128}


def make(shape: dict[str, int], **settings: object) -> Transformer:
    return Transformer.model_validate({**shape, "gpu": A100_80GB, **settings})


def workload(model: Transformer) -> Workload:
    made = model.build(HERE)
    check(made)
    return made


def operations(model: Transformer) -> tuple[Operation, ...]:
    (program,) = workload(model).programs
    return program.operations


def every_rank(model: Transformer) -> list[tuple[Operation, ...]]:
    made = workload(model)
    return [made.program(rank).operations for rank in range(made.world_size)]


@pytest.mark.parametrize("attention", ["flash", "unfused"])
@pytest.mark.parametrize(
    "cut",
    [
        {},
        {"tensor_parallel": 8},
        {"tensor_parallel": 4, "sequence_parallel": True, "data_parallel": 2},
        {"pipeline_parallel": 8, "micro_batches": 3},
        {"pipeline_parallel": 4, "micro_batches": 8, "schedule": "interleaved", "virtual_stages": 3},
        {"pipeline_parallel": 2, "micro_batches": 2, "schedule": "gpipe", "tensor_parallel": 2},
    ],
)
@pytest.mark.parametrize(("recompute", "passes"), [("none", 3), ("full", 4)])
def test_flops_of_all_ranks_are_narayanans(
    cut: dict[str, object], recompute: str, passes: int, attention: str
) -> None:
    model = make(GPT3, micro_batch=2, recompute=recompute, attention=attention, **cut)
    done = sum(op.flops for ops in every_rank(model) for op in ops)
    b = 2 * model.micro_batches * model.data_parallel
    s, lay, h, v = model.sequence, model.layers, model.hidden, model.vocabulary
    scores = passes * 4 * b * s * s * h
    if attention == "flash":  # half of them under a causal mask; backward has five products for two
        scores = scores // 2 + 2 * b * s * s * h // 2
    assert done == lay * (passes * 24 * b * s * h * h + scores) + 3 * 2 * b * s * h * v
    if recompute == "full" and attention == "unfused":  # equation 3 of arXiv 2104.04473
        assert done == pytest.approx(
            96 * b * s * lay * h**2 * (1 + s / (6 * h) + v / (16 * lay * h)), rel=1e-12
        )


def test_selective_recomputation_repeats_the_scores_only() -> None:
    b, s, h = 1, GPT3["sequence"], GPT3["hidden"]
    flops = [
        sum(op.flops for op in operations(make(GPT3, recompute=name, attention="unfused")))
        for name in ("none", "selective")
    ]
    assert flops[1] - flops[0] == GPT3["layers"] * 4 * b * s * s * h


def test_parameters_are_the_closed_form() -> None:
    lay, h, v, s = 96, 12288, 51200, 2048
    made = make(GPT3).model.model
    assert isinstance(made, TransformerModel)
    # equation 2 of arXiv 2104.04473, which leaves out the norm after the last layer
    narayanan = 12 * lay * h**2 * (1 + 13 / (12 * h) + (v + s) / (12 * lay * h))
    assert made.parameters - 2 * h == pytest.approx(narayanan, rel=1e-12)


@pytest.mark.parametrize("bucket", ["1B", "100kB", "1GB", None])
@pytest.mark.parametrize(("gradient_dtype", "width"), [("fp32", 4), ("bf16", 2)])
def test_gradients_of_all_parameters_are_reduced_once(
    bucket: str | None, gradient_dtype: str, width: int
) -> None:
    how = {"overlap_gradients": False} if bucket is None else {"bucket": bucket}
    model = make(
        SMALL, data_parallel=4, tensor_parallel=2, gradient_dtype=gradient_dtype, micro_batches=3, **how
    )
    buckets = [op for op in operations(model) if op.axes == ("dp",)]
    lay, h, tp = SMALL["layers"], SMALL["hidden"], 2
    # norms, positions, and biases after a row-parallel product are whole on each rank
    layer = (12 * h * h + 7 * h) // tp + 6 * h
    own = lay * layer + SMALL["vocabulary"] * h // tp + SMALL["sequence"] * h + 2 * h
    assert sum(op.size_bytes for op in buckets) == own * width
    assert {op.stream for op in buckets} == {COMM_STREAM}
    if bucket in ("1GB", None):
        assert len(buckets) == 1
    else:
        assert (
            len(buckets) == 10
            if bucket == "1B"
            else all(op.size_bytes >= model.bucket for op in buckets[:-1])
        )


@pytest.mark.parametrize(("sequence_parallel", "kinds"), [(False, (4, 0, 0)), (True, (0, 4, 4))])
@pytest.mark.parametrize(("recompute", "more"), [("none", 1), ("full", 1.5)])
def test_a_layer_has_four_exchanges_or_six(
    sequence_parallel: bool, kinds: tuple[int, int, int], recompute: str, more: float
) -> None:
    counts = []
    for layers in (4, 8):
        ops = operations(
            make(
                {**SMALL, "layers": layers}, tensor_parallel=2, sequence_parallel=sequence_parallel,
                recompute=recompute, micro_batches=3,
            )
        )  # fmt: skip
        found = [op for op in ops if op.kind is OpKind.COLLECTIVE and op.size_bytes > 2 * 128 * 4]
        counts.append(
            [
                sum(op.collective == kind for op in found)
                for kind in ("all_reduce", "all_gather", "reduce_scatter")
            ]
        )
        state = 128 * 256 * 2
        sizes = {"all_reduce": state, "all_gather": state // 2, "reduce_scatter": state}
        assert all(op.size_bytes == sizes[op.collective] for op in found)
    assert [b - a for a, b in zip(*counts, strict=True)] == [3 * 4 * count * more for count in kinds]
    assert not [op for op in operations(make(SMALL)) if op.kind is OpKind.COLLECTIVE]


def test_the_loss_is_vocabulary_parallel() -> None:
    ops = operations(make(SMALL, tensor_parallel=2))
    assert sum(op.size_bytes == 128 * 4 and op.axes == ("tp",) for op in ops) == 3


def ancestors(ops: tuple[Operation, ...]) -> list[set[int]]:
    before: list[set[int]] = []
    for op in ops:
        assert all(other < len(before) for other in op.deps)
        before.append({*op.deps}.union(*(before[other] for other in op.deps)))
    return before


def test_each_stream_runs_in_program_order_by_dependencies() -> None:
    ops = operations(make(SMALL, tensor_parallel=2, data_parallel=2, bucket="100kB", micro_batches=2))
    before = ancestors(ops)
    for stream in {op.stream for op in ops} - {NO_STREAM}:
        numbers = [number for number, op in enumerate(ops) if op.stream == stream]
        assert all(first in before[second] for first, second in pairwise(numbers))
    ended = before[-1] | {number for number, op in enumerate(ops[:-1]) if op.stream == CPU_STREAM}
    assert ended == set(range(len(ops) - 1))


def test_gradients_leave_while_backward_goes_on() -> None:
    ops = operations(make(SMALL, data_parallel=2, bucket="100kB"))
    first = next(number for number, op in enumerate(ops) if op.axes == ("dp",))
    later = [op for op in ops[first + 1 :] if op.kind is OpKind.COMPUTE and op.phase == "backward"]
    assert later
    assert not any(first in op.deps for op in later)


def test_a_sharded_optimizer_scatters_gradients_and_gathers_parameters() -> None:
    plain, sharded = (
        operations(
            make({**SMALL, "hidden": 4096}, data_parallel=4, sharded_optimizer=flag, overlap_gradients=False)
        )
        for flag in (False, True)
    )
    assert [op.collective for op in plain if op.axes == ("dp",)] == ["all_reduce"]
    scattered, gathered = (op for op in sharded if op.axes == ("dp",))
    assert (scattered.collective, gathered.collective) == ("reduce_scatter", "all_gather")
    assert gathered.size_bytes == scattered.size_bytes // 4 // 4 * 2  # fp32 gradients, bf16 parameters
    step = [
        next(op for op in ops if op.name == "optimizer optimizer").duration_ps for ops in (plain, sharded)
    ]
    assert step[0] == pytest.approx(4 * step[1], rel=0.3)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
def test_neighbouring_stages_send_what_the_other_receives(schedule: str) -> None:
    chunks = 2 if schedule == "interleaved" else 1
    made = workload(
        make(
            SMALL, pipeline_parallel=4, micro_batches=8, schedule=schedule, virtual_stages=chunks,
            tensor_parallel=2,
        )
    )  # fmt: skip
    state = 128 * 256 * 2 // 2
    sent = [
        op for p in made.programs for op in p.operations if op.kind is OpKind.SEND and op.size_bytes == state
    ]
    # each micro-batch crosses every border between the chunks, there and back
    assert len(sent) == 2 * 8 * (4 * chunks - 1)
    tied = [op for p in made.programs for op in p.operations if op.tag == 1 << 20]
    assert sum(op.size_bytes for op in tied if op.kind is OpKind.SEND) == 2 * 1024 // 2 * 256 * 4


def test_the_size_of_the_program_does_not_grow_with_the_world() -> None:
    small = make(SMALL, data_parallel=2, tensor_parallel=2).build(HERE)
    large = make(SMALL, data_parallel=2048, tensor_parallel=2).build(HERE)
    assert len(large.programs[0].operations) == len(small.programs[0].operations)
    assert large.world_size == 4096
    assert large.mesh.group(5, ("tp",)) == (4, 5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"heads": 7}, "hidden 256 isn't a multiple of heads 7"),
        ({"tensor_parallel": 3}, "heads 8 isn't a multiple of tp 3; 9 would be"),
        ({"sequence": 127, "tensor_parallel": 2, "sequence_parallel": True}, "128 would be"),
        ({"pipeline_parallel": 9}, "8 layers don't fill 9 stages"),
        (
            {"pipeline_parallel": 4, "schedule": "interleaved", "micro_batches": 6},
            "micro-batches 6 isn't a multiple of pp 4; 8 would be",
        ),
        ({"virtual_stages": 2}, "needs `schedule: interleaved`"),
        ({"dtype": "fp8"}, "A100-SXM4-80GB has no fp8; it has bf16"),
    ],
)
def test_shapes_that_do_not_divide_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(SMALL, **settings)


def test_layers_left_over_are_in_the_middle_and_a_vocabulary_is_padded() -> None:
    seven = {**SMALL, "layers": 7}
    stages = make(seven, pipeline_parallel=3, tensor_parallel=2, vocabulary=1023).model.job().stages
    assert [sum(layer.name.startswith("layer") for layer in chunk) for (chunk,) in stages] == [2, 3, 2]
    (padded,) = make(seven, tensor_parallel=2).model.job().stages
    assert stages[2][0][-1].forward == padded[0][-1].forward


def test_it_is_the_kind_model_by_other_names() -> None:
    how = {"attention": "unfused", "recompute": "selective", "gpu": "a100-80gb"}
    sizes = {"layers": 24, "hidden": 2304, "heads": 24, "vocabulary": 51200, "sequence": 2048}
    cut = {"tensor_parallel": 4, "pipeline_parallel": 2, "data_parallel": 2, "sequence_parallel": True}
    one = Transformer.model_validate({**sizes, **cut, **how, "micro_batches": 8, "blocking_sends": True})
    other = ModelWorkload.model_validate(
        {
            "model": "gpt3-1.7b", "parallel": {"tp": 4, "pp": 2, "dp": 2}, "batch": 16,
            "framework": {"kind": "megatron", "blocking_sends": True}, **how,
        }
    )  # fmt: skip
    for mine, theirs in zip(one.build(HERE).programs, other.build(HERE).programs, strict=True):
        assert mine.operations == theirs.operations


def test_settings_of_a_parallelism_that_is_not_there_are_idle() -> None:
    idle = make(SMALL, bucket="1MB", blocking_sends=True, sequence_parallel=False).idle_settings()
    assert dict(idle) == {
        "bucket": "there is one replica: no gradients are exchanged",
        "blocking_sends": "pp is 1: there is one stage",
        "sequence_parallel": "tp is 1: a layer is whole",
    }
    assert make(SMALL, bucket="1MB", data_parallel=2).idle_settings() == []
