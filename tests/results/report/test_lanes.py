"""A timeline shows all ranks that differ, and says what it leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.results.report import lanes as module
from cosim.results.report.lanes import lanes
from cosim.results.report.source import ReportSource
from cosim.results.store import run_columns
from cosim.results.summary import summarize
from tests.results.synthetic_run import example


def source() -> ReportSource:
    """Four ranks, of whom the last computes for longer."""
    records = example().records()
    return ReportSource(summarize(records), None, run_columns(records), None)


def test_ranks_that_did_the_same_at_the_same_picosecond_are_one() -> None:
    found = lanes(source())
    kinds = {rank: [] for rank in range(4)}  # type: dict[int, list[tuple[int, ...]]]
    ops = example().records().ops
    for row in zip(ops.rank, ops.iteration, ops.op, ops.start_ps, ops.end_ps, strict=True):
        kinds[int(row[0])].append(tuple(map(int, row[1:])))
    classes = {tuple(sorted(rows)) for rows in kinds.values()}
    assert len(found.ranks) == len(classes)
    assert found.alike.sum() == 4
    assert all(kinds[int(found.ranks[lane])] == kinds[rank] for rank, lane in enumerate(found.lane_of))
    assert len(found.rows) == sum(len(kinds[int(rank)]) for rank in found.ranks)
    assert found.said == ("" if len(classes) == 4 else found.said)


def test_of_too_many_operations_the_last_iteration_is_kept_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = lanes(source())
    monkeypatch.setattr(module, "MOST_OPERATIONS", len(whole.rows) - 1)
    found = lanes(source())
    assert "the last 1 iteration only" in found.said
    iterations = source().columns["op_iteration"][found.rows]
    assert np.unique(iterations).tolist() == [1]
