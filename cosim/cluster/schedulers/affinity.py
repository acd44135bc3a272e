"""The affinity graph: jobs, and the links on which they stand in each other's way.

Without a loop, shifts that were found link by link become one shift a job: along the edges,
t_j = (t_k - (t_k on l) + (t_j on l)) mod p_j (CASSINI, arXiv:2308.00852,
algorithm 1). Links that the same jobs share, or some of them, are one vertex: apart they would make loops
that bind nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.cluster.schedulers.demand import Demand
from cosim.cluster.schedulers.profile import Placed
from cosim.errors import SchedulerError
from cosim.topology.graph import Topology

_ROOM = 1 + 1e-6


class LoopError(SchedulerError):
    """Jobs and links that go round in a circle, by name."""


@dataclass(frozen=True, eq=False)
class Vertex:
    """Links that ``jobs`` (numbers) share; ``demands[k]`` is what each wants of ``links[k]``, by job."""

    jobs: tuple[int, ...]
    links: tuple[int, ...]
    demands: tuple[Mapping[int, Demand], ...]


def contended(jobs: Sequence[Placed], topology: Topology) -> list[Vertex]:
    """Links on which several jobs may want more than there is, those of the same jobs together."""
    used = [job.used_links(topology) for job in jobs]
    count = np.bincount(np.concatenate([*used, np.empty(0, np.int64)]), minlength=topology.num_links)
    on_link: dict[int, list[Placed]] = {}
    for job, mine in zip(jobs, used, strict=True):
        for link in mine[count[mine] > 1].tolist():
            on_link.setdefault(link, []).append(job)
    shared: dict[tuple[int, ...], list[tuple[int, dict[int, Demand]]]] = {}
    for link in sorted(on_link):
        demands = {job.number: job.demand(topology, link) for job in on_link[link]}
        wanted = sum(demand.most_bps for demand in demands.values())
        if wanted > float(topology.link_rate_bps[link]) * _ROOM:
            shared.setdefault(tuple(demands), []).append((link, demands))
    largest: list[tuple[int, ...]] = []
    for users in sorted(shared, key=lambda one: (-len(one), one)):
        if not any({*users} <= {*other} for other in largest):
            largest.append(users)
    within: dict[tuple[int, ...], list[tuple[int, dict[int, Demand]]]] = {users: [] for users in largest}
    for users, links in shared.items():
        home = next(other for other in largest if {*users} <= {*other})
        within[home] += links
    return [
        Vertex(users, *(tuple(column) for column in zip(*sorted(links, key=lambda one: one[0]), strict=True)))
        for users, links in sorted(within.items())
    ]


def components(vertices: Sequence[Vertex]) -> list[list[Vertex]]:
    """Vertices that jobs tie together, in the order of their first jobs."""
    found: list[list[Vertex]] = []
    for vertex in vertices:
        mine = [one for one in found if any({*vertex.jobs} & {*other.jobs} for other in one)]
        found = [one for one in found if one not in mine]
        found.append([*(other for one in mine for other in one), vertex])
    return sorted(found, key=lambda one: min(min(vertex.jobs) for vertex in one))


def joined(
    component: Sequence[Vertex],
    shifts: Sequence[Mapping[int, int]],
    period_ps: Mapping[int, int],
    names: Mapping[int, str],
    topology: Topology,
) -> dict[int, int]:
    """One shift a job, of the shifts on each vertex.

    Raises
    ------
    LoopError
        The graph has a loop; names its jobs and links.
    """
    first = min(min(vertex.jobs) for vertex in component)
    found, came_by = {first: 0}, {first: -1}
    parent: dict[int, int] = {}
    queue = [first]
    done: set[int] = set()
    while queue:
        job = queue.pop(0)
        for number, vertex in enumerate(component):
            if job not in vertex.jobs or came_by[job] == number:
                continue
            if number in done:
                raise LoopError(_loop(job, number, component, came_by, parent, names, topology))
            done.add(number)
            parent[number] = job
            for other in vertex.jobs:
                if other == job:
                    continue
                if other in found:
                    raise LoopError(_loop(other, number, component, came_by, parent, names, topology))
                on_link = shifts[number]
                found[other] = (found[job] - on_link[job] + on_link[other]) % period_ps[other]
                came_by[other] = number
                queue.append(other)
    return found


def _loop(
    job: int,
    vertex: int,
    component: Sequence[Vertex],
    came_by: Mapping[int, int],
    parent: Mapping[int, int],
    names: Mapping[int, str],
    topology: Topology,
) -> str:
    """``a, left -> right, b, ... , a``: from the vertex's side and from the job's, up to where they meet."""

    def upwards(number: int) -> list[tuple[str, int]]:
        """Jobs and vertices from a job to the first."""
        path = [("job", number)]
        while came_by[number] >= 0:
            path.append(("link", came_by[number]))
            number = parent[came_by[number]]
            path.append(("job", number))
        return path

    one = upwards(job)
    two = [("link", vertex), *upwards(parent[vertex])]
    while len(one) > 1 and len(two) > 1 and one[-2:] == two[-2:]:
        one.pop()
        two.pop()
    circle = [*one, *two[-2::-1]] if one[-1] == two[-1] else [*one, *two[::-1]]
    said = [
        names[number] if kind == "job" else topology.link_name(component[number].links[0])
        for kind, number in [*circle, circle[0]]
    ]
    return f"a loop: {', '.join(said)}"
