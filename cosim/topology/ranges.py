"""What every routing checks first: that the endpoints it is asked about exist."""

from __future__ import annotations

import numpy as np

from cosim.errors import TopologyError
from cosim.topology.graph import I32, Topology


def check_endpoints(
    topology: Topology, src: I32, dst: I32, channel: I32, *, switches: bool = False
) -> tuple[I32, I32, I32]:
    """The three columns as contiguous int32; with ``switches`` flows may begin and end there, too.

    Raises
    ------
    ValueError
        The columns differ in length.
    TopologyError
        An endpoint that the topology does not have.
    """
    if not len(src) == len(dst) == len(channel):
        raise ValueError(f"paths: {len(src)} sources, {len(dst)} destinations, {len(channel)} channels")
    last = (topology.num_nodes if switches else topology.num_endpoints) - 1
    for what, column in (("source", src), ("destination", dst)):
        if len(column) and not 0 <= np.minimum.reduce(column) <= np.maximum.reduce(column) <= last:
            at = int(np.flatnonzero((column < 0) | (column > last))[0])
            raise TopologyError(
                f"{what} {int(column[at])} of flow {at} is not an endpoint of {topology.name}",
                hint=f"its endpoints are 0 to {last}",
            )
    return (
        np.ascontiguousarray(src, np.int32),
        np.ascontiguousarray(dst, np.int32),
        np.ascontiguousarray(channel, np.int32),
    )
