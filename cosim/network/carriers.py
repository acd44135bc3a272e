"""Which of a hybrid's two networks carries a message: that whose links its path takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.network.flows import I32, I64
from cosim.topology.graph import Topology


def carriers(
    topology: Topology, scale_up: NDArray[np.bool_], src: I32, dst: I32, channel: I32
) -> tuple[I32, NDArray[np.bool_]]:
    """(0 of each message that stays within scale-up domains and 1 of each other, whether it has no path).

    Raises
    ------
    NetworkError
        A path takes links of both.
    """
    ptr, links = topology.paths(src, dst, channel)
    inner, hops = _sums(scale_up[links], ptr), np.diff(ptr)
    mixed = np.flatnonzero((inner > 0) & (inner < hops))
    if len(mixed):
        names, row = topology.node_names, int(mixed[0])
        raise NetworkError(
            f"hybrid: the path from {names[src[row]]} to {names[dst[row]]} takes scale-up links "
            "and others; each message is carried by one network"
        )
    return (hops > inner).astype(np.int32), hops == 0


def carriers_together(
    topology: Topology, scale_up: NDArray[np.bool_], src: I32, dst: I32, channel: I32
) -> I32:
    """The same of the rows of one table: its marks, which have no path, go with the others, or where they
    cost least.
    """
    carrier, marks = carriers(topology, scale_up, src, dst, channel)
    if carrier.any() and carrier[~marks].all():
        carrier[marks] = 1
    return carrier


def _sums(values: Any, ptr: I64) -> I64:
    """The sum over each row's links."""
    total = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.asarray(total[ptr[1:]] - total[ptr[:-1]], np.int64)
