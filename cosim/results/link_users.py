"""Whose traffic each link carried: the pairs of endpoints that the routing leads over it.

Taken from the bytes of each pair and its path of channel 0. Whether that is what happened is checked: where
these bytes add up to what each link carried, within the headers that packets have, it is; where they don't
(a load balancer, links that failed, paths by channel), nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.engine.records import I32, I64, Records
from cosim.results.pair_paths import MOST_PAIRS, pair_paths
from cosim.results.sharing import job_rates
from cosim.results.spread import sent_over
from cosim.topology.graph import Topology

MOST_OF_A_LINK = 4
MOST_SHARED = 6
_HEADERS = 0.1
"""The share of a link's payload that headers may add; more says that another path was taken."""


@dataclass(frozen=True, eq=False)
class LinkUsers:
    """``pairs[l]`` is how many pairs of endpoints link l carried; rows are the largest few of each link,
    and the largest of each job there, in the order of links: endpoints ``src`` and ``dst``, payload
    ``size_bytes``, and whose job (-1: not one job's).

    Of the busiest links that several jobs use: int64[rows] ``shared_link`` and ``shared_job``, and what that
    job sent over that link over time, int64[rows, bins of the traffic]: from messages where they are kept,
    else as :mod:`cosim.results.spread` has it.
    """

    pairs: I64
    link: I64
    src: I64
    dst: I64
    size_bytes: I64
    job: I64
    shared_link: I64
    shared_job: I64
    shared_sent_bytes: I64


def note_link_users(records: Records) -> None:
    """Have what is written of a run say it: asked of the routing once, by whoever writes or shows the run."""
    if "link_users" not in records.info:
        records.info["link_users"] = link_users(records)
        records.info["pair_paths"] = pair_paths(records)


def link_users(records: Records) -> LinkUsers | None:
    """None where it can't be said."""
    traffic, topology = records.traffic, records.topology
    total = traffic.pair_bytes
    sent = np.flatnonzero(total)
    if not 0 < len(sent) <= MOST_PAIRS or records.links.balancing is not None or topology.changes is not None:
        return None
    src, dst, size = traffic.src[sent], traffic.dst[sent], total[sent]
    found = links_of_pairs(topology, src, dst, size, records.links.link_bytes)
    if found is None:
        return None
    links, pair = found
    order = np.lexsort((pair, -size[pair], links))
    links, pair = links[order], pair[order]
    counts = np.bincount(links, minlength=topology.num_links)
    first = np.cumsum(counts) - counts
    job = _job_of_endpoints(records)
    # What goes to a switch, or comes from one, is of the endpoint's job.
    switch = records.topology.num_endpoints
    here, there = job[np.where(src < switch, src, dst)], job[np.where(dst < switch, dst, src)]
    mine = np.where(here == there, here, -1)
    few = np.arange(len(links)) - first[links] < MOST_OF_A_LINK
    few[np.unique(links * np.int64(len(records.jobs) + 1) + mine[pair] + 1, return_index=True)[1]] = True
    shared = _shared(records, sent, links.astype(np.int64), mine[pair], pair)
    links, pair = links[few], pair[few]
    return LinkUsers(
        counts.astype(np.int64),
        links.astype(np.int64),
        src[pair].astype(np.int64),
        dst[pair].astype(np.int64),
        size[pair].astype(np.int64),
        mine[pair],
        *shared,
    )


def links_of_pairs(
    topology: Topology, src: I32, dst: I32, size_bytes: I64, link_bytes: I64
) -> tuple[I32, I64] | None:
    """The links of each pair's path, and whose they are: int32[hops] links, int64[hops] numbers of pairs.

    ``size_bytes`` is what each pair sent. None: these bytes don't add up to what each link carried.
    """
    ptr, links = topology.paths(src, dst, np.zeros(len(src), np.int32))
    pair = np.repeat(np.arange(len(src)), np.diff(ptr))
    carried = np.bincount(links, weights=size_bytes[pair].astype(np.float64), minlength=topology.num_links)
    return (links, pair) if np.allclose(carried, link_bytes, rtol=_HEADERS, atol=0) else None


def _shared(records: Records, sent: I64, links: I64, job: I64, pair: I64) -> tuple[I64, I64, I64]:
    """Links that several jobs use, the busiest few: (link, job, bytes over time), a row for each job there.

    ``sent`` are the pairs that have bytes, as columns of the traffic; of each use of a link, ``links``,
    ``job`` and ``pair`` say the link, whose it is, and its place in ``sent``.
    """
    used = np.unique(np.stack([links, job], axis=1)[job >= 0], axis=0)
    jobs_on = np.bincount(used[:, 0], minlength=records.topology.num_links)
    several = np.flatnonzero(jobs_on > 1)
    busiest = several[np.argsort(-records.links.link_bytes[several], kind="stable")[:MOST_SHARED]]
    rows = used[np.isin(used[:, 0], busiest)]
    found = [
        _over_time(records, one, rows[rows[:, 0] == one, 1], sent, links, job, pair)
        for one in np.unique(rows[:, 0]).tolist()
    ]
    bins = len(records.traffic.size_bytes)
    return rows[:, 0], rows[:, 1], np.concatenate([np.zeros((0, bins), np.int64), *found])


def _over_time(records: Records, link: int, jobs: I64, sent: I64, links: I64, job: I64, pair: I64) -> I64:
    """What each of ``jobs`` sent over a link: int64[jobs, bins of the traffic]."""
    traffic, topology = records.traffic, records.topology
    edges = np.arange(len(traffic.size_bytes) + 1, dtype=np.int64) * traffic.bin_ps
    if records.messages is not None:
        rates = job_rates(records, records.messages, link, edges)[jobs]
        return np.rint(rates * traffic.bin_ps / 8e12).astype(np.int64)
    mine = links == link
    arrived = [traffic.size_bytes[:, sent[pair[mine & (job == one)]]].sum(axis=1) for one in jobs.tolist()]
    rate = topology.link_rate_bps[[link]].astype(np.float64)
    busy = records.links.busy_ps[:, [link]]
    return sent_over(np.array(arrived, np.int64), busy, records.links.bin_ps, rate, edges, records.end_ps)


def _job_of_endpoints(records: Records) -> I64:
    """The job of each node; -1 where there is none, or several."""
    out = np.full(records.topology.num_nodes, -1, np.int64)
    several = np.zeros(len(out), np.bool_)
    for number, job in enumerate(records.jobs):
        whole = job.folding.whole.endpoints if job.folding is not None else job.endpoints
        several[whole] |= out[whole] >= 0
        out[whole] = number
    out[several] = -1
    return out
