"""Flows that start at given times, given to the network at once: the same as one instant after the other."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from cosim.engine.progress import ProgressInfo
from cosim.engine.records import JobInfo, Records
from cosim.engine.replay import Replay, replay
from cosim.engine.timed_flows import TimedFlows
from cosim.errors import SimulationError
from cosim.files.import_report import ReportBuilder
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch
from cosim.network.simulator import Advance
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.topology.grid import Dimension, grid_topology
from cosim.units import NEVER

ENDPOINTS = 12
STAR = grid_topology([Dimension("Switch", ENDPOINTS, 80e9, 500)])
RING = grid_topology([Dimension("Ring", ENDPOINTS, 80e9, 0)])
PLANNER = Planner(CollectiveConfig())
ITSELF = {"wall_s", "cpu_s", "info", "topology", "jobs"}
"""What differs between two equal runs, or is the same; ``info`` says how often the network was asked."""


def assert_same(one: Any, other: Any, where: str = "records") -> None:
    """Equal in all fields, in types, and bit by bit."""
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert one.shape == other.shape, where
        assert (one == other).all(), where
    elif is_dataclass(one):
        for field in fields(one):
            if field.name not in ITSELF:
                assert_same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif isinstance(one, tuple):
        assert len(one) == len(other), where
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{number}]")
    else:
        assert one == other, where


def job(flows: TimedFlows, endpoints: list[int], **more: Any) -> JobInfo:
    """Such flows as a job."""
    workload = flows.workload("flows", len(endpoints), ReportBuilder())
    return JobInfo("flows", workload, np.array(endpoints, np.int32), 1, 0, **more)


def some_flows(seed: int) -> tuple[TimedFlows, list[int]]:
    """Flows between some endpoints, many at the same times, or of no bytes; not in the order of time."""
    rng = np.random.default_rng(seed)
    ranks, count = int(rng.integers(2, ENDPOINTS + 1)), int(rng.integers(1, 60))
    src = rng.integers(0, ranks, count)
    dst = (src + rng.integers(1, ranks, count)) % ranks
    size = rng.integers(0, 3, count) * 1000 if seed % 3 else rng.integers(0, 10**5, count)
    start = rng.integers(0, [1, 2, 5, 10**4, 10**7][seed % 5], count) * 1000
    columns = (np.asarray(one, np.int64) for one in (src, dst, size, start))
    return TimedFlows(*columns), rng.permutation(ENDPOINTS)[:ranks].tolist()


def both(info: JobInfo, seed: int, **how: Any) -> tuple[Records, Records]:
    """The records of either way."""
    topology = RING if seed % 2 else STAR
    ahead = replay(topology, FairShareNetwork(), [info], PLANNER, **how)
    one = Replay(topology, FairShareNetwork(), [info], PLANNER, **how)
    try:
        return ahead, one.run()
    finally:
        one.close()


@pytest.mark.parametrize("seed", range(40))
def test_records_are_those_of_going_from_instant_to_instant(seed: int) -> None:
    flows, endpoints = some_flows(seed)
    ahead, other = both(job(flows, endpoints, weight=[1.0, 2.5][seed % 2], priority=seed % 3), seed)
    assert ahead.info == {"advances": 1}
    assert other.info["advances"] > 0
    assert_same(ahead, other)


def test_operations_of_some_ranks_are_kept() -> None:
    flows, endpoints = some_flows(7)
    assert_same(*both(job(flows, endpoints), 7, record_operations=2))


def test_progress_is_told() -> None:
    told: list[ProgressInfo] = []
    flows, endpoints = some_flows(9)
    replay(STAR, FairShareNetwork(), [job(flows, endpoints)], PLANNER, progress=told.append)
    assert told[-1].operations_done == told[-1].operations_total
    assert told[-1].messages == len(flows)


@pytest.mark.parametrize(
    "what", [{"pace": "one"}, {"start_ps": 5}, {"iterations": 2}, {"endpoints": np.zeros(3, np.int32)}]
)
def test_what_is_more_than_that_goes_from_instant_to_instant(what: dict[str, Any]) -> None:
    from dataclasses import replace

    from cosim.engine.given_ahead import can_be_given_ahead

    flows = TimedFlows(*np.array([[0, 1], [1, 2], [10, 20], [0, 30]], np.int64))
    info = job(flows, [0, 1, 2])
    assert can_be_given_ahead(STAR, FairShareNetwork(), [info])
    assert not can_be_given_ahead(STAR, FairShareNetwork(), [replace(info, **what)])
    assert not can_be_given_ahead(STAR, FairShareNetwork(), [info, info])


class Impatient(FairShareNetwork):
    """Whoever runs it loses patience before it answers, but for ``answers`` times."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self._left = answers

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return super().advance(flows, min(horizon_ps, 25_000_000))


def test_an_interrupt_keeps_what_arrived_and_what_was_waited_for() -> None:
    # 1 MB take 100 us, of which the first is over in 25 us; the last waits for longer than that.
    flows = TimedFlows(
        *np.array([[0, 1, 2], [1, 2, 3], [100_000, 10**6, 10**6], [0, 2_000_000, NEVER // 2]], np.int64)
    )
    found = replay(STAR, Impatient(1), [job(flows, [0, 1, 2, 3])], PLANNER)
    assert found.interrupted == "interrupted at 25 us of simulated time"
    assert found.num_messages == 1
    assert found.ops.rank.tolist() == [1, 0, 1]
    assert found.iteration_end_ps[0].shape == (0, 4)
    assert found.finish_ps[0].tolist()[2:] == [-1, -1]


def test_what_would_arrive_too_late_is_refused() -> None:
    flows = TimedFlows(*np.array([[0], [1], [10**9], [NEVER - 1]], np.int64))
    with pytest.raises(SimulationError):
        replay(STAR, FairShareNetwork(), [job(flows, [0, 1])], PLANNER)
