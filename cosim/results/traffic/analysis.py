"""The analysis of transfers: who sends how much to whom, when, how often, and in which pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.captures.traffic import I32, I64, TrafficCapture, Transfers
from cosim.results.traffic.bytes_over_time import busy_ps, in_bins, joined
from cosim.results.traffic.logged import LoggedAnalysis, analyse_logged
from cosim.results.traffic.patterns import MIXED, Pattern, groups_of, name_pattern
from cosim.results.traffic.periods import find_periods
from cosim.results.traffic.ports import PortAnalysis, analyse_ports
from cosim.results.traffic.rings import CommunicatorAnalysis, analyse_communicators

_BINS = 1 << 15
_FEWEST = 4
"""Transfers, of which a period is looked for."""
_MOST_LAYERS = 8
_SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)
"""Percentiles that are told of distributions."""


@dataclass(frozen=True)
class FoundPeriod:
    """A period of traffic; see :class:`cosim.results.traffic.periods.Period`."""

    period_ps: float
    confidence: float
    jitter: float


@dataclass(frozen=True, eq=False)
class PartAnalysis:
    """A job, or a group of hosts that traffic connects.

    Attributes
    ----------
    name
        The job's, or ``group 1``.
    hosts
        int32: numbers in ``hosts`` of the transfers.
    size_bytes, transfers
        Of all.
    start_ps, end_ps, busy_ps
        When the first transfer began and the last ended; how long at least one was under way.
    periods
        The strongest first.
    bursts, burst_bytes, burst_ps, gap_ps
        Bursts are transfers at most ``gap_ps`` apart: how many, their mean bytes, their mean length.
    sizes, durations
        Percentiles 1, 10, 50, 90 and 99 of bytes and of picoseconds.
    skew
        The most that a host sent, over the mean of the part's hosts.
    patterns
        What groups of hosts do, with most bytes first: (pattern of the first, groups that have it). Bytes and
        the share explained are those of all.
    """

    name: str
    hosts: I32
    size_bytes: int
    transfers: int
    start_ps: int
    end_ps: int
    busy_ps: int
    periods: tuple[FoundPeriod, ...]
    bursts: int
    burst_bytes: float
    burst_ps: float
    gap_ps: int
    sizes: tuple[float, ...]
    durations: tuple[float, ...]
    skew: float
    patterns: tuple[tuple[Pattern, int], ...]


@dataclass(frozen=True, eq=False)
class TrafficAnalysis:
    """What one run or capture says.

    ``pairs`` has int64[pairs, 4]: source, destination, bytes, transfers; hosts are numbers in ``hosts``. Sums
    are exact. Transfers of a host to itself count only where they have bytes.
    """

    name: str
    kind: str
    notes: tuple[str, ...]
    hosts: Sequence[str]
    pairs: I64
    parts: tuple[PartAnalysis, ...]
    transfers: Transfers | None
    ports: PortAnalysis | None
    logged: LoggedAnalysis | None
    communicators: tuple[CommunicatorAnalysis, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all transfers."""
        return int(self.pairs[:, 2].sum())


def analyse_capture(capture: TrafficCapture) -> TrafficAnalysis:
    """Analyse one capture, or a run read as one."""
    found = capture.transfers
    return TrafficAnalysis(
        capture.name,
        capture.kind,
        capture.notes,
        found.hosts if found is not None else (),
        pair_bytes(found) if found is not None else np.zeros((0, 4), np.int64),
        tuple(_parts(found)) if found is not None else (),
        found,
        analyse_ports(capture.ports) if capture.ports else None,
        analyse_logged(capture.collectives) if capture.collectives is not None else None,
        analyse_communicators(capture.communicators),
    )


def pair_bytes(transfers: Transfers) -> I64:
    """int64[pairs, 4]: source, destination, bytes, transfers; in order of source, then destination."""
    count = len(transfers.hosts)
    key = transfers.src.astype(np.int64) * count + transfers.dst
    pairs, place = np.unique(key, return_inverse=True)
    total = np.zeros(len(pairs), np.int64)
    np.add.at(total, place, transfers.size_bytes)
    times = np.bincount(place, minlength=len(pairs))
    return np.stack([pairs // max(count, 1), pairs % max(count, 1), total, times], axis=1)


def _parts(transfers: Transfers) -> list[PartAnalysis]:
    real = transfers.only((transfers.src != transfers.dst) | (transfers.size_bytes > 0))
    parts = []
    for number, name in enumerate(real.parts):
        chosen = real.only(real.part == number)
        if len(chosen):
            parts.append(_part(name, chosen))
    untold = real.only(real.part < 0)
    group = np.full(len(untold.hosts), -1, np.int64)
    for number, hosts in enumerate(groups_of(untold.src, untold.dst)):
        group[hosts] = number
    of = group[untold.src] if len(untold) else np.zeros(0, np.int64)
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(int(group.max(initial=-1)) + 2))
    for number in range(len(bounds) - 1):
        inside = order[bounds[number] : bounds[number + 1]]
        parts.append(_part(f"group {number + 1}", untold.only(inside)))
    return parts


def _part(name: str, found: Transfers) -> PartAnalysis:
    start, end = int(found.start_ps.min()), int(found.end_ps.max())
    periods = _periods(found, start, end)
    gap = int(periods[0].period_ps / 200) if periods else (end - start) // 1000
    first, last = joined(found.start_ps, found.end_ps, gap)
    hosts = np.unique(np.append(found.src, found.dst))
    sent = np.bincount(found.src, found.size_bytes)
    total = int(found.size_bytes.sum())
    return PartAnalysis(
        name,
        hosts,
        total,
        len(found),
        start,
        end,
        busy_ps(found.start_ps, found.end_ps),
        periods,
        len(first),
        total / len(first),
        float((last - first).mean()),
        gap,
        tuple(np.quantile(found.size_bytes, _SHARES).tolist()),
        tuple(np.quantile(found.end_ps - found.start_ps, _SHARES).tolist()),
        float(sent.max() * len(hosts) / total) if total else 1.0,
        tuple(_patterns(found)),
    )


def _periods(found: Transfers, start: int, end: int) -> tuple[FoundPeriod, ...]:
    if end - start < _BINS or len(found) < _FEWEST:
        return ()
    edges = np.linspace(start, end, _BINS + 1).astype(np.int64)
    width = (end - start) / _BINS
    # Edges are whole picoseconds, so bins differ in width; their rates don't.
    periods = find_periods(in_bins(found, edges) / np.diff(edges))
    return tuple(FoundPeriod(one.bins * width, one.confidence, one.jitter) for one in periods)


def _patterns(found: Transfers) -> list[tuple[Pattern, int]]:
    """Patterns of each operation's groups, where operations are told, else of each group's whole traffic."""
    apart = found.only(found.src != found.dst)
    alike: dict[tuple[str, int], list[Pattern]] = {}
    for step in _split(apart.step):
        for pattern in _of_groups(apart.only(step)):
            alike.setdefault((pattern.name, len(pattern.order)), []).append(pattern)
    result = []
    for (name, _), same in alike.items():
        size = sum(one.size_bytes for one in same)
        explained = sum(one.size_bytes * one.explained for one in same) / max(size, 1)
        groups = {tuple(sorted(one.order.tolist())) for one in same}
        result.append((Pattern(name, same[0].order, explained, size), len(groups)))
    return sorted(result, key=lambda one: (-one[0].size_bytes, one[0].name))


def _split(step: I64) -> list[NDArray[np.intp]]:
    """Places of equal values."""
    order = np.argsort(step, kind="stable")
    _, first = np.unique(step[order], return_index=True)
    return np.split(order, first[1:]) if len(order) else []


def _of_groups(found: Transfers) -> list[Pattern]:
    groups = groups_of(found.src, found.dst)
    number = np.full(len(found.hosts), -1, np.int64)
    for at, hosts in enumerate(groups):
        number[hosts] = at
    named = []
    for inside in _split(number[found.src]):
        one = found.only(inside)
        pattern = name_pattern(one.src, one.dst, one.size_bytes)
        layers = _layers(one) if pattern.name == MIXED else []
        named += [part for layer in layers for part in _of_groups(layer)] if len(layers) > 1 else [pattern]
    return named


def _layers(found: Transfers) -> list[Transfers]:
    """A mix's transfers, by how much their pairs have in all: pairs of one collective have alike."""
    key = found.src.astype(np.int64) * len(found.hosts) + found.dst
    _, place = np.unique(key, return_inverse=True)
    total = np.bincount(place, found.size_bytes)
    levels = np.sort(total)
    layer = np.append(0, np.cumsum(levels[1:] > 1.02 * levels[:-1]))
    of = layer[np.searchsorted(levels, total)][place]
    return [found.only(inside) for inside in _split(of)] if layer[-1] < _MOST_LAYERS else []
