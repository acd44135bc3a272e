"""Periods of a signal over time, by autocorrelation; several jobs in one signal are told apart.

A lag is judged at its own resolution, a 12th of it, so that jitter of some percent doesn't hide it. The
correlation at a lag is Pearson's, of what both ends of the overlap are; it is the confidence, too. A lag
whose multiples correlate better, at the same resolution, is a part of the period. The period is, of all
others, the lag whose correlation is highest after two standard errors (Fisher's z) are taken off, or the
shortest part of it that correlates nearly as well. It is then read off a large multiple of it, where the
same error weighs less.

A common multiple of two jobs' periods correlates best of all. Then the mean course over it has only multiples
of two numbers among its harmonics, and these are the jobs. After that the mean course is taken away, and what
is left is searched again.

Not found: a period of which fewer than two fit, or over 1,000, and one under a third of its variance. A
signal that varies by under a millionth of its mean is constant: what is left is rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_PER_LAG = 12
_OVERLAP = 3
_FEWEST_PERIODS = 2
_MOST_PERIODS = 1000
_LEAST = 0.3
_SURE = 0.85
_MOST_JOBS = 4
_MOST_MULTIPLES = 32
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Period:
    """A period in bins of the signal, the correlation at it (1: exact repetition), and the jitter: the
    standard deviation of the distance between two repetitions, over the period.
    """

    bins: float
    confidence: float
    jitter: float


def find_periods(signal: F64) -> list[Period]:
    """Periods in ``signal``, float64[bins], the strongest first."""
    if not len(signal) or signal.std() <= _ROUNDING * np.abs(signal).mean():
        return []
    left = signal - signal.mean()
    whole = float((left**2).sum())
    found: list[Period] = []
    while len(found) < _MOST_JOBS and float((left**2).sum()) > 0.1 * whole:
        one = _strongest(left, [period.bins for period in found])
        if one is None or any(_related(one.bins, period.bins) for period in found):
            break
        jobs = _jobs_in(left, one.bins, one.confidence)
        found += [Period(bins, one.confidence, _jitter(left, bins)) for bins in jobs]
        left = left - _mean_course(left, one.bins)
    return found


def _strongest(signal: F64, known: list[float]) -> Period | None:
    found = [one for one in _candidates(signal) if not any(_related(one[0], other) for other in known)]
    if not found:
        return None
    longest, most, _ = max(found, key=lambda one: one[2])
    parts = [
        (lag, strength)
        for lag, strength, _ in found
        if lag <= longest and _related(longest, lag) and strength >= min(0.9 * most, 3 * most - 2)
    ]
    return _refined(signal, *min(parts))


def _related(lag: float, known: float) -> bool:
    """Whether one is a whole multiple of the other, within some percent."""
    ratio = max(lag, known) / min(lag, known)
    return abs(ratio - round(ratio)) < 0.04 * ratio


def _candidates(signal: F64) -> list[tuple[float, float, float]]:
    """Lags at which the signal is most like itself, each octave at its own resolution: (lag, correlation,
    Fisher's z of this less two standard errors).
    """
    longest = len(signal) / _FEWEST_PERIODS
    lag = max(len(signal) / _MOST_PERIODS, 4.0)
    found = []
    while lag < longest:
        # Windows overlap, so that where a period falls between them matters less.
        width = max(1, int(lag / _PER_LAG / _OVERLAP))
        coarse = np.convolve(_widened(signal, width), np.ones(_OVERLAP if width > 1 else 1), "valid")
        correlation = correlations(coarse)
        last = min(int(2 * lag / width) + 1, int(longest / width * 1.001))
        lowest = np.minimum.accumulate(correlation)
        for at in range(max(2, int(lag / width)), min(last + 1, len(correlation) - 1)):
            here = correlation[at]
            error = np.sqrt(_OVERLAP / (len(coarse) - at))
            enough = min(max(_LEAST, 5 * error), _SURE)
            peak = here >= correlation[at - 1] and here >= correlation[at + 1]
            if not peak or here < enough or lowest[at] > here - 0.2:
                continue
            tip = at + _tip(correlation, at)
            best = _best_multiple(correlation, tip, int(longest / width))
            # Noise, of which 1 - best is a measure, lets a multiple be better by chance.
            if here >= min(0.9 * best, 3 * best - 2):
                sure = np.arctanh(min(here, 0.999)) - 2 * error
                found.append((tip * width, float(here), float(sure)))
        lag *= 2
    return found


def _best_multiple(correlation: F64, at: float, last: int) -> float:
    """The best correlation at 2, 3 ... times a lag."""
    most = min(int(last / at), _MOST_MULTIPLES)
    tips = [_peak_near(correlation, step * at, 0.5 * step) for step in range(2, most + 1)]
    return max((tip[1] for tip in tips if tip is not None), default=0.0)


def _widened(signal: F64, width: int) -> F64:
    whole = len(signal) // width * width
    return np.asarray(signal[:whole].reshape(-1, width).sum(axis=1), np.float64)


def correlations(signal: F64) -> F64:
    """Pearson's correlation of the signal with itself, at lags up to three quarters of it: float64[lags]."""
    count = len(signal)
    size = 1 << (2 * count - 1).bit_length()
    centred = signal - signal.mean()
    spectrum = np.fft.rfft(centred, size)
    lags = np.arange(max(3 * count // 4, 1))
    products = np.fft.irfft(np.abs(spectrum) ** 2, size)[: len(lags)]
    sums, squares = (np.append(0.0, np.cumsum(power)) for power in (centred, centred**2))
    overlap = count - lags
    head, tail = sums[overlap], sums[count] - sums[lags]
    head_power = squares[overlap] - head**2 / overlap
    tail_power = squares[count] - squares[lags] - tail**2 / overlap
    # Where next to nothing of the whole variance overlaps, nothing is told.
    least = 1e-9 * squares[count]
    scale = np.sqrt(np.maximum(head_power, 0) * np.maximum(tail_power, 0))
    return np.where(scale > least, (products - head * tail / overlap) / np.maximum(scale, least or 1.0), 0.0)


def _tip(values: F64, at: int) -> float:
    """Where the parabola through three values has its top, from the middle one: -0.5 to 0.5."""
    before, here, after = values[at - 1 : at + 2]
    bend = before - 2 * here + after
    return float(np.clip(0.5 * (before - after) / bend, -0.5, 0.5)) if bend < 0 else 0.0


def _refined(signal: F64, lag: float, strength: float) -> Period:
    """The period off the largest of its multiples, doubled step by step, that still correlates."""
    best, multiple, most = lag, 1, strength
    for fine in sorted({max(1, int(lag / parts)) for parts in (_PER_LAG, 48, 256)}, reverse=True):
        coarse = _widened(signal, fine)
        correlation = correlations(coarse)
        step = multiple
        while step * best <= len(signal) / 2 * 1.001:
            found = _peak_near(correlation, step * best / fine, best / fine / 12)
            if found is None or found[1] < 0.6 * strength:
                break
            best, multiple = found[0] * fine / step, step
            most = max(most, found[1])
            step *= 2
    return Period(best, most, 0.0)


def _peak_near(correlation: F64, at: float, within: float) -> tuple[float, float] | None:
    first = max(1, round(at - max(within, 1)))
    last = min(len(correlation) - 2, round(at + max(within, 1)))
    if last < first:
        return None
    top = first + int(np.argmax(correlation[first : last + 1]))
    return top + _tip(correlation, top), float(correlation[top])


def _places(signal: F64, period: float, per_period: int) -> NDArray[np.int64]:
    phase = (np.arange(len(signal)) + 0.5) / period % 1.0
    return np.minimum((phase * per_period).astype(np.int64), per_period - 1)


def _profile(signal: F64, period: float, per_period: int) -> F64:
    place = _places(signal, period, per_period)
    sums = np.bincount(place, signal, minlength=per_period)
    return np.asarray(sums / np.maximum(np.bincount(place, minlength=per_period), 1), np.float64)


def _mean_course(signal: F64, period: float) -> F64:
    per_period = max(4, min(64, int(period)))
    return np.asarray(_profile(signal, period, per_period)[_places(signal, period, per_period)], np.float64)


def _jobs_in(signal: F64, period: float, confidence: float) -> list[float]:
    """The period, or those of two jobs of which it is a common multiple; where jitter has made a multiple
    more like itself than the period is, the part that has the power.
    """
    per_period = max(4, min(192, int(period)))
    power = np.abs(np.fft.rfft(_profile(signal, period, per_period))[1:25]) ** 2
    number = np.arange(1, len(power) + 1)
    whole = float(power.sum())
    if not whole:
        return [period]
    exact = confidence >= 0.95
    for part in range(8, 1, -1):
        if not exact and power[number % part == 0].sum() > 0.8 * whole:
            return [_tuned(signal, period / part)]
    for a in range(2, 7):
        for b in range(a + 1, 8):
            of_a, of_b = number % a == 0, number % b == 0
            if gcd(a, b) != 1 or power[of_a | of_b].sum() < 0.9 * whole:
                continue
            own = power[of_a & ~of_b].sum(), power[of_b & ~of_a].sum()
            if min(own) > 0.08 * whole:
                return [_tuned(signal, period / a), _tuned(signal, period / b)]
    return [period if exact else _tuned(signal, period)]


def _tuned(signal: F64, period: float) -> float:
    """The period, to two percent, at which the signal's first harmonic is strongest."""
    tries = period * np.linspace(0.98, 1.02, 161)
    coarse = _widened(signal, width := max(1, int(period / 24)))
    at = (np.arange(len(coarse)) + 0.5) * width
    power = [abs(np.exp(-2j * np.pi * at / one) @ coarse) for one in tries]
    return float(tries[int(np.argmax(power))])


def _jitter(signal: F64, period: float) -> float:
    """How far each repetition is from where the mean course would have it, for the distance between two, by
    the first four harmonics, in 256ths of the period.
    """
    per_period = 256
    repetitions = int(len(signal) / period)
    if repetitions < 3 or period < 8:
        return 0.0
    course = np.fft.rfft(_profile(signal, period, min(per_period, int(period))))[:5]
    course[0] = 0
    shifts = []
    for number in range(repetitions):
        window = signal[round(number * period) : round((number + 1) * period)]
        match = np.fft.irfft(np.fft.rfft(window)[: len(course)] * np.conj(course), per_period)
        shift = int(np.argmax(match))
        shifts.append((shift - per_period if shift > per_period // 2 else shift) / per_period)
    return float(np.std(np.diff(shifts)))
