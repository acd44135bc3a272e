"""A small run over a network that the caller chooses: two jobs on a leaf-spine, a few hundred advances.

As a program: ``python -m tests.protocol.small_run DIE_AT ...`` is ``cosim ...``, which kills itself with
SIGKILL before its DIE_AT-th advance over a server.
"""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import sys
from collections.abc import Sequence
from typing import Any

from cosim import cli
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.experiment.simulate import Run, simulate
from cosim.network.flows import FlowBatch
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance, NetworkSimulator
from cosim.protocol import replay_log
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.settings import FailurePolicy
from tests.cli.processes import PATIENCE_S

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
GOOD = (sys.executable, "-c", "from cosim.cli import main; main()", "serve", "--network", "congestion_aware")
"""Serves what the scenario runs on."""


def patient(**settings: Any) -> FailurePolicy:
    """A policy under which only what is gone has died: a machine may be so busy that all else is late."""
    waits = {"start_s": PATIENCE_S, "budget_s": PATIENCE_S, "keepalive_s": PATIENCE_S}
    return FailurePolicy(**{**waits, "answer_s": 4 * PATIENCE_S, **settings})


class Hooked(ForwardingNetwork):
    """A network with something to be done before each advance."""

    def __init__(self, inner: NetworkSimulator, before: Any) -> None:
        super().__init__(inner)
        self.count = 0
        self._before = before

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self.count += 1
        self._before(self.count)
        return self.inner.advance(flows, horizon_ps)


def run(network: Any = None, release: str = "engine") -> Run:
    scenario = loads(SCENARIO, {"release": release})
    built = build(scenario)
    if network is not None:
        built = dataclasses.replace(built, network=network)
    return simulate(scenario, built)


class Killer:
    """Kills a session's server at some calls: in turns before the call goes out, and when it has."""

    def __init__(self, network: RemoteNetwork, moments: Sequence[int]) -> None:
        self.killed: list[int] = []
        self._session = network.session
        self._moments = moments

    def __call__(self, count: int) -> None:
        if count not in self._moments:
            return
        process = self._session.process
        assert process is not None
        self.killed.append(count)
        if len(self.killed) % 2:
            os.kill(process.pid, signal.SIGKILL)
            return
        connection = self._session._session.connection()
        send = connection.send

        def send_and_kill(request: bytes) -> None:
            send(request)
            os.kill(process.pid, signal.SIGKILL)

        connection.send = send_and_kill  # type: ignore[method-assign]


def moments(seed: int, calls: int, count: int) -> list[int]:
    """Random numbers of calls, ascending, none beside another: all in the midst of a run of ``calls``."""
    return [2 * half + 1 for half in sorted(random.Random(seed).sample(range(1, calls // 2 - 1), count))]


def recovered(deaths: int, replays: int) -> str:
    """How it ended, for the table of faults."""
    return f"the same digest after {deaths} deaths, brought back by {replays} calls"


def main(die_at: str, *arguments: str) -> None:
    """``cosim``, killed before its DIE_AT-th advance over a server."""
    count = 0
    advance = RemoteNetwork.advance

    def dying(self: RemoteNetwork, flows: FlowBatch, horizon_ps: int) -> Advance:
        nonlocal count
        count += 1
        if count == int(die_at):
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(self, flows, horizon_ps)

    RemoteNetwork.advance = dying  # type: ignore[method-assign]
    replay_log.BLOCK_BYTES = 1  # each exchange is in the log when the next begins
    sys.argv = ["cosim", *arguments]
    cli.main()


if __name__ == "__main__":
    main(*sys.argv[1:])
