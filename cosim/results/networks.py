"""Several networks on the same designs: times, errors against one of them, and the order of the designs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.doubts import in_a_line
from cosim.results.render.page import Page
from cosim.results.study import StudyResult
from cosim.results.summary import Summary


@dataclass(frozen=True, eq=False)
class DesignResult:
    """What one network says of one design."""

    design: str
    network: str
    summary: Summary

    @property
    def time_ps(self) -> float:
        """Mean iteration, over all jobs; of a run without one, its length."""
        means = [job.iteration_mean_ps for job in self.summary.jobs if job.iteration_mean_ps is not None]
        return float(np.mean(means)) if means else float(self.summary.end_ps)


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=lambda k: values[k])
    found = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for k in order[first : last + 1]:
            found[k] = (first + last) / 2 + 1
        first = last + 1
    return found


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None where one side has no order at all."""
    x, y = np.array(ranks(a)), np.array(ranks(b))
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


@dataclass(frozen=True)
class CollectiveError:
    """Mean time of one collective of one design, by network; ``errors`` are against the last."""

    design: str
    name: str
    size_bytes: int
    times_ps: tuple[float, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """(time / last network's time) - 1."""
        last = self.times_ps[-1]
        return tuple(time / last - 1 if last else 0.0 for time in self.times_ps)


@dataclass(frozen=True, eq=False, repr=False)
class NetworkComparison(StudyResult):
    """Every design on each of several networks: what the study ``networks`` finds.

    It prints as the page of ``cosim run --network``, and shows itself in a notebook.

    Attributes
    ----------
    networks
        What they are called; errors are against the last of them.
    results
        The summary of each design on each network.
    interrupted
        Empty, or why designs are missing.

    Examples
    --------
    >>> import cosim
    >>> vary = {"topology.latency": ["1us", "2us"]}
    >>> asked = {"kind": "networks", "networks": "congestion_unaware,fair_share", "vary": vary}
    >>> found = cosim.study(asked, '''
    ... topology: {kind: switch, endpoints: 4, rate: 80Gbps, latency: 1us}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> found.designs
    ('topology.latency=1us', 'topology.latency=2us')
    >>> round(found.correlation("congestion_unaware"), 3)  # of the designs' order, with fair_share's
    1.0
    """

    networks: tuple[str, ...]
    results: tuple[DesignResult, ...]
    interrupted: str = ""

    @property
    def designs(self) -> tuple[str, ...]:
        """In the order asked."""
        return tuple(dict.fromkeys(result.design for result in self.results))

    def times(self, network: str) -> list[float]:
        """The mean iteration of each design on a network, picoseconds."""
        return [result.time_ps for result in self.results if result.network == network]

    def collectives(self) -> list[CollectiveError]:
        """Every collective (kind, algorithm, ranks, size) of every design."""
        found: dict[tuple[str, str, int], dict[str, list[float]]] = {}
        for result in self.results:
            for one in result.summary.collectives:
                name = f"{one.collective} ({one.algorithm}, {one.group_size} ranks)"
                key = (result.design, name, one.size_bytes)
                found.setdefault(key, {}).setdefault(result.network, []).append(one.mean_ps)
        return [
            CollectiveError(*key, tuple(float(np.mean(by[network])) for network in self.networks))
            for key, by in found.items()
            if len(by) == len(self.networks)
        ]

    def correlation(self, network: str) -> float | None:
        """Spearman's, of the designs' times, with the last network."""
        return spearman(self.times(network), self.times(self.networks[-1]))

    def disagreements(self, network: str) -> list[tuple[str, str]]:
        """Pairs of designs (better, worse) by the last network, which this one has the other way round."""
        mine, last = self.times(network), self.times(self.networks[-1])
        names = self.designs
        return [
            (names[i], names[j])
            for i in range(len(names))
            for j in range(len(names))
            if last[i] < last[j] and mine[i] > mine[j]
        ]

    @property
    def doubtful(self) -> list[tuple[DesignResult, str]]:
        """Results that can be wrong by more than their interval, and why."""
        return [(one, in_a_line(one.summary.doubts)) for one in self.results if one.summary.doubts]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "networks": list(self.networks),
            "designs": [
                {"design": name, "time_ps": {n: self.times(n)[k] for n in self.networks}}
                for k, name in enumerate(self.designs)
            ],
            "doubtful": [
                {"design": one.design, "network": one.network, "why": why} for one, why in self.doubtful
            ],
            "collectives": [
                {
                    "design": one.design,
                    "collective": one.name,
                    "size_bytes": one.size_bytes,
                    "time_ps": dict(zip(self.networks, one.times_ps, strict=True)),
                    "error": dict(zip(self.networks, one.errors, strict=True)),
                }
                for one in self.collectives()
            ],
            "spearman": {network: self.correlation(network) for network in self.networks[:-1]},
            "disagreements": {
                network: [list(pair) for pair in self.disagreements(network)]
                for network in self.networks[:-1]
            },
        }

    def __repr__(self) -> str:
        designs = f"{len(self.designs)} design{'' if len(self.designs) == 1 else 's'}"
        return f"<NetworkComparison of {', '.join(self.networks)}: {designs}>"

    def page(self) -> Page:
        """The sections of the page, for text and for HTML."""
        from cosim.results.render.network_page import network_page

        return network_page(self)
