"""Crux: jobs that compute most for each byte they send go first, on the least loaded paths.

J. Cao et al., "Crux: GPU-Efficient Communication Scheduling for Deep Learning Training", SIGCOMM 2024,
doi:10.1145/3651890.3672239. Work is GPU-time here, not FLOPs. A path is chosen for a pair of endpoints, not
for each of its connections. Computation that a job's messages leave after them is taken to go on while they
are late. Not modelled: paths that are probed for, and hosts' own schedulers of NVLink and PCIe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from pydantic import Field

from cosim.cluster.schedulers.compress import compress
from cosim.cluster.schedulers.contest import OnLink, gains_ps
from cosim.cluster.schedulers.contract import Decision, Path, Scheduler
from cosim.cluster.schedulers.profile import Placed
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
        load, paths = np.zeros(topology.num_links), {}
        share: dict[int, F64] = {}
        for job in talking:
            paths[job.number], share[job.number] = _least_loaded(job, topology, load)
            load += share[job.number]
        priority = _priorities(talking, intensity, share, topology.link_rate_bps)
        order = sorted(priority, key=lambda job: (-priority[job], job))
        edges = {(u, v): intensity[u] for u, v in _meeting(order, share)}
        return Decision(
            priorities=compress(order, edges, self.levels),
            paths=paths,
            intensities=intensity,
            notes=tuple(notes),
        )


def _meeting(order: Sequence[int], share: Mapping[int, F64]) -> Iterator[tuple[int, int]]:
    """Jobs that use a link together, the earlier first."""
    used = np.array([share[job] > 0 for job in order])
    used = used[:, used.sum(axis=0) > 1]
    for at, job in enumerate(order):
        for other in np.flatnonzero((used[at + 1 :] & used[at]).any(axis=1)).tolist():
            yield job, order[at + 1 + other]


def _intensity(job: Placed, topology: Topology) -> float:
    """GPU-time that an iteration computes over the longest time of its bytes on any link."""
    longest = job.longest_ps(topology)
    return job.profile.work_ps / longest if longest else 0.0


def _least_loaded(job: Placed, topology: Topology, load: F64) -> tuple[dict[tuple[int, int], Path], F64]:
    """(Paths of pairs that have a choice, what the job puts on each link: share of the link's time)."""
    from cosim.cluster.schedulers.least_loaded import least_loaded
    from cosim.topology.kernels import for_work

    profile = job.profile
    sent = np.bincount(profile.pairs[1], profile.size_bytes) * 8e12 / profile.period_ps
    (src, dst), count, ptr, links = job.alternatives(topology, _MOST_PATHS)
    mine, row = np.zeros(topology.num_links), np.zeros(len(count), np.int64)
    loop = for_work(least_loaded, len(links))
    loop(count, ptr, links, topology.link_rate_bps, sent, load, mine, row)
    chosen = {
        (int(src[pair]), int(dst[pair])): tuple(links[ptr[row[pair]] : ptr[row[pair] + 1]].tolist())
        for pair in np.flatnonzero(count > 1).tolist()
    }
    return chosen, mine


def _priorities(
    jobs: Sequence[Placed], intensity: Mapping[int, float], share: Mapping[int, F64], rate_bps: F64
) -> dict[int, float]:
    """Intensity times k, which is what a job gains of a link by going first over what the reference job
    gains, where the two are alone on it. The reference is the job that sends most over links that others use.
    """
    of_all = np.array([share[job.number] for job in jobs])
    shared_bps = rate_bps * ((of_all > 0).sum(axis=0) > 1)
    traffic = {
        job.number: one for job, one in zip(jobs, (of_all * shared_bps).sum(axis=1).tolist(), strict=True)
    }
    reference = max(jobs, key=lambda job: (traffic[job.number], -job.number)).number
    on_link = {job.number: _on_link(job, float(share[job.number].max())) for job in jobs}
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
