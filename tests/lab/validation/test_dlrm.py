"""The replay of DLRM's own trace takes what was measured."""

from __future__ import annotations

import pytest

from tests.inputs import needs
from tests.lab.validation.dlrm import read, replay

pytestmark = [pytest.mark.slow, needs("pytorch")]


def test_dlrms_replayed_step_is_the_measured_one_on_every_rank() -> None:
    measured = read()
    # ProfilerStep#10 as the Kineto files have it, and when each began; of ranks 1 and 3, which had 1,334 and
    # 602 us of work in flight, from where their GPUs were done with it.
    assert [measured.measured_ps(rank) // 10**6 for rank in range(8)] == [
        14455, 18567, 13017, 18711, 17979, 17797, 13091, 12509,
    ]  # fmt: skip
    assert max(measured.begin_ps) == 6_216 * 10**6
    assert [(m.parts[0][0].kind, m.parts[0][0].size_bytes) for m in measured.matched] == [
        ("all_to_all", 24576),
        ("all_to_all", 192),
        ("all_to_all", 1536),
        ("all_to_all", 13568),
        ("all_reduce", 1576964),
        ("all_to_all", 24576),
        ("all_reduce", 448),
        ("all_reduce", 907840),
    ]
    rows, records = replay(measured, "simulated")
    assert all(abs(row.error) < 0.001 for row in rows)
    # Ranks wait for the last one as they did: the first all-to-all begins 7.6 ms before it ends.
    first = next(record for record in records if record.name == "all_to_all 0")
    kernels = [work for work in measured.steps[1].timeline.works if work.library]
    waited_us = (first.end_ps - first.start_ps) / 10**6
    assert waited_us == pytest.approx((kernels[0].end - kernels[0].begin) / 10**6, rel=0.01)
