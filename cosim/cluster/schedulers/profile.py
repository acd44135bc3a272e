"""A job's profile alone: what a scheduler knows of it, in ranks, whatever endpoints it will sit on.

Measured by running the job by itself (:mod:`cosim.experiment.profiles`). How long a message takes is taken to
be the same elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cosim.cluster.schedulers.demand import Demand, rolled
from cosim.topology.graph import F64, I32, I64, Topology

UNEVEN = 0.1
"""Iterations alone that differ by more than this part of their mean: not a periodic job."""


@dataclass(frozen=True, eq=False)
class JobProfile:
    """One iteration of a job by itself.

    Attributes
    ----------
    num_ranks
        GPUs that it takes.
    period_ps
        How long the iteration took.
    work_ps
        What an iteration computes: GPU-time, all ranks together.
    src, dst
        int32[M]: ranks between which each message of the iteration went.
    size_bytes, start_ps, end_ps
        int64[M]: bytes, and when it was under way, from the iteration's start.
    unevenness
        (longest - shortest) / mean of the iterations after the first; 0 where there is one.
    """

    num_ranks: int
    period_ps: int
    work_ps: int
    src: I32
    dst: I32
    size_bytes: I64
    start_ps: I64
    end_ps: I64
    unevenness: float = 0.0

    @cached_property
    def pairs(self) -> tuple[I32, I64]:
        """Pairs of ranks that talk, int32[2, P], and the pair of each message, int64[M]."""
        found, which = np.unique(np.stack([self.src, self.dst]), axis=1, return_inverse=True)
        return found, which.reshape(-1)

    @cached_property
    def communicates(self) -> float:
        """Share of the period in which a message is under way."""
        under_way = np.where(self.end_ps > self.start_ps, 1.0, 0.0)
        demand = rolled(self.start_ps, self.end_ps, under_way, self.period_ps)
        return float(np.diff(demand.edges_ps)[demand.rate_bps > 0].sum()) / max(self.period_ps, 1)

    @property
    def sends(self) -> bool:
        """It has something to send."""
        return bool(self.size_bytes.any())

    @property
    def is_periodic(self) -> bool:
        """Its iterations take about the same time each."""
        return self.unevenness <= UNEVEN


@dataclass(frozen=True, eq=False)
class Placed:
    """A job on endpoints, as a scheduler sees it: its ``number`` and name, its profile, ``endpoints`` by
    rank.
    """

    number: int
    name: str
    profile: JobProfile
    endpoints: I32
    _demands: dict[int, Demand] = field(default_factory=dict, repr=False)
    _found: list[Any] = field(default_factory=list, repr=False)

    def link_bytes(self, topology: Topology) -> F64:
        """float64[links]: bytes that an iteration puts on each link, by the topology's routing."""
        ptr, links, which = self._pairs(topology)
        sent = np.zeros(topology.num_links)
        of_pair = np.bincount(which, self.profile.size_bytes, minlength=len(ptr) - 1)
        np.add.at(sent, links, np.repeat(of_pair, np.diff(ptr)))
        return sent

    def demand(self, topology: Topology, link: int) -> Demand:
        """What it wants of a link over its period."""
        ptr, links, which = self._pairs(topology)
        if link not in self._demands:
            goes = np.zeros(len(ptr) - 1, np.bool_)
            goes[np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))[links == link]] = True
            mine = goes[which] & (self.profile.end_ps > self.profile.start_ps)
            start, end = self.profile.start_ps[mine], self.profile.end_ps[mine]
            rate = self.profile.size_bytes[mine] * 8e12 / (end - start)
            most = float(topology.link_rate_bps[link])
            self._demands[link] = rolled(start, end, rate, self.profile.period_ps, most)
        return self._demands[link]

    def _pairs(self, topology: Topology) -> tuple[I64, I32, I64]:
        """(ptr, links): paths of each pair of ranks that talk; the pair of each message. Found once."""
        if not self._found or self._found[0] is not topology:
            pairs, which = self.profile.pairs
            src, dst = (np.ascontiguousarray(self.endpoints[column], np.int32) for column in pairs)
            self._demands.clear()
            self._found[:] = [topology, *topology.paths(src, dst, np.zeros(len(src), np.int32)), which]
        ptr, links, which = self._found[1:]
        return ptr, links, which
