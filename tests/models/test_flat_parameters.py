"""``framework: {kind: pytorch, fsdp_version: 1}``: what flat parameters exchange, wait for and refuse."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from cosim.context import HERE
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.pytorch.flat import divided_before
from cosim.workload.check import check
from cosim.workload.program import COMPUTE_STREAM, CPU_STREAM, Operation

BLOCK = 256 * (8 + 2 * 4 + 8) * 32 + 3 * 256 * 514 + 2 * 256
ROOT = 2 * 1021 * 256 + 256
MODEL = {
    "kind": "transformer", "layers": 4, "hidden": 256, "heads": 8, "kv_heads": 4, "ffn": 514,
    "vocabulary": 1021, "sequence": 64,
}  # fmt: skip


def operations(
    parallel: dict[str, Any], framework: dict[str, Any] | None = None, **more: Any
) -> list[Operation]:
    made = workload(parallel, framework, **more).build(HERE)
    check(made)
    return list(made.programs[0].operations)


def workload(parallel: dict[str, Any], framework: dict[str, Any] | None = None, **more: Any) -> ModelWorkload:
    settings = {"kind": "pytorch", "fsdp_version": 1, **(framework or {})}
    return ModelWorkload.model_validate(
        {
            "model": MODEL,
            "gpu": "h100-sxm",
            "memory": "ignore",
            "framework": settings,
            "parallel": parallel,
            **more,
        }
    )


def sizes(ops: list[Operation], collective: str) -> list[int]:
    return [op.size_bytes for op in ops if op.collective == collective and op.size_bytes > 8]


@pytest.mark.parametrize("ranks", [4, 6])
def test_a_unit_is_gathered_and_scattered_at_once_in_equal_parts(ranks: int) -> None:
    root, block = (-(-count // ranks) for count in (ROOT, BLOCK))
    ops = operations({"fsdp": ranks})
    assert sizes(ops, "all_gather") == [2 * root, *[2 * block] * 8]  # blocks again for backward, the root not
    assert sizes(ops, "reduce_scatter") == [*[4 * ranks * block] * 4, 4 * ranks * root]


def test_without_reshard_parameters_are_gathered_once_and_gradients_scattered_after_the_last() -> None:
    ops = operations({"fsdp": 4, "reshard": False}, batch=12)
    assert len(sizes(ops, "all_gather")) == len(sizes(ops, "reduce_scatter")) == 5
    every = operations({"fsdp": 4}, batch=12)
    assert len(sizes(every, "reduce_scatter")) == 3 * 5
    assert len(sizes(every, "all_gather")) == 3 * 9


def test_replicas_add_up_each_ranks_part() -> None:
    ops = operations({"dp": 2, "fsdp": 4})
    assert sizes(ops, "all_reduce") == [*[BLOCK] * 4, ROOT]  # a quarter, of 4 bytes each


@pytest.mark.parametrize("prefetch", ["early", "late"])
def test_the_host_waits_before_a_block_is_gathered_too_far_ahead(prefetch: str) -> None:
    ops = operations({"fsdp": 4}, {"backward_prefetch": prefetch})
    first = next(n for n, op in enumerate(ops) if op.phase == "backward" and op.collective == "all_gather")
    waits = [ops[dep].name for op in ops[:first] if op.stream == CPU_STREAM for dep in op.deps]
    assert any(name.endswith("layer 0 forward") for name in waits)
    plain = operations({"fsdp": 4}, {"fsdp_version": 2})
    waits = [plain[dep].stream for op in plain if op.stream == CPU_STREAM for dep in op.deps]
    assert set(waits) == {CPU_STREAM}  # FSDP2 never holds the host up


def test_forward_gathers_a_block_ahead() -> None:
    """The first block's parameters come with the root's, each other one's before a block's kernels."""

    def order(*, ahead: bool) -> list[str]:
        ops = operations({"fsdp": 4}, {"forward_prefetch": ahead}, batch=4)
        told = [op for op in ops if (op.phase == "forward" and op.stream == COMPUTE_STREAM) or op.collective]
        return ["computed" if op.stream == COMPUTE_STREAM else op.name.split()[-3] for op in told][:7]

    # The embedding's kernels, which need the root's parameters, are issued before the first block's.
    assert order(ahead=False) == ["root", "computed", "0", "computed", "1", "computed", "2"]
    assert order(ahead=True) == ["root", "0", "computed", "1", "computed", "2", "computed"]


def test_gradients_are_divided_in_two_goes_about_as_large() -> None:
    for ranks in (2, 4, 8, 16, 24, 64, 512, 1024):
        before = divided_before(ranks)
        assert ranks % before == 0
        assert before**2 / ranks in (1, 2) or ranks == 24
    assert divided_before(24) == 8
    assert divided_before(7) == 2  # and 3.5 after


@pytest.mark.parametrize(
    ("parallel", "framework", "message"),
    [
        ({"fsdp": 4, "tp": 2}, {}, "fsdp and dp alone, not with tp"),
        ({"fsdp": 4, "pp": 2}, {}, "fsdp and dp alone, not with pp"),
        ({"fsdp": 4}, {"fsdp_units": "each"}, "leave fsdp_units out"),
        ({"fsdp": 4}, {"compile": True}, "fsdp_version: 2; leave compile out"),
        ({"fsdp": 4}, {"fsdp_version": 3}, "fsdp_version"),
        ({"fsdp": 4}, {"backward_prefetch": "never"}, "backward_prefetch"),
    ],
)
def test_what_isnt_wrapped_is_refused(
    parallel: dict[str, Any], framework: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        workload(parallel, framework)


def test_settings_without_effect_are_told() -> None:
    told = [why for _, why in workload({"dp": 4}, {"backward_prefetch": "late"}).idle_settings()]
    assert [why.partition(":")[0] for why in told] == ["fsdp_version", "backward_prefetch"]
    told = [
        why
        for _, why in workload({"fsdp": 4}, {"fsdp_version": 2, "backward_prefetch": "late"}).idle_settings()
    ]
    assert told == ["backward_prefetch: it is of fsdp_version 1; FSDP2 gathers early"]
