"""Iteration times against closed forms, on a network that costs nothing to speak of."""

from typing import Any

import pytest

from cosim.context import HERE
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.gpu.catalogue import A100_80GB
from cosim.gpu.efficiency import Efficiency
from cosim.models.schedule import LOOPED, ScheduleName, even_rounds, passes
from cosim.models.transformer import Transformer
from cosim.workload.program import CPU_STREAM, OpKind
from tests.profiler.profiled import needs_torch

SHAPE = {"layers": 16, "hidden": 512, "heads": 8, "vocabulary": 64, "sequence": 256}
FAST_HOST = {"operator_time": "0ns"}


def iteration_ps(model: Transformer) -> int:
    scenario = Scenario.model_validate(
        {
            "topology": {
                "kind": "leaf_spine", "leaves": 1, "spines": 1, "latency": "0ns", "rate": "1000000Tbps",
                "endpoints_per_leaf": model.pipeline_parallel * model.tensor_parallel * model.data_parallel,
            },
            "network": "congestion_unaware",
            "jobs": [{"workload": model}],
        }
    )  # fmt: skip
    return int(run(scenario).records.iteration_end_ps[0].max())


def make(host: dict[str, str], *, kernel_time: str = "11us", **settings: object) -> Transformer:
    gpu = A100_80GB.model_copy(update={"efficiency": Efficiency(kernel_time=kernel_time)})
    return Transformer.model_validate({**SHAPE, "gpu": gpu, "host": {"kind": "custom", **host}, **settings})


def stage_work(model: Transformer, stage: int) -> int:
    program = model.build(HERE).programs[stage]
    return sum(
        op.duration_ps for op in program.operations if op.kind is OpKind.COMPUTE and op.phase != "optimizer"
    )


@pytest.mark.parametrize(
    ("schedule", "chunks"),
    [
        ("gpipe", 1),
        ("1f1b", 1),
        ("interleaved", 1),
        ("interleaved", 2),
        ("interleaved", 4),
        ("looped_bfs", 2),
    ],
)
def test_the_bubble_is_stages_less_one_micro_batches_over_chunks(schedule: str, chunks: int) -> None:
    stages, batches = 4, 12
    model = make(
        FAST_HOST, pipeline_parallel=stages, micro_batches=batches, schedule=schedule, virtual_stages=chunks,
        micro_batch=64,
    )  # fmt: skip
    work = stage_work(model, 1)  # a stage without embedding or head, which are small beside it
    ideal = work * (1 + (stages - 1) / chunks / batches)
    # The last stage has the head besides, in every micro-batch; the first and last have the optimizer's step.
    more = stage_work(model, 3) - work
    rest = sum(op.duration_ps for op in model.build(HERE).programs[3].operations if op.phase == "optimizer")
    assert ideal < iteration_ps(model) <= 1.03 * (ideal + more + rest)


@pytest.mark.parametrize(("stage", "ahead"), [(0, 3), (1, 2), (3, 0)])
def test_1f1b_has_as_many_micro_batches_under_way_as_the_depth_needs(stage: int, ahead: int) -> None:
    under_way = most = 0
    for one in passes("1f1b", stage, 4, 9):
        under_way += 1 if one.forward else -1
        most = max(most, under_way)
    assert most == ahead + 1


def test_gpipe_has_all_under_way() -> None:
    order = passes("gpipe", 1, 4, 9)
    assert all(one.forward for one in order[:9])
    assert not any(one.forward for one in order[9:])


@pytest.mark.parametrize("schedule", LOOPED)
@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_looped_runs_each_pass_once_and_backward_after_forward(schedule: ScheduleName, chunks: int) -> None:
    for stage in range(4):
        done: set[tuple[int, int]] = set()
        order = passes(schedule, stage, 4, 8, chunks)
        for one in order:
            key = one.micro_batch, one.chunk
            if one.forward:
                done.add(key)
            else:
                done.remove(key)
        assert not done
        assert len(order) == 2 * 8 * chunks


@needs_torch
@pytest.mark.parametrize(
    ("schedule", "name"), [("interleaved", "Interleaved1F1B"), ("looped_bfs", "LoopedBFS")]
)
@pytest.mark.parametrize(
    ("stages", "micro_batches"), [(2, 4), (4, 3), (4, 6), (3, 11), (4, 10), (8, 32), (2, 1)]
)
def test_looped_orders_are_pytorchs(
    schedule: ScheduleName, name: str, stages: int, micro_batches: int
) -> None:
    from torch.distributed.pipelining import schedules

    kind = schedules.get_schedule_class(name)
    rounds = max(1, micro_batches // stages)
    for chunks in (1, 2, 3, 5):
        theirs = object.__new__(kind)
        theirs.__dict__.update(
            pp_group_size=stages, n_local_stages=chunks, _stages=[None] * chunks,
            _n_microbatches=micro_batches, microbatches_per_round=micro_batches // rounds,
        )  # fmt: skip
        if micro_batches % rounds:
            with pytest.raises(ValueError, match="equal rounds; 9 or 12 would"):
                even_rounds(micro_batches, stages)
            continue
        for stage in range(stages):
            order = passes(
                schedule, stage, stages, micro_batches, chunks, together=even_rounds(micro_batches, stages)
            )
            assert [
                (action.computation_type == schedules.FORWARD, action.microbatch_index, action.stage_index)
                for action in theirs._calculate_single_rank_operations(stage)
                if action is not None
            ] == [(one.forward, one.micro_batch, one.chunk * stages + stage) for one in order]


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved"])
def test_micro_batches_of_ragged_interleaving_are_refused(schedule: str) -> None:
    if schedule == "interleaved":
        with pytest.raises(ValueError, match="6 micro-batches don't go in whole rounds of 4 stages; 8 would"):
            passes("interleaved", 0, 4, 6, 2)
    else:
        assert len(passes("1f1b", 0, 4, 6)) == 12


def test_a_slow_host_is_what_an_iteration_takes() -> None:
    slow = {"operator_time": "200us"}
    model = make(slow, kernel_time="0ns", micro_batches=2)
    issued = sum(op.duration_ps for op in model.build(HERE).programs[0].operations if op.stream == CPU_STREAM)
    took = iteration_ps(model)
    assert issued <= took <= 1.02 * issued
    # twice the ranks don't halve it: each issues as many operators
    assert iteration_ps(make(slow, kernel_time="0ns", micro_batches=2, tensor_parallel=2)) > took


@pytest.mark.parametrize("cut", [{}, {"tensor_parallel": 2}, {"pipeline_parallel": 4}])
def test_a_host_that_is_never_behind_costs_nothing(cut: dict[str, Any]) -> None:
    def host(time: str) -> Transformer:
        return make(
            {"operator_time": time}, micro_batch=64, micro_batches=4, synchronous_passes=True,
            **cut,
        )  # fmt: skip

    assert not any(op.stream == CPU_STREAM for op in host("0ns").build(HERE).programs[0].operations)
    assert iteration_ps(host("1ns")) == pytest.approx(iteration_ps(host("0ns")), rel=1e-6)


def test_a_pass_that_the_host_waits_for_is_no_faster() -> None:
    slow = {"operator_time": "60us"}
    free, waiting = (
        iteration_ps(make(slow, micro_batch=8, micro_batches=4, synchronous_passes=flag))
        for flag in (False, True)
    )
    assert free <= waiting < 1.5 * free


@pytest.mark.parametrize("both", [False, True])
def test_a_host_that_waits_for_exchanges_hides_none(both: bool) -> None:
    """A slow host: what it issues, and each exchange after it; else exchanges pass while it issues."""
    slow = {"operator_time": "200us"}

    def took(waits: bool) -> tuple[int, int]:
        scenario = Scenario.model_validate(
            {
                "topology": {"kind": "leaf_spine", "leaves": 1, "spines": 1, "endpoints_per_leaf": 2,
                             "latency": "50us", "rate": "100Gbps"},
                "network": "congestion_unaware",
                "jobs": [{"workload": make(slow, kernel_time="0ns", micro_batches=2, tensor_parallel=2,
                                           synchronous_passes=both, synchronous_exchanges=waits)}],
            }
        )  # fmt: skip
        records = run(scenario).records
        shared = sum(one.end_ps - one.ready_ps for one in records.collectives if "all_reduce" in one.name)
        return int(records.iteration_end_ps[0].max()), shared

    (free, _), (waiting, shared) = took(False), took(True)
    assert waiting == pytest.approx(free + shared, rel=0.02)
    assert shared > 0.08 * free
