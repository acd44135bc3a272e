"""Counters of ports: rates, gaps, and which ports are one job's, since these have equal rates.

A sample's bytes are spread over the time since the port's sample before, however long that is. A gap is an
interval of over ten times the median: means leave it out, since a job may have begun within. Ports are one
job's where their mean rates, in and out, differ by less than a thousandth.

A job's period is looked for in the sum of its ports. The sampler's own period, which is found in the
distances between samples, is no job's. Periods under eight median distances can't be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.captures.traffic import I64, PortCounters
from cosim.results.traffic.periods import Period, find_periods
from cosim.units import PS_PER_S

F64 = NDArray[np.float64]

_GAP = 10
_SPREAD = 1e-3
_FEWEST = 3
_LEAST_BPS = 1e9
_MOST_BINS = 1 << 16


@dataclass(frozen=True, eq=False)
class PortGroup:
    """Ports of equal mean rates: names, mean rate in and out, the widest relative spread of one of these,
    and the periods of their sum with the bins' width.
    """

    ports: tuple[str, ...]
    in_bps: float
    out_bps: float
    spread: float
    periods: tuple[Period, ...]
    bin_ps: int


@dataclass(frozen=True, eq=False)
class PortAnalysis:
    """What counters say.

    Attributes
    ----------
    names
        Of ports.
    in_bytes, out_bytes
        int64[ports], from the first sample on, gaps included.
    in_bps, out_bps
        float64[ports], means outside gaps.
    in_peak_bps, out_peak_bps
        float64[ports], the highest rates between two samples.
    gap_ps
        The longest gaps, each once for all ports, longest first.
    gap_bytes
        Of all ports, in and out, within gaps.
    median_ps
        Between two samples.
    sampler
        Periods of the distances between samples, in picoseconds.
    groups
        Of equal rates, those with most ports first.
    """

    names: tuple[str, ...]
    in_bytes: I64
    out_bytes: I64
    in_bps: F64
    out_bps: F64
    in_peak_bps: F64
    out_peak_bps: F64
    gap_ps: tuple[int, ...]
    gap_bytes: tuple[int, int]
    median_ps: int
    sampler: tuple[float, ...]
    groups: tuple[PortGroup, ...]

    @property
    def peak_bps(self) -> F64:
        """float64[ports], the highest rate between two samples, either way."""
        return np.maximum(self.in_peak_bps, self.out_peak_bps)

    @property
    def num_busy(self) -> int:
        """Ports with over 1 Gbps, either way."""
        return int((np.maximum(self.in_bps, self.out_bps) > _LEAST_BPS).sum())


def analyse_ports(ports: Sequence[PortCounters]) -> PortAnalysis:
    """Say of ports how much each carried, and which are one job's."""
    ports = [port for port in ports if len(port.at_ps) > 1]
    median = int(np.median(np.concatenate([np.diff(port.at_ps) for port in ports])))
    gaps: dict[tuple[int, int], int] = {}
    sums = np.zeros((len(ports), 2), np.int64)
    in_gaps = np.zeros((len(ports), 2), np.int64)
    rates = np.zeros((len(ports), 4))
    for number, port in enumerate(ports):
        apart = np.diff(port.at_ps)
        moved = np.stack([port.in_bytes[1:], port.out_bytes[1:]], axis=1)
        gap = apart > _GAP * median
        sums[number], in_gaps[number] = moved.sum(axis=0), moved[gap].sum(axis=0)
        seen = max(int(apart[~gap].sum()), 1)
        rates[number, :2] = moved[~gap].sum(axis=0) * 8.0 * PS_PER_S / seen
        rates[number, 2:] = (moved / apart[:, None]).max(axis=0) * 8 * PS_PER_S
        gaps.update({(int(a), int(b)): int(b - a) for a, b in _bounds(port.at_ps, gap)})
    sampler = _sampler_periods(ports, median)
    return PortAnalysis(
        tuple(port.name for port in ports),
        sums[:, 0],
        sums[:, 1],
        rates[:, 0],
        rates[:, 1],
        rates[:, 2],
        rates[:, 3],
        tuple(sorted(gaps.values(), reverse=True)),
        (int(in_gaps[:, 0].sum()), int(in_gaps[:, 1].sum())),
        median,
        sampler,
        tuple(_groups(ports, rates[:, :2], median, sampler)),
    )


def _bounds(at: I64, gap: NDArray[np.bool_]) -> list[tuple[int, int]]:
    where = np.flatnonzero(gap)
    return list(zip(at[where].tolist(), at[where + 1].tolist(), strict=True))


def _groups(
    ports: Sequence[PortCounters], rates: F64, median: int, sampler: tuple[float, ...]
) -> list[PortGroup]:
    """Ports of equal rates over 1 Gbps: the largest set, then the largest of the rest, and so on."""
    left = np.flatnonzero(rates.max(axis=1) > _LEAST_BPS)
    left = left[np.argsort(rates[left, 0], kind="stable")]
    found = []
    while len(left):
        best = max((_equal_to(rates, left, low) for low in range(len(left))), key=len)
        if len(best) < _FEWEST:
            break
        inside = rates[best]
        least = np.maximum(inside.min(axis=0), 1.0)
        spread = float(((inside.max(axis=0) - inside.min(axis=0)) / least).max())
        periods, bin_ps = _periods([ports[one] for one in best.tolist()], median, sampler)
        means = inside.mean(axis=0).tolist()
        names = tuple(sorted(ports[one].name for one in best.tolist()))
        found.append(PortGroup(names, means[0], means[1], spread, periods, bin_ps))
        left = left[~np.isin(left, best)]
    return sorted(found, key=lambda group: (-len(group.ports), -group.in_bps))


def _equal_to(rates: F64, sorted_ports: NDArray[np.int64], low: int) -> NDArray[np.int64]:
    """The ports, from the one at ``low`` on, whose rates in and out are within the spread of one another."""
    into = rates[sorted_ports, 0]
    high = int(np.searchsorted(into, into[low] * (1 + _SPREAD), side="right"))
    window = sorted_ports[low:high]
    window = window[np.argsort(rates[window, 1], kind="stable")]
    out = rates[window, 1]
    ends = np.searchsorted(out, out * (1 + _SPREAD), side="right")
    at = int(np.argmax(ends - np.arange(len(out))))
    return window[at : ends[at]]


def _periods(
    ports: Sequence[PortCounters], median: int, sampler: tuple[float, ...]
) -> tuple[tuple[Period, ...], int]:
    begin = max(int(port.at_ps[0]) for port in ports)
    end = min(int(port.at_ps[-1]) for port in ports)
    # The longest stretch without a gap that all have.
    edges = [begin, end]
    for port in ports:
        edges += [edge for pair in _bounds(port.at_ps, np.diff(port.at_ps) > _GAP * median) for edge in pair]
    edges = sorted({edge for edge in edges if begin <= edge <= end})
    if len(edges) < 2:
        return (), median
    at = int(np.argmax(np.diff(edges)))
    begin, end = edges[at], edges[at + 1]
    bin_ps = max(2 * median, (end - begin) // _MOST_BINS)
    grid = np.arange(begin, end + 1, bin_ps)
    if len(grid) < 16:
        return (), bin_ps
    total = np.zeros(len(grid) - 1)
    for port in ports:
        total += np.diff(np.interp(grid, port.at_ps, np.cumsum(port.in_bytes + port.out_bytes)))
    kept = [
        period
        for period in find_periods(total)
        if not any(abs(period.bins * bin_ps / own - 1) < 0.01 for own in sampler)
    ]
    return tuple(kept), bin_ps


def _sampler_periods(ports: Sequence[PortCounters], median: int) -> tuple[float, ...]:
    """Periods of how far samples lie apart, in picoseconds."""
    longest = max(ports, key=lambda port: len(port.at_ps))
    apart = np.diff(longest.at_ps).astype(np.float64)
    apart = np.minimum(apart, _GAP * median)
    mean = float(apart.mean())
    return tuple(period.bins * mean for period in find_periods(apart) if period.confidence > 0.5)
