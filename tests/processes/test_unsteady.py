"""Processes that read the wall clock, or draw without a seed, are warned about where their code shows it."""

from __future__ import annotations

import datetime
import os
import random
import time
import uuid
from collections.abc import Callable, Generator
from time import perf_counter
from typing import Any

import numpy as np
import pytest
import simpy

import cosim
from tests.inputs import ROOT

Proc = Generator[simpy.Event, Any, Any]
RING = {"kind": "ring", "endpoints": 2, "rate": "8Gbps", "latency": "0ns"}
WORLD: dict[str, Any] = {"topology": RING, "network": "fair_share"}


def helper() -> float:
    return time.monotonic()


def by_time(sim: Any) -> Proc:
    yield sim.timeout(1)
    time.time()


def by_name(sim: Any) -> Proc:
    yield sim.timeout(int(perf_counter()) * 0)


def by_a_helper(sim: Any) -> Proc:
    yield sim.timeout(int(helper()) * 0)


def by_date(sim: Any) -> Proc:
    datetime.datetime.now()
    yield sim.timeout(1)


def by_random(sim: Any) -> Proc:
    yield sim.timeout(random.randrange(5))


def by_numpy(sim: Any) -> Proc:
    yield sim.timeout(int(np.random.randint(5)))  # noqa: NPY002


def by_default_rng(sim: Any) -> Proc:
    yield sim.timeout(int(np.random.default_rng().integers(5)))


def by_bare_random(sim: Any) -> Proc:
    draw = random.Random()
    yield sim.timeout(draw.randrange(5))


def by_urandom(sim: Any) -> Proc:
    yield sim.timeout(len(os.urandom(2)))


def by_uuid(sim: Any) -> Proc:
    yield sim.timeout(len(str(uuid.uuid4())))


def inside(sim: Any) -> Proc:
    import time as clock

    yield sim.timeout(int(clock.time()) * 0)


def steady(sim: Any) -> Proc:
    draw, other = random.Random(5), np.random.default_rng(7)
    yield sim.timeout(draw.randrange(5) + int(other.integers(5)))
    yield sim.timeout(int(time.strftime("%Y", (2000,) + (1,) * 8)))
    yield sim.transfer(0, 1, 5)


def warnings_of(process: Callable[[Any], Proc]) -> list[str]:
    with cosim.open(WORLD) as sim:
        for _ in range(3):
            sim.process(process(sim))
        return [one for one in sim.run().warnings if "process" in one]


@pytest.mark.parametrize(
    ("process", "says"),
    [
        (by_time, "reads the wall clock (time.time)"),
        (by_name, "reads the wall clock (time.perf_counter)"),
        (by_a_helper, "reads the wall clock (time.monotonic)"),
        (by_date, "reads the wall clock (datetime.datetime.now)"),
        (by_random, "is given no seed here (random.randrange)"),
        (by_numpy, "is given no seed here (numpy.random.randint)"),
        (by_default_rng, "draws without a seed (numpy.random.default_rng)"),
        (by_bare_random, "draws without a seed (random.Random)"),
        (by_urandom, "draws without a seed (os.urandom)"),
        (by_uuid, "draws without a seed (uuid.uuid4)"),
        (inside, "reads the wall clock (time.time)"),
    ],
)
def test_what_would_make_runs_differ_is_said(process: Callable[[Any], Proc], says: str) -> None:
    (warning,) = warnings_of(process)
    assert says in warning
    assert "test_unsteady.py:" in warning
    assert process.__name__ in warning


def test_what_is_seeded_is_not() -> None:
    assert warnings_of(steady) == []


@pytest.mark.parametrize("name", ["circuit", "parameter-server"])
def test_scenarios_of_ours_are_steady(name: str) -> None:
    run = cosim.run(ROOT / "scenarios" / f"{name}.yaml")
    assert not [one for one in run.warnings if "process" in one]


def test_a_driver_of_a_scenario_is_looked_at(tmp_path: Any) -> None:
    (tmp_path / "mine.py").write_text(
        "import time\n"
        "from cosim.plugins import Driver\n"
        "class Mine(Driver):\n"
        "    '''Mine'''\n"
        "    def num_ranks(self):\n"
        "        return 2\n"
        "    def drive(self, sim, job, context):\n"
        "        time.time()\n"
        "        yield job.compute(0, '1us')\n"
    )
    job = {"workload": {"plugin": f"{tmp_path}/mine.py:Mine"}}
    run = cosim.run({**WORLD, "jobs": [job]})
    assert any("mine.py:8 reads the wall clock" in one for one in run.warnings)
