"""Our algorithms as MSCCL programs: what is written, proved and read back is what was to be said."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.errors import AlgorithmError
from cosim.formats.msccl.lower import Lowered, lower_plan
from cosim.formats.msccl.program_template import program_template
from cosim.formats.msccl.read import parse_program
from cosim.pattern.rows import normal
from cosim.formats.msccl.schedule import schedule
from cosim.formats.msccl.write import write_program
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.costs import Costs
from cosim.pattern.planner import Planner
from cosim.pattern.template import REDUCE, Collective, Template
from tests.formats.msccl.programs import execute, is_right

COLUMNS = (
    "src", "dst", "bytes", "channel", "delay_ps", "dep_ptr", "dep_distance", "dep_kind", "block_row",
    "block_repeat", "collective", "num_ranks", "size_bytes",
)  # fmt: skip
RINGS = [{"algorithm": "ring", "channels": c, "bidirectional": b} for c in (1, 2, 3) for b in (False, True)]
LOSSLESS: list[tuple[Collective, Any]] = [
    *((c, ring) for ring in RINGS for c in Collective if c.value not in ("barrier", "send_recv")),
    *((c, "direct") for c in Collective if c.value not in ("barrier", "send_recv", "broadcast")),
    (Collective.ALL_REDUCE, "halving_doubling"),
    (Collective.ALL_REDUCE, "double_binary_tree"),
]


def lowered(
    collective: Collective, algorithm: Any, ranks: int, size: int, dims: tuple[int, ...] | None = None
) -> Lowered:
    config = CollectiveConfig.model_validate({collective.value: algorithm})
    return lower_plan(Planner(config).plan(collective, ranks, size, dims=dims), name="ours")


def same(one: Template, two: Template) -> None:
    for name in COLUMNS:
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


@settings(max_examples=40, deadline=None)
@given(
    choice=st.sampled_from(LOSSLESS),
    exponent=st.integers(1, 3),
    odd=st.integers(2, 9),
    parts=st.integers(1, 50),
)
def test_import_of_export_is_the_template_in_its_normal_form(
    choice: tuple[Collective, Any], exponent: int, odd: int, parts: int
) -> None:
    collective, algorithm = choice
    ranks = 1 << exponent if algorithm in ("halving_doubling", "double_binary_tree") else odd
    config = CollectiveConfig.model_validate({collective.value: algorithm})
    size = 6 * ranks * parts  # what every number of channels divides
    (phase,) = Planner(config).plan(collective, ranks, size).chunks[0]
    said = normal(phase.template)
    program = parse_program(write_program(lowered(collective, algorithm, ranks, size).program))
    back = program_template(schedule(program), collective, size, Costs())
    same(back, said)
    same(normal(back), back)  # the normal form is one
    if collective is not Collective.BROADCAST:
        assert is_right(program, collective, execute(program, collective, random.Random(parts)))


@pytest.mark.parametrize(("collective", "algorithm"), LOSSLESS)
def test_lossless_algorithms_report_no_difference(collective: Collective, algorithm: Any) -> None:
    assert lowered(collective, algorithm, 4, 48).differences == ()


def test_chunks_and_reductions_are_those_of_the_template() -> None:
    """Each message's chunks, and whether they are reduced, stand in its two steps."""
    found = lowered(Collective.ALL_REDUCE, "halving_doubling", 8, 1 << 10)
    (phase,) = (
        Planner(CollectiveConfig.model_validate({"all_reduce": "halving_doubling"}))
        .plan(Collective.ALL_REDUCE, 8, 1 << 10)
        .chunks[0]
    )
    t = phase.template
    due = sorted(
        (
            int(t.src[row]),
            int(t.dst[row]),
            int(t.chunk[row]),
            int(t.chunk_count[row]),
            int(t.action[row]) == REDUCE,
        )
        for row in np.flatnonzero(t.action)
    )
    sends, receives = [], []
    for gpu, its in enumerate(found.program.gpus):
        for block in its.blocks:
            for step in block.steps:
                if step.kind == "s":
                    sends.append((gpu, block.send, step.src[1], step.count))
                elif step.kind in ("r", "rrc"):
                    receives.append((block.recv, gpu, step.dst[1], step.count, step.kind == "rrc"))
    assert sorted(receives) == due
    assert sorted(sends) == [each[:4] for each in due]


@pytest.mark.parametrize(
    ("dims", "algorithms"),
    [
        ((4, 4), ["ring", "ring"]),
        ((2, 3), ["direct", "ring"]),
        ((4, 2, 2), ["ring", "direct", "halving_doubling"]),
    ],
)
def test_hierarchical_all_reduces_are_whole_programs(dims: tuple[int, ...], algorithms: list[str]) -> None:
    ranks = int(np.prod(dims))
    found = lowered(Collective.ALL_REDUCE, algorithms, ranks, 48 * ranks, dims)
    assert found.differences == ()
    assert is_right(
        found.program, Collective.ALL_REDUCE, execute(found.program, Collective.ALL_REDUCE, random.Random(3))
    )


@pytest.mark.parametrize(
    ("collective", "algorithm", "says"),
    [
        (Collective.ALL_GATHER, "halving_doubling", "16 messages whose chunks don't lie side by side"),
        (Collective.BROADCAST, "binomial_tree", "wait for an own message's arrival"),
        (Collective.ALL_REDUCE, {"algorithm": "direct", "window": 2}, "wait for others than they did"),
    ],
)
def test_what_xml_cannot_say_is_said(collective: Collective, algorithm: Any, says: str) -> None:
    found = lowered(collective, algorithm, 8, 1 << 20)
    assert len(found.differences) == 1
    assert says in found.differences[0]
    if collective is not Collective.BROADCAST:
        assert is_right(found.program, collective, execute(found.program, collective, random.Random(5)))


def test_sizes_that_do_not_divide_are_said() -> None:
    (said,) = lowered(Collective.ALL_REDUCE, "halving_doubling", 8, 1001).differences
    assert "messages' sizes" in said


def test_what_has_no_data_or_several_chunks_is_refused() -> None:
    with pytest.raises(AlgorithmError, match="carry isn't known"):
        lowered(Collective.BARRIER, "dissemination", 4, 0)
    config = CollectiveConfig.model_validate({"splits": 2})
    with pytest.raises(AlgorithmError, match="an operation of 2 chunks"):
        lower_plan(Planner(config).plan(Collective.ALL_REDUCE, 4, 1 << 20), name="x")
