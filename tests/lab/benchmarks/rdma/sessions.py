"""Sessions of the adapter: completion times of flows, and what they cost."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.simulator import NetworkStatistics
from cosim.protocol import adapters
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.rdma import Ns3Rdma
from cosim.protocol.settings import SessionSettings, Target
from tests.lab.benchmarks.ns3_congestion import Case, fcts

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Ran:
    """Completion times in us, the network's statistics, and CPU seconds of the server in all."""

    us: F64
    statistics: NetworkStatistics
    cpu_s: float


def session(adapter: str, settings: SessionSettings) -> RemoteNetwork:
    """On a server of its own."""
    return RemoteNetwork(Target(command=tuple(adapters.command(adapter)), name=adapter), settings)


def run(network: RemoteNetwork, case: Case, seed: int | None = None) -> Ran:
    """All flows to their ends; a seed makes starts a little later."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    us = fcts(network, case, seed)
    statistics = network.statistics()
    network.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ran(us, statistics, cpu)


def packets(control: Any, case: Case, seed: int | None = None, **wanted: Any) -> Ran:
    """RDMA with a scenario's settings."""
    spec = Ns3Rdma.model_validate({"control": control, "mtu": case.mtu, **wanted})
    return run(session("ns3_rdma", spec.settings()), case, seed)
