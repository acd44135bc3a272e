"""Rates of a pipelined collective's dimensions: best in proportion to what each carries (LIBRA, 2109.11762).

A hierarchical all-reduce of S bytes sends V_i = 2 S (n_i - 1) / (n_1 ... n_i) over dimension i. Cut into many
chunks all dimensions work at once, so that it takes max V_i / B_i, which for rates B_i that add up to B is
least, sum V_i / B, where B_i = B V_i / sum V.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

import cosim

SIZE, RATE = 64_000_000, 400.0
GIB = 2**30


def volumes(sizes: Sequence[int]) -> list[float]:
    """Bytes that a rank sends over each dimension."""
    return [2 * SIZE * (n - 1) / math.prod(sizes[: place + 1]) for place, n in enumerate(sizes)]


def took_ps(sizes: Sequence[int], rates: Sequence[float], splits: int) -> int:
    """What the simulator says; ASTRA-sim's notation counts 2^30 bytes a second."""
    scenario = {
        "topology": {
            "kind": "astra_sim",
            "topology": ["Switch"] * len(sizes),
            "npus_count": list(sizes),
            "bandwidth": list(rates),
            "latency": [0] * len(sizes),
        },
        "network": "fair_share",
        "collectives": {"all_reduce": ["direct"] * len(sizes), "splits": splits, "active_chunks": 4},
        "jobs": [
            {
                "workload": {
                    "kind": "collective",
                    "collective": "all_reduce",
                    "size": SIZE,
                    "ranks": math.prod(sizes),
                }
            }
        ],
    }
    return cosim.run(scenario).records.end_ps


def least(function: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Where a function with one valley is least, by golden section."""
    golden = (math.sqrt(5) - 1) / 2
    a, b = high - golden * (high - low), low + golden * (high - low)
    of_a, of_b = function(a), function(b)
    for _ in range(steps):
        if of_a < of_b:
            high, b, of_b = b, a, of_a
            a = high - golden * (high - low)
            of_a = function(a)
        else:
            low, a, of_a = a, b, of_b
            b = low + golden * (high - low)
            of_b = function(b)
    return (low + high) / 2


@pytest.mark.parametrize("sizes", [(2, 4), (2, 2)])
def test_an_optimiser_finds_rates_in_proportion_to_volumes(sizes: tuple[int, int]) -> None:
    first = volumes(sizes)[0] / sum(volumes(sizes))

    def took(share: float) -> int:
        return took_ps(sizes, [RATE * share, RATE * (1 - share)], 1024)

    found = least(took, 0.9 * first, 1.1 * first, 10)
    assert found == pytest.approx(first, abs=1e-3)  # of the total rate
    assert took(first) == pytest.approx(took(found), rel=1e-3)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (4, 2, 2), (2, 4, 2)])
def test_no_other_rates_could_be_faster_by_more_than_the_pipeline_takes_to_fill(
    sizes: tuple[int, ...],
) -> None:
    every = volumes(sizes)
    rates = [RATE * volume / sum(every) for volume in every]
    bound = sum(every) / (RATE * GIB) * 1e12  # whatever the rates: the mean of V_i / B_i, weighed by B_i
    assert bound <= took_ps(sizes, rates, 800) <= 1.005 * bound
    equal = took_ps(sizes, [RATE / len(sizes)] * len(sizes), 100)
    assert equal == pytest.approx(max(every) / (RATE / len(sizes) * GIB) * 1e12, rel=0.03)
