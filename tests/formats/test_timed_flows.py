"""Flows that start at given times, as a workload: what each rank does, and what is written down."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.files.import_report import ReportBuilder
from cosim.formats.flow_list.timed import TimedFlows
from cosim.workload.program import OpKind


@pytest.mark.parametrize("seed", range(20))
def test_each_flow_is_a_send_behind_its_wait_and_a_recv(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ranks, count = int(rng.integers(2, 9)), int(rng.integers(0, 30))
    src = rng.integers(0, ranks, count)
    dst = (src + rng.integers(1, ranks, count)) % ranks
    size, start = rng.integers(0, 3, count), rng.integers(0, 3, count)
    report = ReportBuilder()
    workload = TimedFlows(src, dst, size, start).workload("flows", ranks, report)

    expected: list[list[tuple[object, ...]]] = [[] for _ in range(ranks)]
    seen: dict[tuple[int, int], int] = {}
    for k, (a, b, much, when) in enumerate(
        zip(src.tolist(), dst.tolist(), size.tolist(), start.tolist(), strict=True)
    ):
        tag = seen[a, b] = seen.get((a, b), -1) + 1
        if when:
            expected[a].append((f"wait {k}", OpKind.COMPUTE, when, 0, None, 0, ()))
        deps = (len(expected[a]) - 1,) if when else ()
        expected[a].append((f"flow {k}", OpKind.SEND, 0, much, b, tag, deps))
        expected[b].append((f"flow {k}", OpKind.RECV, 0, much, a, tag, ()))
    for rank, own in enumerate(expected):
        found = [
            (
                one.name, one.kind, one.duration_ps, one.size_bytes,
                None if one.peer is None else one.peer.rank, one.tag, one.deps,
            )
            for one in workload.program(rank).operations
        ]  # fmt: skip
        assert found == (own or [("nothing", OpKind.COMPUTE, 0, 0, None, 0, ())])
    idle = {int(workload.program_of[rank]) for rank, own in enumerate(expected) if not own}
    assert len(idle) <= 1  # they share a program
