"""Memory ``per_node``: ASTRA-sim's ``PER_NODE_MEMORY_EXPANSION``."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from cosim.errors import TopologyError
from cosim.memory.contract import I32, MemorySpec
from cosim.topology.graph import Topology
from cosim.topology.scale_up import host_shape


class PerNodeMemory(MemorySpec):
    """Each node has one for all its endpoints, which serves one access after the other"""

    npus: int | None = Field(
        None, ge=1, description="consecutive endpoints of a node; omitted: the GPUs of a host of the topology"
    )

    def devices(self, topology: Topology) -> I32:
        """See :meth:`MemorySpec.devices`."""
        return np.arange(topology.num_endpoints, dtype=np.int32) // np.int32(self.npus_of(topology))

    def npus_of(self, topology: Topology) -> int:
        """Endpoints of a node.

        Raises
        ------
        TopologyError
            Neither the memory nor the topology says how many.
        """
        if self.npus is not None:
            return self.npus
        shape = host_shape(topology)
        if shape is None:
            raise TopologyError(
                f"{topology.name} has no hosts, so that nobody says which endpoints share a memory",
                hint="say how many consecutive endpoints do: memory.npus: 8",
            )
        return shape.gpus
