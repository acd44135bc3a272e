"""Periods that were put into a signal are found in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cosim.captures.contract import capture_of_rows
from cosim.results.traffic.analysis import analyse_capture
from cosim.results.traffic.periods import find_periods


def bursts(
    period: float, width: float, jitter: float, rng: np.random.Generator, bins: int
) -> tuple[NDArray[np.float64], float]:
    """A signal of bursts, and their mean distance, by least squares."""
    signal = np.zeros(bins)
    number = np.arange(int(bins / period))
    at = number * period + rng.normal(0, jitter * period, len(number))
    for begin in at:
        signal[int(max(begin, 0)) : int(max(begin + width, 0))] += 1
    return signal, float(np.polyfit(number, at, 1)[0])


@pytest.mark.parametrize("seed", range(10))
def test_a_period_with_jitter_is_found(seed: int) -> None:
    signal, mean = bursts(255, 80, 0.05, np.random.default_rng(seed), 5100)
    found = find_periods(signal)
    assert [one.bins for one in found] == [pytest.approx(mean, rel=0.005)]
    assert found[0].confidence > 0.5
    assert 0.02 < found[0].jitter < 0.12


@pytest.mark.parametrize("seed", range(10))
def test_two_jobs_in_one_signal_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, of_first = bursts(255, 80, 0.02, rng, 5100)
    second, of_second = bursts(170, 60, 0.02, rng, 5100)
    found = sorted(one.bins for one in find_periods(first + second))
    assert found == [pytest.approx(of_second, rel=0.006), pytest.approx(of_first, rel=0.006)]


def test_bursts_within_an_iteration_are_not_its_period() -> None:
    one = np.zeros(1000)
    for at in range(0, 640, 80):
        one[at : at + 30] = 1
    found = find_periods(np.tile(one, 6))
    assert found[0].bins == pytest.approx(1000, rel=0.002)
    assert found[0].confidence > 0.99


@pytest.mark.parametrize("seed", range(10))
def test_noise_has_no_period(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert find_periods(rng.exponential(1, 4000)) == []


@pytest.mark.parametrize("signal", [np.zeros(0), np.zeros(5), np.ones(100), np.arange(10.0)])
def test_too_little_has_no_period(signal: NDArray[np.float64]) -> None:
    assert find_periods(signal) == []


def test_rounding_has_no_period() -> None:
    signal = 1e9 + np.tile([0.0, 100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 500)
    assert find_periods(signal) == []
    assert len(find_periods(1e9 + 1e6 * (signal - 1e9))) == 1


@pytest.mark.parametrize("length_ps", [10**12, 33_333, 50_021])
def test_transfers_one_after_the_other_have_no_period(length_ps: int) -> None:
    rows = [(a, b, 4096, at * length_ps, (at + 1) * length_ps) for at in range(2) for a, b in ("ab", "ba")]
    (part,) = analyse_capture(capture_of_rows(Path("x"), "rows", rows)).parts
    assert part.periods == ()
