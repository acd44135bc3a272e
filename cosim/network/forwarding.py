"""A network in front of another one that hands everything on: base of those that change or watch a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cosim.fabric.changes import LinkChange, RouteChange
from cosim.network.flows import I64, FlowBatch
from cosim.network.simulator import (
    Advance,
    Capabilities,
    NetworkSimulator,
    NetworkStatistics,
    QueueSample,
    RateSample,
)
from cosim.topology.graph import Topology


class ForwardingNetwork(NetworkSimulator):
    """``inner``, as it is. See :class:`~cosim.network.simulator.NetworkSimulator`."""

    def __init__(self, inner: NetworkSimulator) -> None:
        if not isinstance(inner, NetworkSimulator) or inner is self:
            raise TypeError(
                f"{type(self).__name__} is in front of {inner!r:.80}; it should be another network"
            )
        self.inner = inner

    @property
    def elsewhere(self) -> bool:
        """Where the other one runs."""
        return self.inner.elsewhere

    def describe(self) -> Capabilities:
        """What the other one can do."""
        return self.inner.describe()

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Open the other one."""
        self.inner.open(topology, seed, options)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """What the other one answers."""
        return self.inner.advance(flows, horizon_ps)

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self.inner.change(changes)

    def peek(self) -> int | None:
        """What the other one says."""
        return self.inner.peek()

    def tune(self, values: Mapping[str, Any], now_ps: int) -> None:
        """Have the other one tuned."""
        self.inner.tune(values, now_ps)

    @property
    def takes_paths(self) -> bool:
        """As the other one."""
        return self.inner.takes_paths

    def queues(self, links: I64, now_ps: int) -> QueueSample:
        """Those of the other one."""
        return self.inner.queues(links, now_ps)

    def check_queues(self, topology: Topology, links: I64) -> None:
        """Refuse what the other one refuses."""
        self.inner.check_queues(topology, links)

    def rates(self) -> RateSample:
        """Those of the other one."""
        return self.inner.rates()

    def has_work(self) -> bool:
        """What the other one says."""
        return self.inner.has_work()

    def statistics(self) -> NetworkStatistics:
        """Those of the other one."""
        return self.inner.statistics()

    def close(self) -> None:
        """Close the other one."""
        self.inner.close()

    def parts(self) -> Sequence[NetworkSimulator]:
        """Those of the other one."""
        return self.inner.parts()

    def log_to(self, path: Path, *, resume: bool = False) -> None:
        """Have the other one keep its log there."""
        self.inner.log_to(path, resume=resume)
