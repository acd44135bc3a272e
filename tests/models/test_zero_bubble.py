"""Schedules with a parted backward: orders against PyTorch's, bubbles and memory against closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE, Context
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.files.import_report import ImportReport
from cosim.gpu.kernels import Kernel, memory
from cosim.models.catalogue.assemble import stages as spread
from cosim.models.catalogue.memory import in_flight
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.job import build_training
from cosim.models.parts import Layer, Piece
from cosim.models.pytorch.looped import LoopedStage
from cosim.models.pytorch.parted import PartedStage
from cosim.models.pytorch.training import EagerTraining
from cosim.models.schedule import IN_ROUNDS, PARTED, ScheduleName, even_rounds, part_of, passes, where
from cosim.workload.check import check
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import DeviceMesh, OpKind, Workload
from tests.profiler.profiled import needs_torch

UNIT_PS = 1_000_000
CHUNKS = {"interleaved": 2, "interleaved_zero_bubble": 1, "zbv": 2, "dualpipev": 2}


@needs_torch
@pytest.mark.parametrize(
    ("schedule", "name"),
    [
        ("interleaved_zero_bubble", "InterleavedZeroBubble"),
        ("zbv", "ZBVZeroBubble"),
        ("dualpipev", "DualPipeV"),
    ],
)
@pytest.mark.parametrize("stages", [2, 3, 4, 8])
def test_orders_are_pytorchs(schedule: ScheduleName, name: str, stages: int) -> None:
    from torch.distributed.pipelining import schedules

    parts = {
        schedules.FORWARD: (True, "whole"),
        schedules.FULL_BACKWARD: (False, "whole"),
        schedules.BACKWARD_INPUT: (False, "inputs"),
        schedules.BACKWARD_WEIGHT: (False, "weights"),
    }
    for micro_batches in (1, 2, 3, 4, 8, 11, 16, 32):
        rounds = max(1, micro_batches // stages)
        if schedule == "dualpipev" and micro_batches < 2 * stages:
            continue
        if schedule in IN_ROUNDS and micro_batches % rounds:
            continue
        for chunks in (1, 2, 3) if schedule in IN_ROUNDS else (2,):
            theirs = object.__new__(schedules.get_schedule_class(name))
            theirs.__dict__.update(
                pp_group_size=stages, n_local_stages=chunks, num_stages=stages * chunks,
                _n_microbatches=micro_batches, microbatches_per_round=micro_batches // rounds,
            )  # fmt: skip
            together = even_rounds(micro_batches, stages) if schedule in IN_ROUNDS else None
            for stage in range(stages):
                order = passes(schedule, stage, stages, micro_batches, chunks, together=together)
                assert [
                    (*parts[one.computation_type], one.microbatch_index, one.stage_index)
                    for action in theirs._calculate_single_rank_operations(stage)
                    if action is not None
                    for one in action.sub_actions or (action,)
                ] == [
                    (one.forward, one.part, one.micro_batch, part_of(schedule, stage, one.chunk, stages))
                    for one in order
                ]


@pytest.mark.parametrize("schedule", [*PARTED, "interleaved"])
@pytest.mark.parametrize("stages", [2, 5])
def test_each_part_of_a_model_is_somewhere(schedule: ScheduleName, stages: int) -> None:
    parts = [part_of(schedule, stage, chunk, stages) for stage in range(stages) for chunk in range(2)]
    assert sorted(parts) == list(range(2 * stages))
    for part in parts:
        stage, chunk = where(schedule, part, stages)
        assert part_of(schedule, stage, chunk, stages) == part


class _Units:
    """Each kernel takes a unit, nobody waits for the host."""

    def kernels_ps(self, kernels: Sequence[Kernel]) -> int:
        return UNIT_PS * len(kernels)

    def host_ps(self, launches: int) -> int:  # noqa: ARG002
        return 0

    def step_ps(self) -> int:
        return 0

    def slowed_ps(self, duration_ps: int) -> int:
        return duration_ps


class Equal(WorkloadSpec):
    """Stages whose passes forward, of inputs and of weights take a unit each."""

    stages: int
    micro_batches: int
    schedule: ScheduleName

    def build(self, context: Context) -> Workload:  # noqa: ARG002
        training = EagerTraining(
            mesh=DeviceMesh({"pp": self.stages}), micro_batches=self.micro_batches, schedule=self.schedule,
            boundary_bytes=1, clip=False,
        )  # fmt: skip
        one, two = ((Piece("pass", (memory(1),) * count),) for count in (1, 2))
        layer = Layer("layer", one, two, backward_inputs=one, backward_weights=one)
        chunks = CHUNKS[self.schedule]
        nothing = Layer("end", (), ())
        made = spread(
            [1] * self.stages * chunks, self.stages, lambda _: layer, nothing, nothing, schedule=self.schedule
        )
        builder = PartedStage if self.schedule in PARTED else LoopedStage
        return build_training("equal", made, training, _Units(), ImportReport(), builder)


def units(stages: int, micro_batches: int, schedule: ScheduleName) -> float:
    scenario = Scenario.model_validate(
        {
            "topology": {
                "kind": "leaf_spine", "leaves": 1, "spines": 1, "latency": "0ns", "rate": "1000000Tbps",
                "endpoints_per_leaf": stages,
            },
            "network": "congestion_unaware",
            "jobs": [
                {"workload": Equal(stages=stages, micro_batches=micro_batches, schedule=schedule)}
            ],
        }
    )  # fmt: skip
    return int(run(scenario).records.iteration_end_ps[0].max()) / UNIT_PS


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 8), (4, 12), (8, 16)])
def test_bubbles_are_the_papers(stages: int, micro_batches: int) -> None:
    """With T = F = B = W: ZB-H1 leaves (p - 1)(F + B - W), a third of 1F1B's; ZB-V nothing once a stage has
    begun, the last after p - 1 passes (arXiv 2401.10241, table 2 and section 6). DualPipeV at most
    (p - 1)(F&B + B - 3W), B with W in it, where a pair sends when both are done
    (github.com/deepseek-ai/DualPipe): here its forward pass sends before its backward pass begins.
    """
    work = 3 * micro_batches
    assert units(stages, micro_batches, "interleaved") == pytest.approx(2 * work + 3 * (stages - 1), rel=1e-6)
    assert units(stages, micro_batches, "interleaved_zero_bubble") == pytest.approx(
        work + stages - 1, rel=1e-6
    )
    assert units(stages, micro_batches, "zbv") == pytest.approx(2 * work + stages - 1, rel=1e-6)
    assert stages - 1 <= units(stages, micro_batches, "dualpipev") - 2 * work <= 2 * (stages - 1)


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_as_much_is_kept_as_1f1bs_first_stage_keeps(stages: int) -> None:
    """On every stage, ZB-H1 and ZB-V (arXiv 2401.10241, sections 2.1 and 6); DualPipeV half a stage more."""
    for stage in range(stages):
        kept = {name: in_flight(name, stage, stages, 4 * stages, CHUNKS[name]) for name in PARTED}
        assert kept == {"interleaved_zero_bubble": stages, "zbv": stages, "dualpipev": stages + 0.5}


SIZES = {
    "kind": "transformer", "layers": 8, "hidden": 256, "heads": 8, "kv_heads": 4, "ffn": 512,
    "vocabulary": 1024, "sequence": 64,
}  # fmt: skip


def make(schedule: str, chunks: int = 2, **settings: Any) -> ModelWorkload:
    parallel = {"pp": 2, "fsdp": 2, "reshard": False, "schedule": schedule, "virtual_stages": chunks}
    values = {
        "model": SIZES, "gpu": "h100-sxm", "memory": "ignore", "framework": "pytorch", "batch": 16,
        **settings, "parallel": {**parallel, **settings.pop("parallel", {})},
    }  # fmt: skip
    return ModelWorkload.model_validate(values)


@pytest.mark.parametrize("schedule", PARTED)
@pytest.mark.parametrize("tp", [1, 2])
def test_both_parts_calculate_and_exchange_what_a_whole_backward_does(schedule: str, tp: int) -> None:
    totals = []
    for name in (schedule, "interleaved"):
        made = make(name, parallel={"tp": tp}).build(HERE)
        check(made)
        ops = [op for each in made.programs for op in each.operations if op.phase != "optimizer"]
        totals.append(
            (
                sum(op.flops for op in ops),
                sorted((op.collective, op.size_bytes) for op in ops if op.kind is OpKind.COLLECTIVE),
                sum(op.kind is OpKind.SEND for op in ops),
            )
        )
    parted, whole = totals
    assert parted[:2] == whole[:2]
    # A V's middle is on one rank: both ways, of 8 micro-batches.
    assert parted[2] == whole[2] - (0 if schedule == "interleaved_zero_bubble" else 16)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedule": "zbv", "chunks": 1}, "zbv is a V of two chunks: virtual_stages: 2"),
        (
            {"framework": "megatron"},
            "framework megatron has no schedule zbv: Megatron-Core's backward is whole",
        ),
        ({"framework": {"kind": "pytorch", "compile": True}}, "compile: false: a compiled backward"),
        ({"recompute": "full"}, "recompute: none: each weight's gradient would run its block again"),
        ({"recipe": "fp8"}, "no recipe"),
        ({"parallel": {"fsdp": 1, "dp": 2}}, "DDP doesn't see gradients that are made apart"),
        ({"parallel": {"reshard": True}}, "parallel.reshard: false"),
        ({"model": {**SIZES, "tied": True}}, "tied: false: first and last layers are on one stage"),
        ({"schedule": "dualpipev", "batch": 4}, "at least 4 micro-batches"),
        ({"schedule": "interleaved_zero_bubble", "batch": 14}, "7 micro-batches on 2 stages don't go"),
        ({"model": {**SIZES, "experts": {"num": 8, "top_k": 2, "ffn": 512}}}, "no experts"),
        ({"schedule": "1f1b"}, "under framework pytorch also interleaved_zero_bubble, zbv, dualpipev"),
    ],
)
def test_what_cant_be_parted_is_refused_with_what_would_do(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(settings.pop("schedule", "zbv"), settings.pop("chunks", 2), **settings)
