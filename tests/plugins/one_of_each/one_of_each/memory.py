"""Two memories, one for each half of the endpoints."""

from __future__ import annotations

import numpy as np

from cosim.plugins import I32, MemorySpec, Topology


class Halves(MemorySpec):
    """One for the lower half of the endpoints, one for the upper"""

    def devices(self, topology: Topology) -> I32:
        return (np.arange(topology.num_endpoints) * 2 // topology.num_endpoints).astype(np.int32)
