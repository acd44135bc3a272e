"""Ctrl-C keeps what was computed."""

from __future__ import annotations

import os
import signal
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cosim.engine.replay as module
from cosim.engine import columns, spilled_column
from cosim.engine.records import JobInfo, ProgressInfo
from cosim.engine.spilled_column import SpilledColumn
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.flows import FlowBatch
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance
from cosim.pattern.planner import Planner
from cosim.units import PS_PER_US
from tests.engine.worlds import (
    Watched,
    collective,
    compute,
    job,
    never_hangs,  # noqa: F401 - runs by itself
    one_dimension,
    run,
    times,
    workload,
)

either_release = pytest.mark.parametrize("release", ["network", "engine"])
RING = one_dimension("Ring", 4)


class Interrupted(ForwardingNetwork):
    """The user loses patience at the n-th advance."""

    def __init__(self, after: int) -> None:
        super().__init__(CongestionAwareNetwork())
        self._left = after

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return super().advance(flows, horizon_ps)


def some_iterations(count: int = 6) -> JobInfo:
    program = [compute(PS_PER_US), collective(1 << 16, 0), compute(PS_PER_US, 1)]
    return job(workload(program, mesh={"dp": 4}), iterations=count)


@either_release
@pytest.mark.parametrize("after", [0, 1, 3, 4, 5])
def test_what_was_computed_until_the_interrupt_is_kept(after: int, release: str) -> None:
    whole = run(RING, some_iterations(), record_messages=True, release=release)
    assert whole.interrupted == ""
    network = Watched(Interrupted(after))
    part = run(RING, some_iterations(), network=network, record_messages=True, release=release)
    assert part.interrupted.startswith("interrupted at ")
    assert network.is_closed
    found, full = times(part), times(whole)
    assert len(found) < len(full)
    assert all(full[key] == at for key, at in found.items())
    # Whole iterations, of all ranks, as far as they went.
    done = len(part.iteration_end_ps[0])
    assert np.array_equal(part.iteration_end_ps[0], whole.iteration_end_ps[0][:done])
    assert done < 6
    assert part.collectives == whole.collectives[: len(part.collectives)]
    assert part.messages is not None
    assert whole.messages is not None
    assert len(part.messages.src) == part.num_messages == int(part.fct.counts.sum())
    assert np.array_equal(part.messages.end_ps, whole.messages.end_ps[: part.num_messages])
    assert int(part.traffic.size_bytes.sum()) == int(part.messages.size_bytes.sum())
    assert part.end_ps == max((end for _, end in found.values()), default=0)
    # A rank that has ended nothing yet has no finish; one that has, its last whole iteration's.
    last = part.iteration_end_ps[0][-1] if done else np.full(4, -1)
    assert (part.finish_ps[0] >= last).all()


def test_an_interrupt_in_a_progress_callback_counts_too() -> None:
    def stop(info: ProgressInfo) -> None:
        assert 0 <= info.operations_done <= info.operations_total == 6 * 4 * 3
        if info.operations_done:
            raise KeyboardInterrupt

    calls: list[ProgressInfo] = []
    records = run(RING, some_iterations(), progress=calls.append)
    assert records.interrupted == ""
    assert calls  # told at least once, the first time at once
    assert [call.now_ps for call in calls] == sorted(call.now_ps for call in calls)

    before = module._PROGRESS_S
    module._PROGRESS_S = 0.0
    try:
        part = run(RING, some_iterations(), progress=stop)
    finally:
        module._PROGRESS_S = before
    assert part.interrupted
    assert 0 < len(part.ops) < 72


def test_an_interrupt_while_collectives_are_planned_leaves_empty_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def impatient(*arguments: object, **settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Planner, "plan", impatient)
    records = run(RING, some_iterations())
    assert records.interrupted
    assert (len(records.ops), records.num_messages, records.end_ps) == (0, 0, 0)
    assert records.iteration_end_ps[0].shape == (0, 4)


class InterruptedColumn(SpilledColumn):
    """A signal comes while the n-th part of all columns is being written down."""

    left = 0

    def append(self, part: NDArray[Any]) -> None:
        super().append(part)
        InterruptedColumn.left -= 1
        if InterruptedColumn.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("after", [1, 3, 5, 6, 10])
def test_a_signal_while_operations_are_written_down_keeps_whole_rows(
    after: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(columns, "_MOST_LOGGED", 16)
    whole = run(RING, some_iterations(50))
    monkeypatch.setattr(spilled_column, "SpilledColumn", InterruptedColumn)
    monkeypatch.setattr(InterruptedColumn, "left", after)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        part = run(RING, some_iterations(50), spill=tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert part.interrupted
    count = len(part.ops)
    assert 0 < count < len(whole.ops)
    for each in fields(part.ops):
        assert np.array_equal(getattr(part.ops, each.name), getattr(whole.ops, each.name)[:count])


def test_other_errors_are_not_swallowed_and_close_the_network() -> None:
    class Broken(ForwardingNetwork):
        def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:  # noqa: ARG002
            raise RuntimeError("a bug")

    network = Watched(Broken(CongestionAwareNetwork()))
    with pytest.raises(RuntimeError, match="a bug"):
        run(RING, some_iterations(), network=network)
    assert network.is_closed
