"""What the tests of RDMA in ns-3 share: sessions, and what a closed form says of a message alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.protocol.client import RemoteNetwork, launch
from cosim.protocol.rdma import Ns3Rdma
from cosim.topology.graph import Topology
from cosim.units import NEVER
from tests.adapters.ns3_worlds import US, ns3

IN_MTU, ETHERNET = 44, 18
"""Headers of RoCEv2 (IPv4 20, UDP 8, BTH 12, ICRC 4) and of Ethernet (14 and a checksum of 4)."""
CONTROLS = ("dcqcn", "dctcp", "fixed", "hpcc", "nscc", "swift", "timely")

Flow = tuple[int, int, int]
"""Source, destination, bytes."""


def rdma() -> str:
    """The adapter's executable, as :func:`ns3`."""
    return ns3().replace("cosim-ns3", "cosim-ns3-rdma")


def network(control: Any = "fixed", **wanted: Any) -> RemoteNetwork:
    """A session on a server of its own, with the settings of a scenario."""
    return launch([rdma()], **vars(Ns3Rdma.model_validate({"control": control, **wanted}).settings()))


def wire_bytes(size: int, mtu: int, telemetry: int = 0) -> int:
    """A message on the wire, all its packets."""
    return size + math.ceil(size / (mtu - IN_MTU)) * (IN_MTU + ETHERNET + telemetry)


def alone_ps(size: int, mtu: int, gbps: float, hops: int, latency_ps: int) -> float:
    """When the last packet is through: each starts on a link when it has come and the one before has left."""
    full, last = divmod(size, mtu - IN_MTU)
    packets = [mtu - IN_MTU] * full + [last] * (last > 0)
    came = [0.0] * len(packets)
    for _ in range(hops):
        free = 0.0
        for k, payload in enumerate(packets):
            free = max(came[k], free) + wire_bytes(payload, mtu) * 8000 / gbps
            came[k] = free + latency_ps
    return came[-1]


@dataclass(frozen=True)
class Ran:
    """``end_ps`` by flow, -1: not yet; ``link_bytes`` [step, link] at the ends of steps."""

    end_ps: list[int]
    link_bytes: NDArray[np.int64]
    statistics: Any

    def column(self, name: str) -> NDArray[np.float64]:
        """A measure of every link."""
        found: NDArray[np.float64] = self.statistics.extra[name]
        return found


def run(
    topology: Topology,
    flows: Sequence[Flow],
    control: Any = "fixed",
    *,
    steps_ps: Sequence[int] = (NEVER,),
    start_ps: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    priorities: Sequence[int] | None = None,
    coflow_bytes: Sequence[int] | None = None,
    one_job: bool = False,
    session: RemoteNetwork | None = None,
    **wanted: Any,
) -> Ran:
    """Run flows, each of a job of its own unless ``one_job``, to the last of ``steps_ps``."""
    one = session or network(control, **wanted)
    try:
        one.open(topology, seed=1)
        groups = [
            FlowGroup(
                k,
                flat_table([0], [1], [size], reaction_ps=NEVER),
                np.array([src, dst], np.int32),
                (0 if one_job else k, k),
                job=0 if one_job else k,
                coflow=k + 1,
                coflow_bytes=coflow_bytes[k] if coflow_bytes else 0,
                weight=weights[k] if weights else 1.0,
                priority=priorities[k] if priorities else 0,
            )
            for k, (src, dst, size) in enumerate(flows)
        ]
        start = np.array(start_ps if start_ps is not None else [0] * len(flows), np.int64)
        batch = FlowBatch(
            groups, np.arange(len(flows), dtype=np.int32), np.zeros(len(flows), np.int64), start, start
        )
        ends, seen = [-1] * len(flows), []
        for until in steps_ps:
            granted = -1
            while granted < until:
                granted, done = one.advance(batch, until)
                batch = FlowBatch()
                for handle, time in zip(done.handle.tolist(), done.time_ps.tolist(), strict=True):
                    ends[handle] = time
            seen.append(one.statistics().link_bytes)
        return Ran(ends, np.array(seen), one.statistics())
    finally:
        one.close()


__all__ = ["CONTROLS", "US", "Flow", "Ran", "alone_ps", "network", "rdma", "run", "wire_bytes"]
