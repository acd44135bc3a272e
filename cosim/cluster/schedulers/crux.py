"""Crux: jobs that compute most for each byte they send go first, on the least loaded paths.

J. Cao et al., "Crux: GPU-Efficient Communication Scheduling for Deep Learning Training", SIGCOMM 2024,
doi:10.1145/3651890.3672239. Work is GPU-time here, not FLOPs. A path is chosen for a pair of endpoints, not
for each of its connections. Not modelled: paths that are probed for, and hosts' own schedulers of NVLink and
PCIe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from cosim.cluster.schedulers.compress import compress
from cosim.cluster.schedulers.contest import Alternating, gains_ps
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
        intensity = {job.number: _intensity(job, job.link_bytes(topology), topology) for job in talking}
        talking.sort(key=lambda job: (-intensity[job.number], job.number))
        load, paths = np.zeros(topology.num_links), {}
        share: dict[int, F64] = {}
        for job in talking:
            paths[job.number], share[job.number] = _least_loaded(job, topology, load)
            load += share[job.number]
        priority = _priorities(talking, intensity, share)
        order = sorted(priority, key=lambda job: (-priority[job], job))
        edges = {
            (u, v): intensity[u]
            for at, u in enumerate(order)
            for v in order[at + 1 :]
            if ((share[u] > 0) & (share[v] > 0)).any()
        }
        return Decision(
            priorities=compress(order, edges, self.levels),
            paths=paths,
            intensities=intensity,
            notes=tuple(notes),
        )


def _intensity(job: Placed, link_bytes: F64, topology: Topology) -> float:
    """GPU-time that an iteration computes over the longest time of its bytes on any link."""
    longest = float((link_bytes * 8e12 / topology.link_rate_bps).max(initial=0.0))
    return job.profile.work_ps / longest if longest else 0.0


def _least_loaded(job: Placed, topology: Topology, load: F64) -> tuple[dict[tuple[int, int], Path], F64]:
    """(Paths of pairs that have a choice, what the job puts on each link: share of the link's time)."""
    profile = job.profile
    pairs, which = profile.pairs
    src, dst = (np.ascontiguousarray(job.endpoints[column], np.int32) for column in pairs)
    sent = np.bincount(which, profile.size_bytes) * 8e12 / profile.period_ps
    count, ptr, links = topology.routing.alternatives(topology, src, dst, _MOST_PATHS)
    mine, chosen = np.zeros(topology.num_links), {}
    first = 0
    for pair in range(len(src)):
        options = [links[ptr[first + k] : ptr[first + k + 1]] for k in range(int(count[pair]))]
        first += len(options)
        best = options[0]
        if len(options) > 1:
            loads = [load[option] + mine[option] for option in options]
            at = min(range(len(options)), key=lambda k: (loads[k].max(initial=0.0), loads[k].sum(), k))
            best = options[at]
            chosen[int(src[pair]), int(dst[pair])] = tuple(best.tolist())
        mine[best] += sent[pair] / topology.link_rate_bps[best]
    return chosen, mine


def _priorities(
    jobs: Sequence[Placed], intensity: Mapping[int, float], share: Mapping[int, F64]
) -> dict[int, float]:
    """Intensity times k, which is what a job gains of a link by going first over what the reference job
    gains, where the two are alone on it. The reference is the job that sends most of its time.
    """
    on_link = {
        job.number: Alternating(job.profile.period_ps - busy, busy)
        for job in jobs
        for busy in [
            min(round(float(share[job.number].max()) * job.profile.period_ps), job.profile.period_ps)
        ]
    }
    reference = max(jobs, key=lambda job: (float(share[job.number].max()), -job.number)).number
    found = {}
    for job in jobs:
        factor = 1.0
        if job.number != reference:
            mine, theirs = gains_ps(on_link[job.number], on_link[reference])
            factor = mine / theirs if theirs > 0 else 1.0
        found[job.number] = factor * intensity[job.number]
    return found
