"""One link that transfers come to at random, against queueing theory.

Transfer by transfer: in order, each waits as Lindley's recursion says (D. V. Lindley, "The theory of queues
with a single server", 1952, doi:10.1017/S0305004100027638), to the picosecond; where they share, each takes
as long as the virtual time of processor sharing says (E. G. Coffman, R. R. Muntz, H. Trotter, "Waiting time
distributions for processor-sharing systems", 1970, doi:10.1145/321556.321568).

In the mean: Kleinrock, Queueing Systems I (1975): M/D/1 and M/M/1 wait ``rho / (2 (1 - rho))`` and
``rho / (1 - rho)`` service times; under processor sharing the mean slowdown is ``1 / (1 - rho)``, whatever
the sizes. A mean of 100,000 transfers is off by 3 % itself, one time in three. So it is corrected by what
chance did: the mean of the same draws by the recursion, which differs from what is expected by chance alone,
is a control variate; what is expected of it is estimated from many more draws. The standard error of the
whole is computed, and 2 % is at least three of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest
import simpy
from numpy.typing import NDArray

import cosim

Proc = Generator[simpy.Event, Any, Any]
F64 = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], F64]
MEAN = 100_000  # bytes, which take 10 us at 80 Gbps
BYTE_PS = 100
SERVICE_PS = MEAN * BYTE_PS
LOAD = 0.8
BATCHES = 40


def fixed(draw: np.random.Generator, count: int) -> F64:
    return np.full(count, float(MEAN))


def exponential(draw: np.random.Generator, count: int) -> F64:
    return np.maximum(1, draw.exponential(MEAN, count).round())


def pareto(draw: np.random.Generator, count: int) -> F64:
    return np.maximum(1, ((1 + draw.pareto(2.5, count)) * MEAN * 1.5 / 2.5).round())


def drawn(size: Draw, count: int, seed: int) -> tuple[F64, F64]:
    """Gaps before transfers, ps, and their sizes, bytes: whole numbers."""
    draw = np.random.default_rng(seed)
    return draw.exponential(SERVICE_PS / LOAD, count).round(), size(draw, count)


def simulated(gaps: F64, sizes: F64, *, shared: bool) -> F64:
    """How long each transfer takes, ps, where they share the link, or queue."""
    link = {"kind": "ring", "endpoints": 2, "rate": "80Gbps", "latency": "0ns"}
    took = np.zeros(len(gaps))
    free = [*range(2000)]

    def one(sim: Any, number: int, size: int) -> Proc:
        channel = free.pop() if shared else 0
        done = yield sim.transfer(0, 1, size, channel=channel)
        if shared:
            free.append(channel)
        took[number] = done.took_ps

    def arrivals(sim: Any) -> Proc:
        for number, (gap, size) in enumerate(zip(gaps.tolist(), sizes.tolist(), strict=True)):
            yield sim.timeout(int(gap))
            sim.process(one(sim, number, int(size)))

    with cosim.open({"topology": link, "network": "fair_share"}) as sim:
        sim.process(arrivals(sim))
        sim.run()
    return took


def in_order(gaps: F64, sizes: F64) -> F64:
    """Lindley: a transfer waits for what was left when the one before came, less the time since."""
    steps = np.concatenate([[0.0], sizes[:-1] * BYTE_PS - gaps[1:]])
    walk = np.cumsum(steps)
    return np.asarray(walk - np.minimum.accumulate(walk) + sizes * BYTE_PS)


def sharing(gaps: F64, sizes: F64) -> F64:
    """Virtual time goes on at one over the number there; a transfer ends when its size of it has passed."""
    took, arrived = np.zeros(len(gaps)), np.cumsum(gaps)
    there: list[tuple[float, int]] = []
    now = virtual = 0.0
    for number, (at, work) in enumerate(zip(arrived.tolist(), (sizes * BYTE_PS).tolist(), strict=True)):
        while there and (end := now + (there[0][0] - virtual) * len(there)) <= at:
            virtual, which = heapq.heappop(there)
            now = end
            took[which] = now - arrived[which]
        if there:
            virtual += (at - now) / len(there)
        now = at
        heapq.heappush(there, (virtual + work, number))
    while there:
        now += (there[0][0] - virtual) * len(there)
        virtual, which = heapq.heappop(there)
        took[which] = now - arrived[which]
    return took


def mean_and_error(values: F64) -> tuple[float, float]:
    """The mean, and its standard error by means of batches, which hang together little."""
    batches = values[: len(values) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
    return float(values.mean()), float(batches.std(ddof=1) / np.sqrt(BATCHES))


def differences(gaps: F64, sizes: F64, *, shared: bool) -> F64:
    """What is simulated less what the recursion says, ps.

    Ends are whole picoseconds, rounded up: where transfers share, a busy period of thousands of them adds up
    to nanoseconds.
    """
    recursion = sharing if shared else in_order
    found = simulated(gaps, sizes, shared=shared) - recursion(gaps, sizes)
    assert np.abs(found).max() <= (20_000 if shared else 0)
    return found


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("size", [fixed, exponential, pareto])
def test_each_transfer_takes_as_long_as_it_should(size: Draw, shared: bool) -> None:
    differences(*drawn(size, 4_000, 7), shared=shared)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "shared", "expected"),
    [
        (fixed, False, 1 + LOAD / (2 * (1 - LOAD))),
        (exponential, False, 1 + LOAD / (1 - LOAD)),
        (fixed, True, 1 / (1 - LOAD)),
        (exponential, True, 1 / (1 - LOAD)),
        (pareto, True, 1 / (1 - LOAD)),
    ],
)
def test_the_mean_is_that_of_queueing_theory(size: Draw, shared: bool, expected: float) -> None:
    gaps, sizes = drawn(size, 100_000, 11)
    more = drawn(size, 1_500_000 if shared else 10_000_000, 12)
    per = sizes * BYTE_PS if shared else np.full(len(sizes), float(SERVICE_PS))
    per_more = more[1] * BYTE_PS if shared else np.full(len(more[0]), float(SERVICE_PS))
    recursion = sharing if shared else in_order
    rest, rest_error = mean_and_error(differences(gaps, sizes, shared=shared) / per)
    known, known_error = mean_and_error(recursion(*more) / per_more)
    error = float(np.hypot(rest_error, known_error))
    assert 3 * error < 0.02 * expected
    assert rest + known == pytest.approx(expected, rel=0.02)
