"""A network that answers at once: every flow takes a microsecond. What is left is the price of the way there.

As a program it serves itself: ``python -m tests.lab.benchmarks.echo_server --address ADDRESS``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from cosim.network.flows import Completions, FlowBatch
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.topology.graph import Topology
from cosim.units import NEVER

TAKES_PS = 1_000_000


class EchoNetwork(NetworkSimulator):
    """Flows given for t complete at t + 1 us, all on their own."""

    def describe(self) -> Capabilities:
        return Capabilities("echo", dependent_flows=False)

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        del seed, options
        self._links = topology.num_links
        self._pending: list[tuple[Any, Any, Any]] = []
        self._next = NEVER
        self._count = 0

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        if len(flows.start_handle):
            self._pending.append((flows.start_handle, flows.start_index, flows.start_ps))
            self._next = min(self._next, int(flows.start_ps.min()) + TAKES_PS)
        grant = min(horizon_ps, self._next)
        if grant < self._next or not self._pending:
            none = np.empty(0, np.int64)
            return Advance(grant, Completions(none.astype(np.int32), none, none, none))
        handle, index, start = (np.concatenate([p[c] for p in self._pending]) for c in range(3))
        due = start + TAKES_PS <= grant
        self._count += int(due.sum())
        left = ~due
        self._pending = [(handle[left], index[left], start[left])] if left.any() else []
        self._next = int(start[left].min()) + TAKES_PS if left.any() else NEVER
        return Advance(grant, Completions(handle[due], index[due], start[due], start[due] + TAKES_PS))

    def peek(self) -> int | None:
        return self._next if self._pending else None

    def statistics(self) -> NetworkStatistics:
        zero = np.zeros(self._links, np.int64)
        return NetworkStatistics(zero, 1, zero.reshape(1, -1), self._count, self._count, 0)

    def close(self) -> None:
        self._pending = []


def main() -> None:
    from cosim.protocol.server import run_server
    from cosim.protocol.session import ServerConfig

    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    run_server(ServerConfig(EchoNetwork), parser.parse_args().address)


if __name__ == "__main__":
    main()
