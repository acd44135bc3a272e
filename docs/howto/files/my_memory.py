"""Remote memory in drawers: each serves endpoints that lie apart, and is slower at small accesses."""

import numpy as np
from pydantic import Field

from cosim.plugins import MemorySpec, SizeBytes


class Drawers(MemorySpec):
    """Endpoint e is served by drawer e modulo their number; an access moves whole blocks"""

    drawers: int = Field(gt=0, description="how many there are")
    block: SizeBytes = Field(4096, gt=0, description="moved at once")

    def devices(self, topology):
        return (np.arange(topology.num_endpoints) % self.drawers).astype(np.int32)

    def duration_ps(self, size_bytes):
        return super().duration_ps(-(-size_bytes // self.block) * self.block)
