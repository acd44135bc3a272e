"""Locality: which endpoints lie near each other, and a placement that keeps a job together.

Endpoints of one switch are a domain (a host's GPUs on their NVSwitch, else those of a leaf); those
two switches apart are a wider one, and so on until all endpoints are in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cosim.cluster.contract import I32, Placement, Wanted
from cosim.topology.graph import I64, Topology


def domains(topology: Topology) -> tuple[I32, ...]:
    """For each width, narrowest first, the domain of each endpoint: int32[endpoints], numbered from 0.

    The last has every endpoint in domain 0.
    """
    n = topology.num_endpoints
    order = np.lexsort((topology.link_dst, topology.link_src))
    tail, head = topology.link_src[order].astype(np.int64), topology.link_dst[order].astype(np.int64)
    ptr = np.searchsorted(tail, np.arange(topology.num_nodes + 1))
    found: list[I32] = []
    label = np.arange(topology.num_nodes, dtype=np.int64)
    frontier = np.arange(n, dtype=np.int64)
    seen = np.zeros(topology.num_nodes, np.bool_)
    seen[frontier] = True
    while True:
        starts, ends = ptr[frontier], ptr[frontier + 1]
        links = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)] or [frontier[:0]])
        if not len(links):
            break
        label = _joined(label, tail[links], head[links])
        reached = np.unique(head[links])
        frontier = reached[~seen[reached]]
        seen[frontier] = True
        domain = _numbered(label[:n])
        if not found or domain.max(initial=0) < found[-1].max(initial=0):
            found.append(domain)
        if domain.max(initial=0) == 0:
            break
    if not found or found[-1].max(initial=0) > 0:
        found.append(np.zeros(n, np.int32))
    return tuple(found)


def _joined(label: I64, one: I64, two: I64) -> I64:
    """Labels after joining nodes in pairs: each the smallest of its component."""
    label = label.copy()
    while True:
        low = np.minimum(label[one], label[two])
        before = label.copy()
        np.minimum.at(label, label[one], low)
        np.minimum.at(label, label[two], low)
        label = label[label]
        if (label == before).all():
            return label


def _numbered(label: I64) -> I32:
    return np.unique(label, return_inverse=True)[1].astype(np.int32)


class Local(Placement):
    """Ranks together: the narrowest domain with room (host, leaf ...), of those the one with least to spare

    Within it, sub-domains are filled one after another, the emptiest first, so that few are cut.
    """

    needs_domains: ClassVar[bool] = True

    def choose(self, wanted: Wanted) -> I32:
        """See :meth:`Placement.choose`."""
        wanted.check_enough()
        for level, domain in enumerate(wanted.domains):
            room = np.bincount(domain[wanted.free], minlength=int(domain.max()) + 1)
            enough = np.flatnonzero(room >= wanted.num_ranks)
            if len(enough):
                best = enough[np.argmin(room[enough])]
                free = wanted.free[domain[wanted.free] == best]
                return _fill(free, wanted.num_ranks, wanted.domains[:level])
        return wanted.free[: wanted.num_ranks].copy()


def _fill(free: I32, count: int, narrower: Sequence[I32]) -> I32:
    """``count`` of ``free``, whole sub-domains first."""
    if not narrower or count == len(free):
        return np.sort(free)[:count]
    domain = narrower[-1]
    room = np.bincount(domain[free], minlength=int(domain.max()) + 1)
    out: list[I32] = []
    left = count
    for one in np.lexsort((np.arange(len(room)), -room)).tolist():
        if left == 0 or room[one] == 0:
            break
        here = free[domain[free] == one]
        take = min(left, len(here))
        out.append(_fill(here, take, narrower[:-1]))
        left -= take
    return np.concatenate(out)
