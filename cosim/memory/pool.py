"""Memory ``pool``: ASTRA-sim's ``MEMORY_POOL``."""

from __future__ import annotations

import numpy as np

from cosim.memory.contract import I32, MemorySpec
from cosim.topology.graph import Topology


class MemoryPool(MemorySpec):
    """One for all endpoints, which serves one access after the other"""

    def devices(self, topology: Topology) -> I32:
        """See :meth:`MemorySpec.devices`."""
        return np.zeros(topology.num_endpoints, np.int32)
