"""A job's profile alone: what a scheduler knows of it, in ranks, whatever endpoints it will sit on.

Measured by running the job by itself (:mod:`cosim.experiment.profiles`). How long a message takes is taken to
be the same elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

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
    def pair_bps(self) -> F64:
        """float64[P]: bits that each pair sends in a second, over the period."""
        return np.bincount(self.pairs[1], self.size_bytes) * 8e12 / self.period_ps

    @cached_property
    def communicates(self) -> float:
        """Share of the period in which a message is under way."""
        under_way = np.where(self.end_ps > self.start_ps, 1.0, 0.0)
        demand = rolled(self.start_ps, self.end_ps, under_way, self.period_ps)
        return float(np.diff(demand.edges_ps)[demand.rate_bps > 0].sum()) / max(self.period_ps, 1)

    @cached_property
    def last_ps(self) -> int:
        """When its last message has arrived."""
        return int(self.end_ps.max(initial=0))

    @cached_property
    def sends(self) -> bool:
        """It has something to send."""
        return bool(self.size_bytes.any())

    @property
    def is_periodic(self) -> bool:
        """Its iterations take about the same time each."""
        return self.unevenness <= UNEVEN


@dataclass(eq=False, slots=True)
class _Found:
    """What a placed job does on a topology, as far as somebody asked: paths of pairs that talk (``ptr``,
    ``links``), the pair of each message (``which``), bytes, links, demands and alternative paths.
    """

    topology: Topology
    ends: tuple[I32, I32]
    ptr: I64
    links: I32
    which: I64
    link_bytes: F64 | None = None
    used: I64 | None = None
    longest_ps: float | None = None
    demands: dict[int, Demand] = field(default_factory=dict)
    alternatives: dict[int, tuple[I64, I64, I32]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Placed:
    """A job on endpoints, as a scheduler sees it: its ``number`` and name, its profile, ``endpoints`` by
    rank.
    """

    number: int
    name: str
    profile: JobProfile
    endpoints: I32
    _found: list[_Found] = field(default_factory=list, repr=False)

    def link_bytes(self, topology: Topology) -> F64:
        """float64[links]: bytes that an iteration puts on each link, by the topology's routing; not to be
        written to.
        """
        found = self._on(topology)
        if found.link_bytes is None:
            sent = np.zeros(topology.num_links)
            of_pair = np.bincount(found.which, self.profile.size_bytes, minlength=len(found.ptr) - 1)
            np.add.at(sent, found.links, np.repeat(of_pair, np.diff(found.ptr)))
            found.link_bytes = sent
        return found.link_bytes

    def longest_ps(self, topology: Topology) -> float:
        """The longest time that the bytes of an iteration take on any link, if they have it to themselves."""
        found = self._on(topology)
        if found.longest_ps is None:
            times = self.link_bytes(topology) * 8e12 / topology.link_rate_bps
            found.longest_ps = float(times.max(initial=0.0))
        return found.longest_ps

    def used_links(self, topology: Topology) -> I64:
        """int64[n]: links on which an iteration puts bytes, ascending."""
        found = self._on(topology)
        if found.used is None:
            found.used = np.flatnonzero(self.link_bytes(topology))
        return found.used

    def alternatives(self, topology: Topology, most: int) -> tuple[tuple[I32, I32], I64, I64, I32]:
        """Pairs of endpoints that talk, in the order of the profile's pairs; their equal paths, at most so
        many each, as :meth:`~cosim.topology.graph.Paths.alternatives` gives them.
        """
        found = self._on(topology)
        if most not in found.alternatives:
            src, dst = found.ends
            found.alternatives[most] = topology.routing.alternatives(topology, src, dst, most)
        return found.ends, *found.alternatives[most]

    def demand(self, topology: Topology, link: int) -> Demand:
        """What it wants of a link over its period."""
        found = self._on(topology)
        if link not in found.demands:
            goes = np.zeros(len(found.ptr) - 1, np.bool_)
            goes[np.repeat(np.arange(len(found.ptr) - 1), np.diff(found.ptr))[found.links == link]] = True
            mine = goes[found.which] & (self.profile.end_ps > self.profile.start_ps)
            start, end = self.profile.start_ps[mine], self.profile.end_ps[mine]
            rate = self.profile.size_bytes[mine] * 8e12 / (end - start)
            most = float(topology.link_rate_bps[link])
            found.demands[link] = rolled(start, end, rate, self.profile.period_ps, most)
        return found.demands[link]

    def _on(self, topology: Topology) -> _Found:
        """What was found out on this topology."""
        if not self._found or self._found[0].topology is not topology:
            pairs, which = self.profile.pairs
            src, dst = (np.ascontiguousarray(self.endpoints[column], np.int32) for column in pairs)
            paths = topology.paths(src, dst, np.zeros(len(src), np.int32))
            self._found[:] = [_Found(topology, (src, dst), *paths, which)]
        return self._found[0]
