"""Demand: what a job wants of a link over its period, constant between edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cosim.topology.graph import F64, I64

MOST_PHASES = 8
"""Phases of a demand; where there are more, those that differ least are made one, bytes kept."""
_FINE = 128


@dataclass(frozen=True, eq=False)
class Demand:
    """``rate_bps[k]`` from ``edges_ps[k]`` to ``edges_ps[k + 1]``: float64[n], int64[n + 1] from 0 to the
    period.
    """

    edges_ps: I64
    rate_bps: F64

    @property
    def period_ps(self) -> int:
        """After which it repeats."""
        return int(self.edges_ps[-1])

    @cached_property
    def most_bps(self) -> float:
        """The highest rate."""
        return float(self.rate_bps.max())

    def stretched(self, period_ps: int) -> Demand:
        """With idle time at its end, so that it repeats later."""
        if period_ps <= self.period_ps:
            return self
        return Demand(np.append(self.edges_ps, period_ps), np.append(self.rate_bps, 0.0))


def rolled(start_ps: I64, end_ps: I64, rate_bps: F64, period_ps: int, most_bps: float = np.inf) -> Demand:
    """Intervals with a rate each, rolled on a period and added up, at most ``most_bps``."""
    edges, rate = wrapped(start_ps, end_ps, rate_bps, max(int(period_ps), 1))
    rate[rate < 1e-6 * rate.max(initial=0.0)] = 0.0
    return _simple(edges, np.minimum(rate, most_bps))


def wrapped(start_ps: I64, end_ps: I64, rate_bps: F64, period_ps: int) -> tuple[I64, F64]:
    """(Edges from 0 to the period, int64[n + 1]; the sum between them, float64[n]) of intervals with a rate
    each, rolled on a period.
    """
    length = end_ps - start_ps
    rounds = length // period_ps
    rest = length % period_ps
    begin = start_ps % period_ps
    over = np.maximum(begin + rest - period_ps, 0)
    edges = np.unique(np.concatenate([[0, period_ps], begin, begin + rest - over, over]))
    change = np.zeros(len(edges))
    change[0] = float((rate_bps * rounds).sum())
    np.add.at(change, np.searchsorted(edges, begin), rate_bps)
    np.subtract.at(change, np.searchsorted(edges, begin + rest - over), rate_bps)
    wraps = over > 0
    change[0] += rate_bps[wraps].sum()
    np.subtract.at(change, np.searchsorted(edges, over[wraps]), rate_bps[wraps])
    return edges, np.cumsum(change)[:-1]


def _simple(edges: I64, rate: F64) -> Demand:
    """At most so many phases."""
    if len(rate) > _FINE:  # each of equal length, before they are compared
        sent = np.concatenate([[0.0], np.cumsum(rate * np.diff(edges))])
        even = np.linspace(0, int(edges[-1]), _FINE + 1).astype(np.int64)
        rate = np.diff(np.interp(even, edges, sent)) / np.maximum(np.diff(even), 1)
        edges = even
    while len(rate) > 1:
        length = np.diff(edges)
        apart = np.abs(np.diff(rate)) * np.minimum(length[1:], length[:-1])
        at = int(apart.argmin())
        if len(rate) <= MOST_PHASES and apart[at] > 1e-9 * float((rate * length).sum()):
            break
        both = (rate[at] * length[at] + rate[at + 1] * length[at + 1]) / (length[at] + length[at + 1])
        rate = np.concatenate([rate[:at], [both], rate[at + 2 :]])
        edges = np.delete(edges, at + 1)
    return Demand(edges, rate)
