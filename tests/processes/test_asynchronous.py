"""Training whose averages come late, and training that fails, as processes: the times of what cosim has."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
import simpy

import cosim
from cosim.faults import training
from cosim.workload.layers.profile import LayerProfile, ProfiledLayer
from cosim.workload.layers.staleness import averaged

Proc = Generator[simpy.Event, Any, Any]
WORLD = {
    "topology": {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "500ns"},
    "network": "fair_share",
}
RANKS = range(4)
PROFILE = LayerProfile(
    "two", (ProfiledLayer("a", 7_000_000, 9_000_000, 300_000), ProfiledLayer("b", 5, 20, 50))
)
SIZE = int(PROFILE.parameter_bytes.sum())
US = 1_000_000


def local_sgd(sim: Any, rank: int, steps: int, periods: int, *, late: bool) -> Proc:
    """Some steps, and an average that the next period waits for, or, late, the one after it."""
    averages: list[simpy.Event] = []
    for period in range(periods):
        if late and period >= 2:
            yield averages[period - 2]
        for _ in range(steps):
            yield sim.compute(rank, 7_000_005)
            yield sim.compute(rank, 9_000_020)
        averages.append(sim.all_reduce(RANKS, SIZE, rank=rank))
        if not late:
            yield averages[-1]


def as_processes(steps: int, periods: int, *, late: bool) -> cosim.Run:
    with cosim.open(WORLD) as sim:
        for rank in RANKS:
            sim.process(local_sgd(sim, rank, steps, periods, late=late))
        run: cosim.Run = sim.run()
        return run


def as_program(steps: int, periods: int, *, late: bool) -> cosim.Run:
    with cosim.open(WORLD) as sim:
        sim.run_program(RANKS, averaged(PROFILE, 4, steps, late=late), iterations=periods)
        run: cosim.Run = sim.run()
        return run


def times(run: cosim.Run) -> list[tuple[int, int, int]]:
    ops = run.records.ops
    return sorted(zip(ops.rank.tolist(), ops.start_ps.tolist(), ops.end_ps.tolist(), strict=True))


def test_an_iteration_of_local_sgd_has_the_digest_of_its_program() -> None:
    assert as_processes(3, 1, late=False).digest == as_program(3, 1, late=False).digest


@pytest.mark.parametrize("late", [False, True])
def test_local_sgd_takes_as_long_operation_by_operation(late: bool) -> None:
    """Digests have iterations in them, which a process's operations don't have: times are compared."""
    one, other = as_processes(2, 9, late=late), as_program(2, 9, late=late)
    assert times(one) == times(other)
    assert len(times(one)) == 4 * 9 * 5


def test_the_training_that_fails_lives_in_a_simulation_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a SimPy process, beside which a simulation may have others."""
    spec = training.TrainingRun(
        lasts="2s", restart="3ms", checkpoint=training.Checkpoints(every="40ms", time="1ms")
    )
    failures = [
        training.Failure(at * 1_000 * US, 0, f"cause {at % 3}", at * US) for at in (90, 91, 333, 1700)
    ]
    right = training.live(spec, 10_000 * US, failures, None)
    with cosim.open(WORLD) as sim:
        busy = sim.process(local_sgd(sim, 0, 0, 0, late=False))
        sim.all_reduce(RANKS, SIZE)
        own = SimpleNamespace(Environment=lambda: sim, Interrupt=simpy.Interrupt)
        monkeypatch.setattr(training, "simpy", own)
        assert training.live(spec, 10_000 * US, failures, None) == right
        assert busy.triggered
    assert right.failures == 4
    assert 0.9 < right.goodput < 1
