"""Memory ``fabric``: memory nodes are endpoints of the topology, and accesses are messages to and from them.

A load is a request to the node, its ``latency``, and the bytes back; a store is the bytes, the latency, and
an acknowledgement. They share links with all else that is sent, on whichever network the scenario has.

Not modelled: a rate of the node beside that of its links; several nodes for the accesses of one endpoint.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field, NonNegativeInt

from cosim.errors import TopologyError
from cosim.memory.contract import I32, NOBODY, MemorySpec
from cosim.spec import RateBps, SizeBytes
from cosim.topology.graph import Topology

_ANY = 1e18
"""Bits a second, which nobody asks for."""


class FabricMemory(MemorySpec):
    """Memory nodes are endpoints, and accesses messages, which share links with all others"""

    rate: RateBps = Field(_ANY, gt=0, description="has no effect: accesses go as fast as links let them")
    endpoints: tuple[NonNegativeInt, ...] = Field(
        min_length=1, description="the memory nodes; endpoint e has its memory at number e modulo their count"
    )
    request: SizeBytes = Field(64, ge=0, description="of a load's request and of a store's acknowledgement")

    @property
    def request_bytes(self) -> int:
        """See :attr:`MemorySpec.request_bytes`."""
        return self.request

    def idle_settings(self) -> list[tuple[str, str]]:
        """A rate."""
        given = "rate" in self.model_fields_set
        return [("rate", "accesses go as fast as the links of their nodes")] if given else []

    def devices(self, topology: Topology) -> I32:
        """See :meth:`MemorySpec.devices`."""
        return np.full(topology.num_endpoints, NOBODY, np.int32)

    def nodes(self, topology: Topology) -> I32:
        """See :meth:`MemorySpec.nodes`."""
        beyond = [endpoint for endpoint in self.endpoints if endpoint >= topology.num_endpoints]
        if beyond:
            raise TopologyError(
                f"memory node {beyond[0]} is beyond the {topology.num_endpoints} endpoints of {topology.name}"
            )
        order = np.arange(topology.num_endpoints) % len(self.endpoints)
        return np.array(self.endpoints, np.int32)[order]
