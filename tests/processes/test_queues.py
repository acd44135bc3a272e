"""One link that transfers come to at random, against closed forms of queueing theory.

Kleinrock, Queueing Systems I (1975): M/D/1 and M/M/1 wait ``rho / (2 (1 - rho))`` and ``rho / (1 - rho)``
service times in the mean; under processor sharing the mean slowdown is ``1 / (1 - rho)``, whatever the sizes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import Any

import pytest
import simpy

import cosim

Proc = Generator[simpy.Event, Any, Any]
MEAN = 100_000  # bytes, which take 10 us at 80 Gbps
SERVICE_PS = 10_000_000
LOAD = 0.8


def fixed(_: random.Random) -> int:
    return MEAN


def exponential(draw: random.Random) -> int:
    return max(1, round(draw.expovariate(1 / MEAN)))


def pareto(draw: random.Random) -> int:
    return max(1, round(MEAN * 1.5 / 2.5 * draw.paretovariate(2.5)))


def slowdowns(size: Callable[[random.Random], int], count: int, *, shared: bool) -> tuple[float, float]:
    """(Mean time of a transfer, its mean slowdown), in service times, where they share the link or queue."""
    link = {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"}
    took: list[tuple[int, int]] = []
    free = [*range(2000)]
    draw = random.Random(7)

    def one(sim: Any, size: int) -> Proc:
        channel = free.pop() if shared else 0
        done = yield sim.transfer(0, 1, size, channel=channel)
        if shared:
            free.append(channel)
        took.append((done.took_ps, size))

    def arrivals(sim: Any) -> Proc:
        for _ in range(count):
            yield sim.timeout(round(draw.expovariate(LOAD / SERVICE_PS)))
            sim.process(one(sim, size(draw)))

    with cosim.open({"topology": link, "network": "fair_share"}) as sim:
        sim.process(arrivals(sim))
        sim.run()
    assert len(took) == count
    mean = sum(time for time, _ in took) / count / SERVICE_PS
    return mean, sum(time / (size * 100) for time, size in took) / count


COUNTS = [pytest.param(8_000, 0.1), pytest.param(100_000, 0.03, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("count", "close"), COUNTS)
@pytest.mark.parametrize(
    ("size", "waits"), [(fixed, LOAD / (2 * (1 - LOAD))), (exponential, LOAD / (1 - LOAD))]
)
def test_transfers_in_order_wait_as_in_a_queue(
    size: Callable[[random.Random], int], waits: float, count: int, close: float
) -> None:
    mean, _ = slowdowns(size, count, shared=False)
    assert mean == pytest.approx(1 + waits, rel=close)


@pytest.mark.parametrize(("count", "close"), COUNTS)
@pytest.mark.parametrize("size", [fixed, exponential, pareto])
def test_transfers_that_share_slow_down_by_the_load_alone(
    size: Callable[[random.Random], int], count: int, close: float
) -> None:
    _, slowdown = slowdowns(size, count, shared=True)
    assert slowdown == pytest.approx(1 / (1 - LOAD), rel=close)
