"""What is kept of operations: in order, of the ranks asked for, and nothing of the answer changes."""

from __future__ import annotations

import resource
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import cosim
from cosim.engine.operation_log import OperationLog, evenly
from cosim.engine.spilled_column import SpilledColumn
from cosim.kernel import record
from cosim.results import breakdown
from cosim.results.breakdown import break_down
from cosim.results.collective_columns import collective_columns
from cosim.results.optable import op_table
from cosim.results.render.timeline import timeline
from cosim.results.table import Labels

JOBS = """
topology: {kind: switch, endpoints: 16, rate: 400Gbps, latency: 1us}
network: fair_share
fold: never
jobs:
  - {name: a, workload: {kind: model, model: {kind: llama3-8b, layers: 2}, gpu: h100-sxm,
     parallel: {tp: 2, pp: 2, dp: 2}, batch: 4}, stragglers: [{factor: 1.5, ranks: [3]}]}
  - {name: b, workload: {kind: collective, collective: all_reduce, ranks: 8, size: 64MB}, iterations: 3}
"""
FOLDED = """
topology: {kind: ring, endpoints: 8, rate: 400Gbps, latency: 1us}
network: fair_share
fold: always
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 8, size: 64MB}, iterations: 3}]
"""


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_operations_come_by_end_job_rank_and_number_however_they_were_cut(block: int) -> None:
    rng = np.random.default_rng(block)
    rows = np.zeros(1000, record("ended_operation"))
    ends = np.sort(rng.integers(0, 300, len(rows)))  # several of an instant; some come late
    rows["end"] = ends[np.argsort(ends + rng.integers(0, 2) * rng.integers(0, 20, len(rows)), kind="stable")]
    rows["rank"], rows["op"] = rng.integers(0, 5, len(rows)), rng.permutation(len(rows))
    log = OperationLog([2, 3], len(rows))
    last = rows[:0]
    for first in range(0, len(rows), block):
        last = np.concatenate([last, rows[first : first + block]])
        last = last[: log.take(last, int(rows["end"][first + block :].min(initial=300)))]
    ops = log.records(last)
    rows = rows[np.lexsort((rows["op"], rows["rank"], rows["end"]))]
    assert_array_equal(ops.op, rows["op"])
    assert_array_equal(ops.end_ps, rows["end"])
    assert_array_equal(ops.job, rows["rank"] >= 2)
    assert_array_equal(ops.rank, rows["rank"] - 2 * (rows["rank"] >= 2))


@pytest.mark.parametrize("count", [1, 3, 8, 100])
def test_ranks_are_kept_evenly_and_no_more_than_there_are(count: int) -> None:
    ranks = evenly(8, count)
    assert len(ranks) == min(count, 8)
    assert ranks[0] == 0
    assert set(np.diff(ranks)) <= {8 // len(ranks), 8 // len(ranks) + 1}


@pytest.mark.parametrize("jobs", [JOBS, FOLDED])
def test_operations_in_a_file_are_those_in_memory(jobs: str, tmp_path: Path) -> None:
    kept = cosim.run(jobs)
    spilled = cosim.run(jobs, {"record.spill": str(tmp_path)})
    assert spilled.records.digest == kept.records.digest
    for one in fields(kept.records.ops):
        mine, its = getattr(spilled.records.ops, one.name), getattr(kept.records.ops, one.name)
        assert mine.dtype == its.dtype
        assert_array_equal(mine, its)
    assert spilled.summary.jobs == kept.summary.jobs
    assert list(spilled.operations) == list(kept.operations)
    for name in kept.operations:
        assert_array_equal(spilled.operations[name], kept.operations[name])
    assert not list(tmp_path.iterdir())  # the file has no name that could be left behind


@pytest.mark.parametrize(("place", "says"), [("missing", "No such file"), ("file", "Not a directory")])
def test_a_folder_that_cannot_be_written_to_is_refused(place: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "jobs.yaml").write_text(f"{JOBS}record:\n  spill: {place}\n")
    with pytest.raises(cosim.ScenarioError) as wrong:
        cosim.run(tmp_path / "jobs.yaml")
    assert f"jobs.yaml:10: record.spill: operations can't be kept in {tmp_path / place}: {says}" in str(
        wrong.value
    )


def test_a_folder_for_no_operations_is_idle(tmp_path: Path) -> None:
    run = cosim.run(JOBS, {"record.spill": str(tmp_path), "record.operations": 0})
    assert any("record.spill" in one and "no effect" in one for one in run.warnings)


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    column = SpilledColumn(np.int64, tmp_path)
    column.append(np.arange(8))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # of a file, where a disk can't be had
    try:
        with pytest.raises(cosim.ScenarioError, match=r"can't be kept in .*: File too large"):
            column.append(np.arange(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        column.close()


def test_a_run_of_which_less_is_kept_is_the_same_run() -> None:
    whole, part = cosim.run(JOBS), cosim.run(JOBS, {"record.operations": 3})
    assert part.records.digest == whole.records.digest
    assert part.records.end_ps == whole.records.end_ps
    assert [job.iteration_ps for job in part.summary.jobs] == [job.iteration_ps for job in whole.summary.jobs]
    kept = part.records.ops
    assert {*zip(kept.job.tolist(), kept.rank.tolist(), strict=True)} == {
        (j, r) for j in (0, 1) for r in (0, 2, 5)
    }
    ops = whole.records.ops
    mine = np.isin(ops.rank, [0, 2, 5])
    for name in ("job", "iteration", "rank", "op", "start_ps", "end_ps"):
        assert_array_equal(getattr(kept, name), getattr(ops, name)[mine])


def test_where_time_went_is_said_of_the_ranks_that_were_kept() -> None:
    whole, part = cosim.run(JOBS), cosim.run(JOBS, {"record.operations": 3})
    parts = break_down(whole.records, op_table(whole.records))
    for name in ("compute", "exposed", "idle"):
        expected = getattr(parts, name)[[0, 2, 5]]
        said = getattr(part.summary.jobs[0], name)
        assert (said.min_ps, said.max_ps) == (expected.min(), expected.max())
        assert said.max_rank in (0, 2, 5)
    assert part.summary.jobs[0].stragglers == ()
    assert whole.summary.jobs[0].stragglers
    assert "3 of 8 ranks" in " ".join(part.summary.warnings)


def test_nothing_need_be_kept() -> None:
    none = cosim.run(JOBS, {"record.operations": 0})
    assert len(none.records.ops) == 0
    assert none.records.end_ps == cosim.run(JOBS).records.end_ps
    assert none.summary.jobs[0].compute.max_ps == 0
    assert timeline(none.records)["otherData"]["ranks_shown"] == 0


def test_time_is_swept_in_portions_of_ranks_as_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    records = cosim.run(JOBS).records
    whole = break_down(records, op_table(records))
    monkeypatch.setattr(breakdown, "_MOST_AT_ONCE", 100)
    parts = break_down(records, op_table(records))
    for field in fields(whole):
        assert_array_equal(getattr(parts, field.name), getattr(whole, field.name))


@pytest.mark.parametrize("changes", [{}, {"fold": "auto"}])
def test_columns_of_collectives_are_those_of_their_records(changes: dict[str, object]) -> None:
    found = cosim.run(JOBS, changes).records.collectives
    shared, each = collective_columns(found), collective_columns(tuple(found))
    for field in fields(shared):
        one, other = getattr(shared, field.name), getattr(each, field.name)
        if isinstance(one, Labels):
            assert one.names == other.names
            assert_array_equal(one.codes, other.codes)
        elif field.name == "groups":
            for mine, theirs in zip(one, other, strict=True):
                assert_array_equal(mine, theirs)
        else:
            assert_array_equal(one, other)
