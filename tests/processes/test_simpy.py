"""It is a SimPy environment: what runs in SimPy's own runs in it, with the same output."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import Any

import pytest
import simpy

import cosim

Proc = Generator[simpy.Event, Any, Any]
Say = Callable[..., None]
RING = {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"}
WORLD = {"topology": RING, "network": "fair_share"}


def car(env: Any, say: Say) -> Any:
    """SimPy's tutorial: a car that charges, and whose driver comes back early."""

    def drive() -> Proc:
        while True:
            say(f"Start parking and charging at {env.now}")
            try:
                yield env.process(charge())
            except simpy.Interrupt as interrupt:
                say(f"Was interrupted: {interrupt.cause}")
            say(f"Start driving at {env.now}")
            yield env.timeout(2)

    def charge() -> Proc:
        yield env.timeout(5)

    def driver(action: Any) -> Proc:
        yield env.timeout(3)
        action.interrupt("in a hurry")

    env.process(driver(env.process(drive())))
    return 15


def bank(env: Any, say: Say) -> Any:
    """SimPy's "Bank Renege", with times that are no whole numbers."""
    draw = random.Random(42)

    def source(counter: simpy.Resource) -> Proc:
        for number in range(5):
            env.process(customer(f"Customer{number:02d}", counter))
            yield env.timeout(draw.expovariate(1 / 10))

    def customer(name: str, counter: simpy.Resource) -> Proc:
        arrive = env.now
        say(f"{arrive:7.4f} {name}: Here I am")
        with counter.request() as request:
            results = yield request | env.timeout(draw.uniform(1, 3))
            wait = env.now - arrive
            if request in results:
                say(f"{env.now:7.4f} {name}: Waited {wait:6.3f}")
                yield env.timeout(draw.expovariate(1 / 12))
                say(f"{env.now:7.4f} {name}: Finished")
            else:
                say(f"{env.now:7.4f} {name}: RENEGED after {wait:6.3f}")

    env.process(source(simpy.Resource(env, capacity=1)))
    return None


def gas_station(env: Any, say: Say) -> Any:
    """Containers, priorities and stores in one: after SimPy's "Gas Station Refueling" and "Latency"."""
    tank = simpy.Container(env, 200, init=60)
    pumps = simpy.PriorityResource(env, 2)
    news = simpy.Store(env, 2)

    def refuel(name: str, litres: int, priority: int) -> Proc:
        with pumps.request(priority=priority) as request:
            yield request
            yield tank.get(litres)
            yield env.timeout(litres / 2)
            say(f"{name} has {litres} at {env.now:.1f}, {tank.level} are left")
        yield news.put(name)

    def truck() -> Proc:
        while True:
            if tank.level < 50:
                yield env.timeout(30)
                yield tank.put(100)
                say(f"truck at {env.now:.1f}")
            yield env.timeout(7)

    def reporter() -> Proc:
        while True:
            name = yield news.get()
            say(f"{env.now:.1f}: {name}")
            yield env.timeout(11)

    for number, litres in enumerate((40, 25, 60, 33, 50)):
        env.process(refuel(f"car {number}", litres, number % 2))
    env.process(truck())
    env.process(reporter())
    return 300


@pytest.mark.parametrize("example", [car, bank, gas_station])
def test_simpys_examples_have_their_own_output(example: Callable[[Any, Say], Any]) -> None:
    theirs: list[str] = []
    env = simpy.Environment()
    env.run(example(env, theirs.append))
    ours: list[str] = []
    with cosim.open(WORLD, unit="1s") as sim:
        sim.run(example(sim, ours.append))
    assert ours == theirs
    assert len(ours) > 5


def test_integers_are_picoseconds_and_stay_integers() -> None:
    with cosim.open(WORLD) as sim:
        sim.process(iter_timeouts(sim, 3, "5us", 2.0))
        sim.run()
        assert (sim.now, type(sim.now)) == (5_000_005, int)
        assert sim.peek() == float("inf")


def iter_timeouts(sim: Any, *delays: object) -> Proc:
    for delay in delays:
        yield sim.timeout(delay)


def test_conditions_mix_both_kinds_of_events() -> None:
    def process(sim: Any) -> Proc:
        sent, waited = sim.transfer(0, 1, "1MB"), sim.timeout("1us", "waited")
        results = yield sent | waited
        assert results == {waited: "waited"}
        results = yield sent & sim.timeout("1us")
        assert results[sent].ended_ps == sim.now == 100_000_000

    with cosim.open(WORLD) as sim:
        process_of_it = sim.process(process(sim))
        sim.run()
        assert process_of_it.ok


def test_a_process_may_be_interrupted_while_it_waits_for_a_transfer() -> None:
    def sender(sim: Any) -> Proc:
        try:
            yield sim.transfer(0, 1, "1MB")
        except simpy.Interrupt as interrupt:
            return interrupt.cause, sim.now
        return None

    def other(sim: Any, sends: Any) -> Proc:
        yield sim.timeout("1us")
        sends.interrupt("enough")

    with cosim.open(WORLD) as sim:
        sends = sim.process(sender(sim))
        sim.process(other(sim, sends))
        run = sim.run()
    assert sends.value == ("enough", 1_000_000)
    assert run.records.end_ps == 100_000_000  # what is under way goes on


def test_run_ends_at_a_time_or_with_an_event_and_goes_on() -> None:
    with cosim.open(WORLD) as sim:
        sent = sim.transfer(0, 1, "1MB")
        first = sim.run(until="10us")
        assert (sim.now, first.records.num_messages) == (10_000_000, 0)
        second = sim.run(until=sent)
        assert (sim.now, second.records.num_messages) == (100_000_000, 1)
        assert sim.run(until=sent).digest == second.digest
        with pytest.raises(ValueError, match="must be greater than the current simulation time"):
            sim.run(until="5us")


def test_the_order_within_an_instant() -> None:
    """What ends, by the order in which those who asked began; then timeouts, as SimPy has them."""
    order: list[str] = []

    def waits(sim: Any, name: str, event: Callable[[], simpy.Event], later: int = 0) -> Proc:
        if later:
            yield sim.timeout(later)
        yield event()
        order.append(name)

    with cosim.open(WORLD) as sim:
        sim.process(waits(sim, "timeout", lambda: sim.timeout(100)))
        sim.process(waits(sim, "computes, asked last", lambda: sim.compute(0, 50), later=50))
        sim.process(waits(sim, "computes, asked first", lambda: sim.compute(1, 100)))
        sim.process(waits(sim, "starts what ends at once", lambda: sim.compute(0, 0), later=100))
        sim.run()
    assert order == ["computes, asked last", "computes, asked first", "timeout", "starts what ends at once"]
