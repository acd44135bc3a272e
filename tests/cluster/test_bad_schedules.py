"""What can't be scheduled, or only in part: each is named, by either scheduler, and nothing goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cosim
from cosim.errors import ScenarioError
from tests.cluster.test_cassini import MS, dumbbell, job

BOTH = pytest.mark.parametrize("scheduler", ["cassini", "crux"])
NOISE = {"kind": "background", "ranks": 2, "load": 0.1, "duration": "50ms", "rate": "1Gbps", "size": 10000}
NOTHING = cosim.Workload(
    "none", cosim.DeviceMesh({"dp": 2}), (cosim.Program("none", ()),), np.zeros(2, np.int32)
)
QUIET = job("quiet", 5, 0)
PAIR = [job("one", 5, 5), job("two", 5, 5)]

NAMED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nobody sends": ([QUIET], "quiet sends nothing: it is in nobody's way"),
    "one sends nothing": ([QUIET, *PAIR], "quiet sends nothing: it is in nobody's way"),
    "background": (
        [*PAIR, {"name": "noise", "workload": NOISE}],
        "noise is background traffic: nothing is decided for it",
    ),
    "background alone": ([{"name": "noise", "workload": NOISE}], "noise"),
    "over at once": ([{"name": "none", "workload": NOTHING, "iterations": 3}, *PAIR], "none sends nothing"),
    "over before the next comes": ([PAIR[0], {**PAIR[1], "start": "900ms"}], "one of"),
}


@BOTH
@pytest.mark.parametrize("case", NAMED)
def test_what_is_left_alone_is_named(case: str, scheduler: str) -> None:
    jobs, said = NAMED[case]
    run = cosim.run(dumbbell(jobs, scheduler=scheduler, queue={}))
    assert said in str(run)
    for one in run.summary.jobs:
        if one.name in ("one", "two") and case != "background":
            assert one.iteration_ps[1:] == (10 * MS,) * 7


def test_a_job_that_is_not_periodic_draws_a_warning() -> None:
    uneven = [job("one", 50, 50, jitter=0.9), job("two", 50, 50)]
    warnings = cosim.run(dumbbell(uneven, scheduler="cassini")).warnings
    assert len(warnings) == 1
    assert "one is not periodic: its iterations alone differ by" in warnings[0]
    even = [job("one", 50, 50, jitter=0.01), job("two", 50, 50)]
    assert not cosim.run(dumbbell(even, scheduler="cassini")).warnings


@BOTH
def test_links_without_capacity_are_refused(scheduler: str) -> None:
    text = dumbbell([job("one", 5, 5)], scheduler=scheduler)
    text["topology"]["links"][-1]["rate"] = "0Gbps"
    with pytest.raises(ScenarioError, match="rate"):
        cosim.run(text)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"kind": "cassini", "drift": 0}, "drift"),
        ({"kind": "cassini", "grid": 1}, "grid"),
        ({"kind": "cassini", "candidates": 11}, "candidates"),
        ({"kind": "cassini", "tolerance": -1}, "tolerance"),
        ({"kind": "crux", "levels": 0}, "levels"),
        ({"kind": "crux", "drift": 0.1}, "drift"),
        ("cassiny", "cassini"),
    ],
)
def test_settings_that_cannot_be_are_refused(setting: Any, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        cosim.run(dumbbell(PAIR, scheduler=setting))
