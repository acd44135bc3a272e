"""What communication is for: tensor, data, pipeline or expert parallelism, as its group's mesh axes say."""

from __future__ import annotations

from cosim.workload.program import DeviceMesh, Operation

_AXES = {
    "dp": {"dp", "fsdp", "edp", "efsdp", "dp_replicate", "dp_shard"},
    "ep": {"ep"},
    "pp": {"pp"},
    "tp": {"tp", "etp"},
}
PURPOSES = (*_AXES, "other")


def purpose_of(operation: Operation, mesh: DeviceMesh) -> str:
    """One of :data:`PURPOSES`, for a collective, a send or a receive.

    A collective over several axes is for the first of these that it has: gradients are summed over ``dp`` and
    ``cp``, tokens go to experts over ``ep`` and ``tp``. One over no axes is over all. Named ranks, and axes
    of other names, are ``other``.
    """
    if operation.collective:
        axes = set() if operation.ranks is not None else {*(operation.axes or mesh.axes)}
    else:
        axes = {operation.peer.axis} if operation.peer is not None else set()
    return next((purpose for purpose, names in _AXES.items() if axes & names), "other")
