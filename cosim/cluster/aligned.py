"""A placement that keeps groups of a job whole within scale-up domains: hosts, or racks on one NVLink."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import Field

from cosim.cluster.contract import I32, Placement, Wanted
from cosim.errors import WorkloadError
from cosim.topology.graph import I64
from cosim.workload.program import DeviceMesh

_BY_DEFAULT = (("tp", "ep"), ("tp",), ("ep",))
"""What is kept whole where nobody says it: the first that fits."""


class Aligned(Placement):
    """Groups along some axes whole in a scale-up domain (a host, a rack); what is left over stays free

    Packed, where that keeps them whole, and where the topology has no scale-up domains.
    """

    axes: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="axes whose groups stay whole, all together, as [tp, ep]; refused where they don't fit; "
        "omitted: tp and ep, as far as they fit",
    )

    def choose(self, wanted: Wanted) -> I32:
        """See :meth:`Placement.choose`."""
        wanted.check_enough()
        packed = wanted.free[: wanted.num_ranks].copy()
        if wanted.mesh is None or wanted.scale_up is None:
            if self.axes is not None and wanted.scale_up is None:
                raise WorkloadError(
                    f"axes {', '.join(self.axes)} can't be kept in scale-up domains: the topology has none",
                    hint="hosts with nvlink_rate, links with scale_up: true; or placement: packed",
                )
            return packed
        known = tuple(wanted.mesh.axes)
        for axes in (self.axes,) if self.axes else _BY_DEFAULT:
            if not set(axes) & set(known):
                continue
            found = _whole(units(wanted.mesh, axes), packed, wanted.free, wanted.scale_up)
            if found is not None:
                return found
        if self.axes is not None:
            self._refuse(wanted, wanted.mesh, wanted.scale_up)
        return packed

    def _refuse(self, wanted: Wanted, mesh: DeviceMesh, scale_up: I64) -> None:
        """Say why groups can't be kept whole."""
        axes = self.axes or ()
        listed = ", ".join(axes)
        if not set(axes) & set(mesh.axes):
            raise WorkloadError(
                f"axes {listed}: the job has none of them longer than one rank; "
                f"it has {', '.join(f'{name} {size}' for name, size in mesh.axes.items())}"
            )
        unit = units(mesh, axes)
        size, count = int((unit == 0).sum()), int(unit.max()) + 1
        room = np.sort(np.unique(scale_up[wanted.free], return_counts=True)[1])[::-1]
        shown = ", ".join(map(str, room[:_SHOWN].tolist())) + (" ..." if len(room) > _SHOWN else "")
        raise WorkloadError(
            f"{count} groups of {size} ranks (axes {listed}) don't fit whole into scale-up domains, "
            f"which have {shown} free endpoints",
            hint="fewer axes, smaller groups, more hosts or racks; or placement: packed",
        )


_SHOWN = 6
"""Domains that an error lists."""


def units(mesh: DeviceMesh, axes: Iterable[str]) -> I64:
    """The group along ``axes`` of each rank, numbered by its first rank: int64[ranks]."""
    names = set(axes)
    where = np.array(np.unravel_index(np.arange(mesh.world_size), tuple(mesh.axes.values())))
    where[[name in names for name in mesh.axes]] = 0
    first = np.ravel_multi_index(tuple(where), tuple(mesh.axes.values()))
    return np.asarray(np.unique(first, return_inverse=True)[1], np.int64).reshape(-1)


def crossing(unit: I64, endpoints: I32, scale_up: I64) -> int:
    """How many groups have ranks in several scale-up domains."""
    pairs = np.unique(np.stack([unit, scale_up[endpoints]]), axis=1)
    return int((np.bincount(pairs[0]) > 1).sum())


def _whole(unit: I64, packed: I32, free: I32, scale_up: I64) -> I32 | None:
    """Endpoints by rank: each group in a domain, in order, as many as it has room for; None: no room."""
    if not crossing(unit, packed, scale_up):
        return packed
    count = int(unit.max()) + 1
    size = len(unit) // count
    domain, first, room = np.unique(scale_up[free], return_index=True, return_counts=True)
    order: Sequence[int] = np.argsort(first).tolist()
    seats: list[I32] = []
    for one in order:
        here = free[scale_up[free] == domain[one]]
        groups = min(int(room[one]) // size, count - len(seats))
        seats += [here[k * size : (k + 1) * size] for k in range(groups)]
        if len(seats) == count:
            break
    if len(seats) < count:
        return None
    found = np.empty(len(unit), np.int32)
    # Ranks of a group are in order on its endpoints.
    found[np.argsort(unit, kind="stable")] = np.concatenate(seats)
    return found
