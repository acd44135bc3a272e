"""A whole training with failures: by hand, against Daly's closed form, and its parts."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
import pytest

from cosim.faults.event import Event
from cosim.faults.failures import Failures
from cosim.faults.training import Failure, TrainingRun, best_interval_ps, live
from cosim.units import PS_PER_S

HOUR = 3600 * PS_PER_S


def run(lasts: str, every: str, time: str, restart: str) -> TrainingRun:
    return TrainingRun.model_validate(
        {"lasts": lasts, "checkpoint": {"every": every, "time": time}, "restart": restart}
    )


def test_one_failure_by_hand() -> None:
    # Ten seconds of computing and one of writing at a time; at 25 s the third stretch is 3 s old.
    life = live(run("60s", "10s", "1s", "4s"), PS_PER_S, [Failure(25 * PS_PER_S, 3, "disk", PS_PER_S)], None)
    # Runs again at 30 s: 30 to 40, 41 to 51, 52 to 60.
    seconds = [one / PS_PER_S for one in (life.useful_ps, life.checkpoint_ps, life.redone_ps, life.down_ps)]
    assert seconds == [20 + 28, 4, 3, 5]
    assert (life.checkpoints, life.failures, life.every_ps) == (4, 1, 10 * PS_PER_S)
    [cause] = life.causes
    assert (cause.name, cause.redone_ps, cause.down_ps) == ("disk", 3 * PS_PER_S, 5 * PS_PER_S)


def test_a_failure_while_writing_loses_both_and_one_while_down_starts_the_wait_anew() -> None:
    failures = [Failure(int(at * PS_PER_S), 0, name, 0) for at, name in ((10.5, "a"), (12, "b"))]
    life = live(run("20s", "10s", "1s", "4s"), PS_PER_S, failures, None)
    assert [(c.name, c.redone_ps / PS_PER_S, c.down_ps / PS_PER_S) for c in life.causes] == [
        ("a", 10.5, 1.5),
        ("b", 0, 4),
    ]
    assert life.useful_ps == 4 * PS_PER_S


def test_without_failures_only_checkpoints_cost() -> None:
    life = live(run("110s", "10s", "1s", "9s"), PS_PER_S, [], None)
    assert (life.useful_ps, life.checkpoint_ps) == (100 * PS_PER_S, 10 * PS_PER_S)
    best = live(TrainingRun.model_validate({"lasts": "110s"}), PS_PER_S, [], None)
    assert (best.goodput, best.checkpoints) == (1.0, 0)


@pytest.mark.parametrize(("every", "time", "restart"), [(600, 30, 300), (3000, 60, 0), (7200, 600, 1200)])
def test_goodput_is_that_of_dalys_renewal_equation(every: int, time: int, restart: int) -> None:
    mtbf, lasts = 3 * HOUR, 40_000 * HOUR
    gaps = np.random.default_rng(7).exponential(mtbf, 14_000)
    failures = [Failure(int(at), 0, "x", 0) for at in accumulate(gaps)]
    life = live(run(f"{lasts // HOUR}h", f"{every}s", f"{time}s", f"{restart}s"), PS_PER_S, failures, None)
    rate = PS_PER_S / mtbf
    stretch = math.exp(rate * restart) * math.expm1(rate * (every + time)) / rate
    # About 13,333 failures: four standard errors of their number, of which a fraction costs.
    lost = 1 - every / stretch
    assert abs(life.goodput - every / stretch) < 4 * lost / math.sqrt(lasts / mtbf)
    total = life.useful_ps + life.checkpoint_ps + life.redone_ps + life.down_ps
    assert total == life.lasts_ps


def test_the_best_interval_loses_least() -> None:
    mtbf, time = 3 * HOUR, 60 * PS_PER_S

    def lost(every: float) -> float:
        return 1 - every / (mtbf * math.expm1((every + time) / mtbf))

    best = best_interval_ps(time, mtbf)
    tried = [best * factor for factor in np.linspace(0.5, 2, 301)]
    assert lost(best) <= min(map(lost, tried)) * 1.0001
    assert best_interval_ps(7 * HOUR, mtbf) == mtbf


def test_failures_of_ranks_come_in_order_and_as_often_as_they_should() -> None:
    gpu = Event.model_validate({"rank": "*", "fails": True, "mtbf": "100h", "repair": "1h", "cause": "GPU"})
    often = Event.model_validate({"rank": 3, "fails": True, "at": "1h", "every": "50h"})
    lasts = 1000 * HOUR
    failures = Failures([(0, gpu, list(range(200))), (4, often, [3])], 5, lasts)
    found = list(failures)
    assert [one.time_ps for one in found] == sorted(one.time_ps for one in found)
    assert sum(one.cause == "event 4" for one in found) == 20
    drawn = len(found) - 20
    assert abs(drawn - 200 * 1000 / 101) < 4 * math.sqrt(200 * 1000 / 101)
    mtbf = failures.mtbf_ps()
    assert mtbf is not None
    assert mtbf == pytest.approx(HOUR / (200 / 100 + 1 / 50))
