"""Several jobs onto one fabric: each job's placement in turn, with the endpoints that are left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cosim.cluster.contract import I32, Placement, Wanted
from cosim.context import HERE, Context
from cosim.errors import InputError, Location, WorkloadError
from cosim.plugin_file import plugin_errors
from cosim.topology.graph import I64
from cosim.workload.draws import draw
from cosim.workload.program import DeviceMesh


@dataclass(frozen=True)
class Request:
    """A job that wants endpoints: its name, how many ranks it has, how it wants them chosen, its axes."""

    name: str
    num_ranks: int
    placement: Placement
    mesh: DeviceMesh | None = None


def arrange(
    requests: Sequence[Request],
    num_endpoints: int,
    *,
    domains: tuple[I32, ...] = (),
    scale_up: I64 | None = None,
    share_endpoints: bool = False,
    context: Context = HERE,
    locate: Callable[[int], Location | None] = lambda _: None,
) -> list[I32]:
    """Endpoints of each job, by rank.

    ``domains`` are those of the topology, where a placement needs them, ``scale_up`` its scale-up domains.
    With ``share_endpoints`` every job
    chooses among all endpoints, whoever else sits there; their computations don't slow each other down, their
    flows share links.

    Raises
    ------
    WorkloadError
        A job doesn't fit, or takes an endpoint of another; at ``locate(number of the job)``.
    """
    owner = np.full(num_endpoints, -1, np.int32)
    placed: list[I32] = []
    for number, request in enumerate(requests):
        free = np.flatnonzero((owner < 0) | share_endpoints).astype(np.int32)
        try:
            mesh = request.mesh
            wanted = Wanted(request.num_ranks, free, num_endpoints, context, domains, mesh, scale_up)
            with plugin_errors():
                endpoints = _checked(request, request.placement.choose(wanted), num_endpoints)
        except InputError as error:
            message = error.message if error.location is None else f"{error.location}: {error.message}"
            raise WorkloadError(message, location=locate(number), hint=error.hint) from None
        taken = endpoints[owner[endpoints] >= 0]
        if len(taken) and not share_endpoints:
            endpoint = int(taken.min())
            raise WorkloadError(
                f"endpoint {endpoint} is wanted by the job {request.name!r}, but it has a rank of the job "
                f"{requests[owner[endpoint]].name!r}",
                location=locate(number),
                hint="choose another, or say share_endpoints: true",
            )
        owner[endpoints] = number
        placed.append(endpoints)
    return placed


def seats(
    request: Request,
    free: I32,
    num_endpoints: int,
    most: int,
    *,
    domains: tuple[I32, ...] = (),
    scale_up: I64 | None = None,
    context: Context = HERE,
) -> list[I32]:
    """Endpoints by rank that a job could have among those that are free: its placement's choice, then others
    that keep it together, on hosts that are drawn; at most so many; none where its placement finds no room.
    """
    if request.num_ranks > len(free):
        return []
    wanted = Wanted(request.num_ranks, free, num_endpoints, context, domains, request.mesh, scale_up)
    chosen = request.placement.choose(wanted)
    own = _checked(request, chosen, num_endpoints)
    if not np.isin(own, free).all():
        return []
    found = {own.tobytes(): own}
    from cosim.cluster.locality import Local
    from cosim.cluster.placement import Explicit

    for number in range(0 if isinstance(request.placement, Explicit) else 4 * most):
        if len(found) >= most:
            break
        some = _drawn_hosts(free, request.num_ranks, domains, number)
        other = Local().choose(Wanted(request.num_ranks, some, num_endpoints, context, domains))
        found.setdefault(other.tobytes(), other)
    return [*found.values()]


def _drawn_hosts(free: I32, count: int, domains: tuple[I32, ...], number: int) -> I32:
    """Free endpoints of the narrowest domains, domain by domain as they are drawn, until there are enough; of
    the first draw those with most room.
    """
    domain = domains[0][free]
    room = np.bincount(domain)
    lot = np.array([draw(number, one) for one in range(len(room))], np.uint64) if number else -room
    order = np.argsort(lot, kind="stable")
    taken = order[: int(np.searchsorted(np.cumsum(room[order]), count)) + 1]
    return free[np.isin(domain, taken)]


def _checked(request: Request, chosen: object, num_endpoints: int) -> I32:
    """What a placement chose, if it is as many endpoints as there are ranks, each once."""
    good = isinstance(chosen, np.ndarray) and chosen.ndim == 1 and chosen.dtype.kind in "iu"
    if good:
        assert isinstance(chosen, np.ndarray)
        good = len(np.unique(chosen)) == len(chosen) == request.num_ranks
        good = good and bool(((chosen >= 0) & (chosen < num_endpoints)).all())
    if not good:
        raise WorkloadError(
            f"{type(request.placement).__name__}.choose gave {repr(chosen)[:80]}; it should give an "
            f"int32 array of {request.num_ranks} endpoints from 0 to {num_endpoints - 1}, each once"
        )
    return np.asarray(chosen, np.int32)
