"""Crux: jobs that compute most for each byte they send go first, on the least loaded paths.

J. Cao et al., "Crux: GPU-Efficient Communication Scheduling for Deep Learning Training", SIGCOMM 2024,
doi:10.1145/3651890.3672239. Work is GPU-time here, not FLOPs. A path is chosen for a pair of endpoints, not
for each of its connections. Computation that a job's messages leave after them is taken to go on while they
are late. Not modelled: paths that are probed for, and hosts' own schedulers of NVLink and PCIe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from cosim.cluster.schedulers.compress import compress
from cosim.cluster.schedulers.contest import OnLink, gains_ps
from cosim.cluster.schedulers.contract import Decision, Path, Scheduler
from cosim.cluster.schedulers.profile import Placed
from cosim.kernel import kernel
from cosim.topology.graph import F64, Topology

_MOST_PATHS = 64


class Crux(Scheduler):
    """The most GPU work per byte first: on the least loaded paths, and at the highest priority"""

    pins_paths = True
    sets_priorities = True

    levels: int = Field(8, ge=1, le=8, description="priorities that the network has")

    def decide(self, jobs: Sequence[Placed], topology: Topology) -> Decision:
        """See :class:`~cosim.cluster.schedulers.contract.Scheduler`."""
        talking = [job for job in jobs if job.profile.sends]
        notes = [f"{job.name} sends nothing: it is in nobody's way" for job in jobs if job not in talking]
        if not talking:
            return Decision(notes=tuple(notes))
        intensity = {job.number: _intensity(job, topology) for job in talking}
        talking.sort(key=lambda job: (-intensity[job.number], job.number))
        paths, share = _least_loaded(talking, topology)
        shared = np.flatnonzero((share > 0).sum(axis=0) > 1)
        of_shared = share[:, shared]
        sent = (of_shared * topology.link_rate_bps[shared]).sum(axis=1)
        priority = _priorities(talking, intensity, sent, share.max(axis=1))
        row = {job.number: at for at, job in enumerate(talking)}
        order = sorted(priority, key=lambda job: (-priority[job], job))
        together = _meeting(of_shared[[row[job] for job in order]])
        edges = {(order[u], order[v]): intensity[order[u]] for u, v in together}
        return Decision(
            priorities=compress(order, edges, self.levels),
            paths=paths,
            intensities=intensity,
            notes=tuple(notes),
        )


def _meeting(share: F64) -> list[tuple[int, int]]:
    """Rows that use a link together, the earlier first."""
    used = (share > 0).astype(np.float32)
    first, second = np.nonzero(np.triu(used @ used.T, 1))
    return list(zip(first.tolist(), second.tolist(), strict=True))


def _intensity(job: Placed, topology: Topology) -> float:
    """GPU-time that an iteration computes over the longest time of its bytes on any link."""
    longest = job.longest_ps(topology)
    return job.profile.work_ps / longest if longest else 0.0


def _least_loaded(
    jobs: Sequence[Placed], topology: Topology
) -> tuple[dict[int, dict[tuple[int, int], Path]], F64]:
    """(Paths of each job's pairs that have a choice, what each job puts on each link: share of the link's
    time), where each job in turn has those that the ones before it leave least loaded.
    """
    ends, counts, ptrs, ways = zip(*(job.alternatives(topology, _MOST_PATHS) for job in jobs), strict=True)
    pairs = np.array([len(count) for count in counts])
    before = np.cumsum([0, *(len(links) for links in ways)])
    ptr = np.concatenate([[0], *(one[1:] + at for one, at in zip(ptrs, before[:-1], strict=True))])
    count, links = np.concatenate(counts), np.concatenate(ways)
    sent = np.concatenate([job.profile.pair_bps for job in jobs])
    share, row = np.zeros((len(jobs), topology.num_links)), np.zeros(len(count), np.int64)
    rate, load = topology.link_rate_bps, np.zeros(topology.num_links)
    kernel.least_loaded_paths(
        len(jobs), pairs, count, ptr, links, rate, sent, topology.num_links, load, share, row
    )

    src, dst = (np.concatenate(column) for column in zip(*ends, strict=True))
    whose = np.repeat(np.arange(len(jobs)), pairs)
    chosen: dict[int, dict[tuple[int, int], Path]] = {job.number: {} for job in jobs}
    for pair in np.flatnonzero(count > 1).tolist():
        path = tuple(links[ptr[row[pair]] : ptr[row[pair] + 1]].tolist())
        chosen[jobs[whose[pair]].number][int(src[pair]), int(dst[pair])] = path
    return chosen, share


def _priorities(
    jobs: Sequence[Placed], intensity: Mapping[int, float], sent_bps: F64, share: F64
) -> dict[int, float]:
    """Intensity times k, which is what a job gains of a link by going first over what the reference job
    gains, where the two are alone on it. The reference is the job that sends most over links that others use
    (``sent_bps``); ``share`` is of the link that each uses most.
    """
    traffic = {job.number: one for job, one in zip(jobs, sent_bps.tolist(), strict=True)}
    reference = max(jobs, key=lambda job: (traffic[job.number], -job.number)).number
    on_link = {job.number: _on_link(job, one) for job, one in zip(jobs, share.tolist(), strict=True)}
    found = {}
    for job in jobs:
        factor = 1.0
        if job.number != reference:
            mine, theirs = gains_ps(on_link[job.number], on_link[reference])
            factor = mine / theirs if theirs > 0 else 1.0
        found[job.number] = factor * intensity[job.number]
    return found


def _on_link(job: Placed, share: float) -> OnLink:
    """A job on the link that it uses for the largest share of its period. It may be late by as long as it
    still computes when its last message has arrived.
    """
    profile = job.profile
    period = profile.period_ps
    busy = min(round(share * period), period)
    computes = profile.work_ps // profile.num_ranks
    late = min(max(0, computes - profile.last_ps), period - busy)
    return OnLink(period - busy - late, busy, period)
