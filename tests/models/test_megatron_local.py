"""``transformer_impl: local`` beside what Megatron-LM's own script dispatched, and what it refuses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.models.catalogue.workload import ModelWorkload
from cosim.workload.check import check
from cosim.workload.program import CPU_STREAM, OpKind
from tests.lab.validation.crosscheck import Tally
from tests.lab.validation.crosscheck_megatron import CASES

# Of Megatron-LM d98e8a64dd with torch 2.13, profiled by `python -m tests.lab.validation.crosscheck_megatron`:
# for each stage bytes of kernels (forward, backward, optimizer), and what the host launches.
DISPATCHED = {
    "tp": [(342760036, 625420380, 750813426, 958)],
    "tp-pp": [(300049756, 623732744, 397373578, 782), (321040252, 631302320, 381751434, 950)],
    "13b-tp": [(32898624676, 66347614392, 43764162802, 1658)],
    "dp": [(802295354, 1212285740, 3285307634, 564)],
    "pp4": [
        (135925064, 329657868, 204939354, 640),
        *[(120455948, 284805120, 164044882, 535)] * 2,
        (156031080, 332232456, 190357594, 881),
    ],
}


def made(**settings: Any) -> ModelWorkload:
    given = {**CASES["tp"].workload(), **settings}
    del given["kind"]
    return ModelWorkload.model_validate(given)


@pytest.mark.parametrize("name", DISPATCHED)
def test_kernels_bytes_and_launches_are_those_of_megatrons_script(name: str) -> None:
    workload = made(**CASES[name].workload()).build(HERE)
    check(workload)
    found = []
    for program in workload.programs:
        one = Tally.of(program.operations, {})
        phases = ("forward", "backward", "optimizer")
        found.append((*(one.bytes_moved[phase] for phase in phases), one.launches))
    assert found == DISPATCHED[name]


def test_gradients_are_added_beside_the_backward_pass_and_computation_waits_for_them_at_its_end() -> None:
    operations = made().build(HERE).programs[0].operations
    added = [n for n, op in enumerate(operations) if op.stream == "gradients"]
    weights = 4 * 12 + 4  # a layer's; embedding, positions, last norm
    assert len(added) == 2 * weights
    ends = added[weights - 1 :: weights]
    following = [next(op for op in operations[end + 1 :] if op.stream != CPU_STREAM) for end in ends]
    assert all(end in op.deps for end, op in zip(ends, following, strict=True))


def test_without_tensor_parallel_ranks_nothing_is_exchanged_but_gradients_and_logs() -> None:
    workload = made(**CASES["dp"].workload()).build(HERE)
    found = Counter(
        (op.collective, op.axes) for op in workload.programs[0].operations if op.kind is OpKind.COLLECTIVE
    )
    assert found == {("all_reduce", ("dp",)): 3, ("barrier", ("dp",)): 2}  # gradients, loss, their norm


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"attention": "flash"}, "attention: unfused"),
        ({"overlap_gradients": True}, "overlap_gradients: false"),
        ({"recompute": "full"}, "recompute: none"),
        ({"parallel": {"dp": 4, "tp": 2}}, "parallel.sp: false"),
        ({"parallel": {"fsdp": 4, "tp": 2, "sp": False}}, "no parallel.fsdp"),
        ({"model": "llama3-8b"}, "Llama 3 8B needs norm: layer"),
        (
            {"framework": {"kind": "megatron", "transformer_impl": "local", "fused_loss": True}},
            "has no fused_loss",
        ),
    ],
)
def test_what_local_layers_have_no_way_of_doing_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        made(**settings)
