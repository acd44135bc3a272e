"""Random programs of processes, most of them wrong: each ends, with one line that says what was wrong.

``python -m tests.processes.wrong [COUNT] [--first SEED]`` runs as many (5,000), and says how they ended.
"""

# ruff: noqa: ARG005, PT017 - steps are called alike; what errors are is what is looked at

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import simpy

import cosim
from cosim.processes import simulation

Proc = Generator[simpy.Event, Any, Any]
RING = {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "1us"}
WORK = {"kind": "periodic", "compute": "3us", "size": "10kB", "ranks": 2}
JOB = {"workload": WORK, "iterations": 5}
UNTIL = "2ms"
PATIENCE_S = 20
"""For one program, which takes some milliseconds."""


class OwnError(Exception):
    """What a process raises of its own."""


Step = Callable[[Any, random.Random], Any]


def _spin(sim: Any, draw: random.Random) -> Proc:
    delay = draw.choice([0, "1us"])
    while True:
        yield sim.timeout(delay)


def _raise(sim: Any, draw: random.Random) -> Any:
    raise OwnError("of mine")


def _fail(sim: Any, draw: random.Random) -> Any:
    return sim.event().fail(OwnError("of an event"))


def _twice(sim: Any, draw: random.Random) -> Any:
    return sim.event().succeed().succeed()


def _interrupts(sim: Any, draw: random.Random) -> Any:
    victim = draw.choice(sim.mine)
    victim.interrupt("because")
    return sim.timeout(1)


def _pair(draw: random.Random) -> list[int]:
    return draw.sample(range(4), 2)


RIGHT: list[Step] = [
    lambda sim, draw: sim.timeout(draw.choice([0, 1, "3us"])),
    lambda sim, draw: sim.transfer(*_pair(draw), draw.randrange(100_000)),
    lambda sim, draw: sim.compute(draw.randrange(4), draw.choice(["0ns", "2us"])),
    lambda sim, draw: sim.all_reduce(range(4), 4096),
    lambda sim, draw: sim.transfer(*_pair(draw), 50_000) | sim.timeout("1us"),
    lambda sim, draw: sim.process(iter_of(sim, draw)),
    lambda sim, draw: sim.jobs["first"].iteration(),
    lambda sim, draw: sim.jobs["first"].ended,
    lambda sim, draw: sim.start(JOB, placement=_pair(draw), name=f"job {draw.random()}").ended,
    lambda sim, draw: sim.change("npu0 -> npu1", rate=draw.choice(["1Gbps", "80Gbps"])) or sim.timeout(1),
    lambda sim, draw: sim.timeout(sim.link("npu1 -> npu2").use > 0.5),
]
WRONG: list[Step] = [
    lambda sim, draw: draw.choice([5, None, "5us", (), 1.5]),
    lambda sim, draw: sim.event(),
    lambda sim, draw: sim.recv(*_pair(draw), 5, tag=draw.randrange(3)),
    lambda sim, draw: sim.send(*_pair(draw), draw.choice([5, 6]), tag=draw.randrange(3)),
    lambda sim, draw: sim.all_reduce(range(4), draw.choice([5, 6]), rank=draw.randrange(4)),
    lambda sim, draw: sim.collective(draw.choice(["sum", "barrier"]), [0, 1], 5, rank=0),
    lambda sim, draw: sim.all_reduce(range(4), 5, algorithm="rung"),
    lambda sim, draw: sim.transfer(0, draw.choice([4, -1, "npu9", None, 1.5]), 5),
    lambda sim, draw: sim.transfer(0, 1, draw.choice([-5, "5 parsec", None, 1e400, float("nan")])),
    lambda sim, draw: sim.compute(draw.choice([[0, 0], [], 9, "npu0"]), draw.choice(["5", -1, None, "2us"])),
    lambda sim, draw: sim.timeout(draw.choice([-1, 0.5, "5", None, float("inf")])),
    lambda sim, draw: sim.jobs["first"].stop(),
    lambda sim, draw: sim.jobs["first"].pause(),
    lambda sim, draw: sim.jobs["first"].resume(),
    lambda sim, draw: sim.jobs["first"].begin([0, 1]),
    lambda sim, draw: sim.jobs["first"].iteration(draw.choice([9, -1, None])),
    lambda sim, draw: sim.jobs["second"].ended,
    lambda sim, draw: sim.start(draw.choice([5, {}, {"workload": WORK, "iterations": -1}, "no.yaml"])).ended,
    lambda sim, draw: sim.start(JOB, placement=draw.choice([[0], [0, 0], [0, 9], []])).ended,
    lambda sim, draw: sim.start(JOB, name="first").ended,
    lambda sim, draw: sim.run_program([0], draw.choice([5, cosim.Program("empty", ())])),
    lambda sim, draw: sim.change(draw.choice(["npu0 -> npu2", "", "npu0"]), up=False) or sim.timeout(1),
    lambda sim, draw: sim.change("npu0 -> npu1", rate=draw.choice(["1Tbps", "5", -1])) or sim.timeout(1),
    lambda sim, draw: sim.change("npu0 -> npu1", up=False) or sim.transfer(0, 1, 5),
    lambda sim, draw: sim.change_control(g=5) or sim.timeout(1),
    lambda sim, draw: sim.jobs["first"].change(priority=draw.choice([-1, 2])) or sim.timeout(1),
    lambda sim, draw: sim.jobs["first"].waits_for(9) or sim.timeout(1),
    lambda sim, draw: sim.process(_spin(sim, draw)),
    lambda sim, draw: sim.process(draw.choice([5, None, []])),
    lambda sim, draw: sim.close() or sim.timeout(1),
    lambda sim, draw: sim.run() or sim.timeout(1),
    _raise,
    _fail,
    _twice,
    _interrupts,
]


@contextmanager
def patient(time_s: int) -> Iterator[None]:
    """Raises what hangs out of it."""

    def hangs(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(time_s)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def iter_of(sim: Any, draw: random.Random) -> Proc:
    """A process that is asked for by another."""
    yield sim.timeout(draw.randrange(1000))
    return 5


def program(sim: Any, draw: random.Random, wrong: float) -> Proc:
    """Some steps, of which so many are wrong."""
    for _ in range(draw.randrange(1, 7)):
        step = draw.choice(WRONG if draw.random() < wrong else RIGHT)
        if draw.random() < 0.2:
            try:
                yield step(sim, draw)
            except (cosim.CosimError, simpy.Interrupt):
                yield sim.timeout(1)
        else:
            yield step(sim, draw)


def ends(seed: int) -> str:
    """How a program ends: ``done``, or what kind of error says what is wrong.

    Raises
    ------
    BaseException
        Whatever a user should not see.
    """
    draw = random.Random(seed)
    network = draw.choice(["fair_share", "congestion_aware", {"model": "congestion", "control": "dctcp"}])
    scenario = {"topology": RING, "network": network, "jobs": [{"name": "first", **JOB}]}
    sim: Any = cosim.open(scenario, changes_links=draw.random() < 0.7)
    sim.mine = []
    wrong = draw.choice([0.05, 0.3, 0.6])
    end = "done"
    try:
        for _ in range(draw.randrange(1, 6)):
            sim.mine.append(sim.process(program(sim, random.Random(draw.random()), wrong)))
        sim.run(until=UNTIL)
        if draw.random() < 0.5:
            sim.run()
    except cosim.CosimError as error:
        end = type(error).__name__
        assert str(error), end
        assert "validation error" not in str(error), error
    except (OwnError, simpy.Interrupt, KeyError) as error:
        end = type(error).__name__
        # An event that fails while nobody waits for it is raised by SimPy itself.
        shown = "program" in frames(error.__cause__ or error) or "of an event" in str(error)
        assert shown, frames(error)
    except (RuntimeError, ValueError) as error:
        # SimPy's own words for what is wrong with SimPy's own: an event that happens twice ...
        end = f"SimPy's {type(error).__name__}"
        assert last_file(error.__cause__ or error).find("/simpy/") >= 0 or "Negative delay" in str(error), (
            error
        )
    # What has happened stays, unless the program itself let go of it.
    try:
        sim.so_far()
    except cosim.SimulationError as error:
        assert "closed" in str(error), error
    sim.close()
    return end


def frames(error: BaseException | None) -> list[str]:
    """The functions that an error came through."""
    found, trace = [], None if error is None else error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return found


def last_file(error: BaseException) -> str:
    """The file that raised it."""
    trace, file = error.__traceback__, ""
    while trace is not None:
        file, trace = trace.tb_frame.f_code.co_filename, trace.tb_next
    return file


def main() -> int:
    """Run as many as are asked for; 1 where one hangs or shows what a user should not see."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    asked, began, wrong = parser.parse_args(), time.monotonic(), 0
    simulation.MOST_IN_VAIN = 20_000
    found: Counter[str] = Counter()
    for seed in range(asked.first, asked.first + asked.count):
        try:
            with patient(PATIENCE_S):
                found[ends(seed)] += 1
        except BaseException as error:
            print(
                f"seed {seed}: {type(error).__name__}: {str(error)[:200]} in {last_file(error)}", flush=True
            )
            wrong += 1
    for end, count in found.most_common():
        print(f"{count:6} {end}")
    print(f"{asked.count} programs, {wrong} not as they should, in {time.monotonic() - began:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
