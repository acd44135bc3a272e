"""Who communicates when, and who has how much of a link: the jobs of one run, over time.

Made from recorded messages, which are taken to go the path of channel 0; who had how much of a link between
their starts and ends is computed from these (:mod:`cosim.results.link_shares`). Where that is more than the
link can carry, all are scaled down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import MessageRecords, Records
from cosim.errors import InputError
from cosim.results.intervals import covered, union, where_several
from cosim.results.link_shares import link_shares
from cosim.results.links import busiest
from cosim.results.summary import iteration_ends, iteration_times
from cosim.topology.graph import Topology

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sharing:
    """Equal bins of time, ``edges_ps`` int64[B + 1].

    ``active[j, b]`` is the part of bin b in which job j has a message under way; ``contended[b]`` that in
    which two jobs or more have; ``rate_bps[j, b]`` what job j sends over ``link`` then.
    ``iteration_end_ps[j]`` is when each iteration of job j ended, ``iteration_ps[j]`` how long it took.
    """

    jobs: tuple[str, ...]
    edges_ps: I64
    active: F64
    contended: F64
    link: int
    link_name: str
    link_rate_bps: float
    rate_bps: F64
    iteration_end_ps: tuple[I64, ...]
    iteration_ps: tuple[I64, ...]


def sharing(
    records: Records,
    *,
    bins: int = 1200,
    link: int | None = None,
    since_ps: int = 0,
    until_ps: int | None = None,
) -> Sharing:
    """The jobs of a run that recorded its messages, from ``since_ps`` to ``until_ps`` (omitted: the end); of
    the busiest link where none is named.

    Raises
    ------
    InputError
        Messages were not recorded, or no such link.
    """
    messages = records.messages
    if messages is None:
        raise InputError("sharing is made from messages", hint="record them: record: {messages: true}")
    if link is None:
        top = _fabric_first(records)
        link = int(top[0]) if len(top) else 0
    if not 0 <= link < records.topology.num_links:
        raise InputError(f"there is no link {link}; there are {records.topology.num_links}")
    until_ps = records.end_ps if until_ps is None else until_ps
    edges = np.linspace(since_ps, max(until_ps, since_ps + bins), bins + 1).astype(np.int64)
    of_job = [messages.job == j for j in range(len(records.jobs))]
    sending = [union(messages.start_ps[mine], messages.end_ps[mine]) for mine in of_job]
    return Sharing(
        jobs=tuple(job.name for job in records.jobs),
        edges_ps=edges,
        active=np.array([covered(intervals, edges) for intervals in sending]),
        contended=covered(where_several(sending), edges),
        link=link,
        link_name=records.topology.link_name(link),
        link_rate_bps=float(records.topology.link_rate_bps[link]),
        rate_bps=job_rates(records, messages, link, edges),
        iteration_end_ps=tuple(map(iteration_ends, records.iteration_end_ps)),
        iteration_ps=tuple(
            iteration_times(ends, job.start_ps)
            for ends, job in zip(records.iteration_end_ps, records.jobs, strict=True)
        ),
    )


def job_rates(records: Records, messages: MessageRecords, link: int, edges_ps: I64) -> F64:
    """Bits per second of each job over a link in each bin, float64[jobs, bins]; scaled down where all are
    more than it carries.
    """
    capacity = float(records.topology.link_rate_bps[link])
    over = _over(records.topology, messages, link)
    start, end, size = (column[over] for column in (messages.start_ps, messages.end_ps, messages.size_bytes))
    owner = messages.job[over].astype(np.int64)
    rate = link_shares(start, end, size, owner, len(records.jobs), capacity, edges_ps)
    rate /= np.maximum(rate.sum(axis=0) / capacity, 1.0)
    return rate


def _fabric_first(records: Records) -> I64:
    """Links by how busy they were, those between switches before the others where any carried something."""
    order = busiest(records.links, records.topology.num_links)
    n = records.topology.num_endpoints
    inner = (records.topology.link_src[order] >= n) & (records.topology.link_dst[order] >= n)
    return order[inner] if inner.any() else order


def _over(topology: Topology, messages: MessageRecords, link: int) -> NDArray[np.bool_]:
    """Whether each message goes over a link."""
    pairs, which = np.unique(np.stack([messages.src, messages.dst]), axis=1, return_inverse=True)
    src, dst = (np.ascontiguousarray(column, np.int32) for column in pairs)
    ptr, links = topology.paths(src, dst, np.zeros(len(src), np.int32))
    goes = np.zeros(len(src), np.bool_)
    goes[np.repeat(np.arange(len(src)), np.diff(ptr))[links == link]] = True
    return np.asarray(goes[which.reshape(-1)], np.bool_)
