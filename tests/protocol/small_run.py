"""A small run over a network that the caller chooses: two jobs on a leaf-spine, a few hundred advances.

As a program: ``python small_run.py ADDRESS LOG DIE_AT`` runs over a server, its log at LOG (gone on with, if
it is there), kills itself with SIGKILL before advance DIE_AT, or prints the digest.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from pathlib import Path
from typing import Any

from cosim.experiment.build import build
from cosim.experiment.run import Run, simulate
from cosim.experiment.scenario import loads
from cosim.network.flows import FlowBatch
from cosim.network.simulator import Advance, NetworkSimulator

SCENARIO = """
topology: {kind: leaf_spine, leaves: 2, endpoints_per_leaf: 4, spines: 2, rate: 100Gbps, latency: 1us}
network: congestion_aware
jobs:
  - name: a
    workload: {kind: periodic, ranks: 4, communication: all_reduce, size: 4MB, compute: 200us}
    iterations: 10
  - name: b
    workload: {kind: periodic, ranks: 4, communication: all_to_all, size: 2MB, compute: 150us}
    iterations: 10
"""


class Hooked:
    """A network with something to be done before each advance."""

    def __init__(self, inner: NetworkSimulator, before: Any) -> None:
        self.inner = inner
        self.count = 0
        self._before = before

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self.count += 1
        self._before(self.count)
        return self.inner.advance(flows, horizon_ps)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def run(network: Any = None, release: str = "engine") -> Run:
    scenario = loads(SCENARIO, {"release": release})
    built = build(scenario)
    if network is not None:
        built = dataclasses.replace(built, network=network)
    return simulate(scenario, built)


def main(address: str, log: str, die_at: str) -> None:
    from cosim.protocol.client import connect

    def before(count: int) -> None:
        if count == int(die_at):
            os.kill(os.getpid(), signal.SIGKILL)

    network = connect(address)
    network.log_to(Path(log), resume=Path(log).exists())
    print(run(Hooked(network, before)).digest)


if __name__ == "__main__":
    main(*sys.argv[1:])
