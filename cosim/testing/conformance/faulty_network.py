"""A network that breaks one rule on purpose: one switch for each fault, and the check that must notice it.

Faults of an answer strike from the tenth answer on, as real ones come late; all else is the network behind.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cosim.errors import NetworkError
from cosim.fabric.changes import LinkChange, LinkChanges, RouteChange
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import I64, ON_START, Completions, FlowBatch, FlowGroup, FlowTable
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import (
    Advance,
    Capabilities,
    NetworkSimulator,
    NetworkStatistics,
    QueueSample,
    RateSample,
)
from cosim.testing.conformance.cases import LATENCY_PS
from cosim.topology.graph import Topology
from cosim.units import NEVER

PHYSICS = {
    "too_fast": "line_rate",
    "no_latency": "latency",
    "unshared": "shares",
    "reorder": "order",
    "causeless": "ties",
    "unmerged": "merge",
    "slow_marks": "marks",
    "lost_bytes": "statistics",
    "random": "determinism",
    "cut_dependent": "cuts",
    "unrepeatable": "replay",
    "forgotten_queue": "queues",
    "lasting_rates": "rates",
}
"""Faults of what is simulated; they show through a server too."""

NETWORK_FAULTS = {
    "nameless": "describe",
    "reopens": "states",
    "keeps_handles": "handles",
    "first_repeat": "repeats",
    "unbound": "endpoints",
    "first_come": "symmetry",
    "unchanging": "link_changes",
    "deaf_to_changes": "live_changes",
    "unclaimed": "unclaimed",
    "at_the_switch_at_once": "switch_ends",
    "computes_at_once": "computations",
    "lax": "causality",
    "time_back": "time",
    "beyond_grant": "grant",
    "unknown_id": "ids",
    "crash": "endurance",
    "wrong_peek": "peek",
    "split_instant": "one_instant",
    "overrun": "lookahead",
    "late_release": "dependents",
    "late_start": "start_dependents",
    "eager": "given_later",
    "wrong_starts": "starts",
    "off_quantum": "quantum",
    **PHYSICS,
}
"""Every fault, and the check that fails because of it."""

STRIKE = 10
CRASH = 50
LARGE = 2_000_000
_COLUMNS = ("handle", "index", "start_ps", "time_ps", "cause_ps")


class StillNetwork(CongestionAwareNetwork):
    """A network whose links are for good, of which less is claimed that another fault could fail."""

    link_changes = live_changes = False


def model_for(fault: str) -> NetworkSimulator:
    """A network that can have the fault."""
    if fault in ("forgotten_queue", "deaf_to_control"):
        return CongestionNetwork(Dctcp(), PortSettings())
    shares = (
        "unchanging",
        "deaf_to_changes",
        "lasting_rates",
        "own_rates",
        "no_detours",
        "at_the_switch_at_once",
    )
    return FairShareNetwork() if fault in shares else StillNetwork()


class FaultInNetwork(ForwardingNetwork):
    """``inner`` with one of :data:`NETWORK_FAULTS`."""

    def __init__(self, inner: NetworkSimulator, fault: str) -> None:
        if fault not in NETWORK_FAULTS:
            raise ValueError(f"no fault {fault!r}; there are {', '.join(NETWORK_FAULTS)}")
        super().__init__(inner)
        self.fault = fault
        self._answers = 0
        self._granted = 0
        self._lied = False
        self._is_open = False
        self._num_endpoints = 0
        self._kept: Completions | None = None
        self._closed_handles: set[int] = set()
        self._sent: RateSample | None = None

    def describe(self) -> Capabilities:
        """Claims what isn't so."""
        there = self.inner.describe()
        claims: dict[str, dict[str, Any]] = {
            "nameless": {"name": ""},
            "first_come": {"symmetric": True},
            "computes_at_once": {"computations": True},
            "unclaimed": {"dependent_flows": False},
            "off_quantum": {"quantum_ps": there.quantum_ps * 1000},
        }
        return replace(there, **claims.get(self.fault, {}))

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Faults of the network as it is built."""
        if self.fault == "reopens" and self._is_open:
            return
        if self.fault == "no_latency":
            topology = replace(topology, link_latency_ps=np.zeros_like(topology.link_latency_ps))
        if self.fault == "unchanging" and topology.changes is not None:
            topology = replace(topology, changes=LinkChanges(()))
        self._num_endpoints = topology.num_endpoints
        self.inner.open(topology, seed, options)
        self._is_open = True

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """Faults of what is taken, and of what is answered."""
        if self.fault == "crash" and self._answers >= CRASH:
            raise RuntimeError("crashed")
        if flows.groups or len(flows.start_ps):
            flows = self._spoil(flows, horizon_ps)
        if self.fault == "lax":
            horizon_ps = max(horizon_ps, self._granted)
        granted, done = self.inner.advance(flows, horizon_ps)
        self._answers += 1
        if self.fault == "split_instant":
            done = self._hold_back(granted, done)
        elif self.fault == "wrong_starts" and len(done):
            done = replace(done, start_ps=np.maximum(done.start_ps - 1000, 0))
        elif self.fault == "keeps_handles" and len(done):
            self._closed_handles |= {*done.handle.tolist()}
        elif self._answers >= STRIKE and not self._lied:
            granted, done = self._lie(granted, done)
        self._granted = max(granted, self._granted)
        return Advance(granted, done)

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """deaf_to_changes: nothing changes."""
        if self.fault != "deaf_to_changes":
            self.inner.change(changes)

    def peek(self) -> int | None:
        """wrong_peek: a picosecond late."""
        found = self.inner.peek()
        return found + 1 if found is not None and self.fault == "wrong_peek" else found

    def statistics(self) -> NetworkStatistics:
        """lost_bytes: forgets the last link."""
        found = self.inner.statistics()
        return replace(found, link_bytes=found.link_bytes[:-1]) if self.fault == "lost_bytes" else found

    def queues(self, links: I64, now_ps: int) -> QueueSample:
        """forgotten_queue: nothing waits anywhere."""
        found = self.inner.queues(links, now_ps)
        return found._replace(queue_bytes=np.zeros(len(links))) if self.fault == "forgotten_queue" else found

    def rates(self) -> RateSample:
        """lasting_rates: what has sent is told for ever."""
        found = self.inner.rates()
        if self._sent is None or len(found.src):
            self._sent = found
        return self._sent if self.fault == "lasting_rates" else found

    # -- what is taken -------------------------------------------------------------------------------

    def _spoil(self, flows: FlowBatch, horizon_ps: int) -> FlowBatch:
        groups = [self._spoil_group(group, horizon_ps) for group in flows.groups]
        start = flows.start_ps.copy()
        count = groups[0].table.num_flows if groups else 0
        table = groups[0].table if groups else None
        if self.fault == "causeless" and len(start) == 3:
            return replace(flows, groups=groups, cause_ps=start)
        if self.fault == "unmerged":  # what was given before goes first
            cause = np.where(start == self._granted, start, flows.cause_ps)
            return replace(flows, groups=groups, cause_ps=cause)
        if self.fault == "lax":
            start = np.maximum(start, self._granted)
        elif self.fault == "reorder" and table is not None and count == 3 and (table.src == 0).all():
            start[0] += 1_000_000_000
        elif (
            self.fault == "slow_marks" and table is not None and count == 3 and (table.src == table.dst).all()
        ):
            start += self.inner.describe().quantum_ps
        elif self.fault == "eager" and table is not None and not len(start) and count == 2:
            zero, when = np.zeros(1, np.int64), np.full(1, LATENCY_PS, np.int64)
            return FlowBatch(groups, zero.astype(np.int32), zero, when, when)
        return replace(flows, groups=groups, start_ps=start, cause_ps=np.minimum(flows.cause_ps, start))

    def _spoil_group(self, group: FlowGroup, horizon_ps: int) -> FlowGroup:
        if self.fault == "keeps_handles" and group.handle in self._closed_handles:
            raise NetworkError(f"handle {group.handle} is still in use")
        if self.fault == "unbound":
            return replace(group, endpoints=np.arange(len(group.endpoints), dtype=np.int32))
        if self.fault == "unclaimed":
            return replace(group, release="caller")
        if self.fault == "at_the_switch_at_once" and (group.endpoints >= self._num_endpoints).any():
            nothing = np.zeros_like(group.table.size_bytes)
            return replace(group, table=replace(group.table, size_bytes=nothing))
        table = self._spoil_table(group.table, horizon_ps)
        return group if table is group.table else replace(group, table=table)

    def _spoil_table(self, table: FlowTable, horizon_ps: int) -> FlowTable:
        count, size, large = table.num_flows, table.size_bytes, table.size_bytes > LARGE
        waits = np.diff(table.dep_ptr) > 0
        for_start = bool((table.dep_kind == ON_START).any())
        if self.fault == "too_fast" and count == 1:
            return replace(table, size_bytes=np.where(large, size // 4, size))
        if self.fault == "unshared" and count == 3 and large.all():
            return replace(table, size_bytes=size // 4)
        if self.fault == "random" and self._answers >= STRIKE:
            return replace(table, size_bytes=size + 1 + int.from_bytes(os.urandom(2), "little"))
        if self.fault == "cut_dependent" and count == 8 and horizon_ps < NEVER:
            return replace(table, size_bytes=size + 50_000)
        if self.fault == "unrepeatable" and count == 14:
            return replace(table, size_bytes=size + 50_000)
        if self.fault == "first_repeat" and not table.is_flat:
            return replace(table, size_bytes=np.full_like(size, size[0]))
        if self.fault == "overrun":
            some = (table.reaction_ps > 0) & (table.reaction_ps < NEVER)
            return replace(table, reaction_ps=np.where(some, NEVER, table.reaction_ps))
        if self.fault == "late_release" and waits.any() and count == 5:
            return replace(table, delay_ps=table.delay_ps + waits * self.inner.describe().quantum_ps)
        if self.fault == "late_start" and for_start:
            return replace(table, delay_ps=table.delay_ps + waits * self.inner.describe().quantum_ps)
        return table

    # -- what is answered ----------------------------------------------------------------------------

    def _lie(self, granted: int, done: Completions) -> Advance:
        """Once in a session."""
        self._lied = True
        if self.fault == "time_back" and not len(done) and self._granted > 0:
            return Advance(self._granted - 1, done)
        if self.fault == "beyond_grant" and len(done):
            return Advance(int(done.time_ps.min()) - 1, done)
        if self.fault == "unknown_id":
            return Advance(granted, Completions.join([done, _one(1 << 20, 0, granted)]))
        self._lied = False
        return Advance(granted, done)

    def _hold_back(self, granted: int, done: Completions) -> Completions:
        """Tell one of several completions at the grant with the next answer."""
        if self._kept is not None:
            done, self._kept = Completions.join([done, self._kept]), None
        elif len(done) > 1 and granted == done.time_ps[-1]:
            self._kept = done.take(np.array([len(done) - 1]))
            done = done.take(np.arange(len(done) - 1))
        return done


def _one(handle: int, index: int, time_ps: int) -> Completions:
    when = np.array([time_ps], np.int64)
    return Completions(np.array([handle], np.int32), np.array([index], np.int64), when, when, when)
