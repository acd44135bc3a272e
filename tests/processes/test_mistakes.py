"""What processes do wrong is said in a line: which process, which line, which event."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest
import simpy

import cosim
from cosim.plugins import Operation, OpKind

Proc = Generator[simpy.Event, Any, Any]
WORLD = {
    "topology": {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"},
    "network": "fair_share",
}


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (
            lambda sim: sim.recv(1, 0, "1MB", tag=3),
            r"waits for recv 1000000 bytes of rank 1 from rank 0 tag 3",
        ),
        (
            lambda sim: sim.all_reduce(range(4), "1MB", rank=2),
            r"all_reduce 1 MB of ranks 0, 1, 2, 3 on rank 2",
        ),
        (lambda sim: sim.recv(1, 0, 5) & sim.timeout(7), r"waits for recv 5 bytes"),
    ],
)
def test_a_process_that_waits_for_what_can_not_come(ask: Callable[[Any], Any], says: str) -> None:
    def waiting(sim: Any) -> Proc:
        yield ask(sim)

    with cosim.open(WORLD) as sim:
        sim.process(waiting(sim))
        with pytest.raises(cosim.StallError, match=rf"waiting \(\S*test_mistakes.py:\d+\).*{says}"):
            sim.run()


def test_a_process_that_yields_a_number() -> None:
    def counts(sim: Any) -> Proc:
        yield 5  # type: ignore[misc]

    with cosim.open(WORLD) as sim:
        sim.process(counts(sim))
        with pytest.raises(cosim.InputError, match=r'in counts.*yield 5.*Invalid yield value "5"'):
            sim.run()


def test_a_process_that_raises_shows_its_own_line_and_the_run_is_kept() -> None:
    def breaks(sim: Any) -> Proc:
        yield sim.transfer(0, 1, "1MB")
        raise KeyError("of mine")

    with cosim.open(WORLD) as sim:
        sim.process(breaks(sim))
        with pytest.raises(KeyError, match="of mine") as caught:
            sim.run()
        assert caught.value.__cause__ is not None
        trace = caught.value.__cause__.__traceback__
        assert trace is not None
        assert trace.tb_frame.f_code.co_name == "breaks"
        assert sim.so_far().records.num_messages == 1


def test_processes_that_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cosim.processes.simulation.MOST_IN_VAIN", 1000)

    def ticks(sim: Any) -> Proc:
        yield sim.transfer(0, 1, 5)
        while True:
            yield sim.timeout(1)

    with cosim.open(WORLD) as sim:
        sim.process(ticks(sim))
        sim.run(until="5ns")  # has an end: it may
        with pytest.raises(cosim.SimulationError, match=r"ticks \(\S*test_mistakes.py:\d+\) may never end"):
            sim.run()


def test_a_process_at_one_instant_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cosim.processes.simulation.MOST_IN_VAIN", 1000)

    def spins(sim: Any) -> Proc:
        while True:
            yield sim.timeout(0)

    with cosim.open(WORLD) as sim:
        sim.process(spins(sim))
        with pytest.raises(cosim.SimulationError, match=r"spins .* may never end"):
            sim.run(until="1s")


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda sim: sim.transfer(0, 4, 5), "there is no rank 4; there are 0 to 3"),
        (lambda sim: sim.transfer(-1, 2, 5), "there is no rank -1"),
        (lambda sim: sim.transfer(0, "npu9", 5), "has no endpoint 'npu9'"),
        (lambda sim: sim.transfer(0, 1, "5 parsec"), "size"),
        (lambda sim: sim.transfer(0, 1, -5), "below zero"),
        (lambda sim: sim.transfer(0, 1, 5, priority=-1), "are 0 or more"),
        (lambda sim: sim.send(1, 1, 5), "rank 1 has no peer but itself"),
        (lambda sim: sim.compute(0, "5"), "needs a time unit"),
        (lambda sim: sim.compute([0, 0], "5us"), "each of them once"),
        (lambda sim: sim.compute([], "5us"), "at least one rank"),
        (lambda sim: sim.compute(0, None), "None is not a time"),
        (lambda sim: sim.timeout(0.5), "finer than a picosecond"),
        (lambda sim: sim.collective("sum", range(4), 5), "there is no collective 'sum'"),
        (lambda sim: sim.all_reduce(range(2), 5, rank=3), "rank 3 is not in its group"),
        (lambda sim: sim.all_reduce(range(9), 5), "there is no rank 4"),
        (lambda sim: sim.broadcast(range(4), 5, root=4), "root 4 is no position"),
        (lambda sim: sim.link("npu0 -> npu2"), "has no link 'npu0 -> npu2'"),
        (lambda sim: sim.start({"workload": {"kind": "none"}}), "workload"),
        (lambda sim: sim.start(5), "5 is no job"),
        (lambda sim: sim.run_program(range(4), 5), "5 is no program"),
    ],
)
def test_what_is_not_there(ask: Callable[[Any], Any], says: str) -> None:
    with cosim.open(WORLD) as sim, pytest.raises(cosim.CosimError, match=says):
        ask(sim)


def test_an_algorithm_that_is_not_there() -> None:
    with cosim.open(WORLD) as sim:
        sim.all_reduce(range(4), "1MB", algorithm="rung")
        with pytest.raises(cosim.AlgorithmError, match="rung"):
            sim.run()


def test_ranks_that_disagree() -> None:
    with cosim.open(WORLD) as sim:
        sim.all_reduce(range(2), "1MB", rank=0)
        sim.all_reduce(range(2), "2MB", rank=1)
        with pytest.raises(cosim.MismatchError, match="ranks disagree"):
            sim.run()
    with cosim.open(WORLD) as sim:
        sim.send(0, 1, 5)
        sim.recv(1, 0, 6)
        with pytest.raises(cosim.MismatchError, match="SENDs 5 bytes"):
            sim.run()


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        ({**WORLD, "queue": {}}, "no queue"),
        ({"topology": WORLD["topology"]}, "network: is missing"),
    ],
)
def test_scenarios_that_have_no_processes(scenario: dict[str, Any], says: str) -> None:
    with pytest.raises(cosim.InputError, match=says):
        cosim.open(scenario)


def test_a_scenario_in_which_nothing_happens() -> None:
    with pytest.raises(cosim.InputError, match="nothing would happen"):
        cosim.run(WORLD)


def test_a_program_needs_a_name_of_its_own() -> None:
    """The event of the first one would never happen: nobody would look at that job any more."""
    program = cosim.Program("p", (Operation("c", OpKind.COMPUTE, duration_ps=5),))
    with cosim.open(WORLD) as sim:
        sim.run_program([0], program, name="one")
        with pytest.raises(cosim.InputError, match="the name 'one' is taken by another job"):
            sim.run_program([1], program, name="one")
