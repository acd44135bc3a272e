"""Memory ``per_npu``: ASTRA-sim's ``PER_NPU_MEMORY_EXPANSION``."""

from __future__ import annotations

import numpy as np

from cosim.memory.contract import I32, NOBODY, MemorySpec
from cosim.topology.graph import Topology


class PerNpuMemory(MemorySpec):
    """Each endpoint has its own: no access waits for another, not even of the same endpoint"""

    def devices(self, topology: Topology) -> I32:
        """See :meth:`MemorySpec.devices`."""
        return np.full(topology.num_endpoints, NOBODY, np.int32)
