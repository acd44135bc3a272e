"""What remote memory is: which device serves an endpoint, and how long an access holds it.

::

    class Slowest(MemorySpec):
        '''One device for everybody, at half its rate'''

        def devices(self, topology: Topology) -> I32:
            return np.zeros(topology.num_endpoints, np.int32)

        def duration_ps(self, size_bytes: int) -> int:
            return 2 * super().duration_ps(size_bytes)

A device serves one access at a time, those that wait in the order in which they came. Time follows
ASTRA-sim's ``AnalyticalRemoteMemory`` (``get_remote_mem_runtime``), in whole nanoseconds as there.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cosim.spec import RateBps, SizeBytes, Spec, TimePs
from cosim.topology.graph import Topology
from cosim.units import PS_PER_NS

I32 = NDArray[np.int32]

NOBODY = -1
"""The device of an endpoint that has its memory to itself: no access waits for another."""


class MemorySpec(Spec):
    """Base of the memories that a scenario can name."""

    latency: TimePs = Field(0, ge=0, description="of each access, before its first byte")
    rate: RateBps = Field(gt=0, allow_inf_nan=False, description="of one device")
    capacity: SizeBytes | None = Field(
        None, gt=0, description="of one device, where jobs say what they keep there; omitted: nobody asks"
    )

    @abstractmethod
    def devices(self, topology: Topology) -> I32:
        """int32[endpoints]: the number of the device that serves each, from 0 on; ``NOBODY``: none that is
        shared, so that all of its accesses go on at once.

        Raises
        ------
        TopologyError
            The topology doesn't have what devices are shared by.
        """

    @property
    def request_bytes(self) -> int:
        """Bytes of a load's request to a node, and of a node's acknowledgement of a store."""
        return 0

    def nodes(self, topology: Topology) -> I32 | None:  # noqa: ARG002 - most have none
        """int32[endpoints]: the endpoint that each one's memory is at, where accesses are messages between
        the two: ``latency`` is then the node's, and nothing is asked of ``duration_ps``. None: they are not.

        Raises
        ------
        TopologyError
            A node that the topology doesn't have.
        """
        return None

    def duration_ps(self, size_bytes: int) -> int:
        """How long one load or store of ``size_bytes`` holds its device, or takes where nobody waits.

        In doubles and cut off to whole nanoseconds, as ASTRA-sim does.
        """
        transfer_ns = int(float(size_bytes) / (self.rate / 8) * 1e9)
        return self.latency + transfer_ns * PS_PER_NS
