"""Cost of the loop: how much of a run's time is not ns-3's, and that it runs what ns-3 alone runs."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from cosim.engine.replay import replay
from cosim.experiment.build import Built, build
from cosim.experiment.scenario import loads
from cosim.network.flows import FlowBatch, FlowTable
from cosim.network.simulator import Advance
from cosim.protocol import adapters
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.settings import SessionSettings, Target
from tests.adapters.ns3_worlds import alone_text, run_alone

SCENARIO = """
topology: {kind: leaf_spine, endpoints_per_leaf: 4, leaves: 4, spines: 4, rate: 100Gbps, latency: 1us}
network: fair_share
jobs:
  - workload: {kind: collective, collective: all_reduce, size: SIZE, ranks: 16}
collectives: {all_reduce: ring}
"""
WANTED = SessionSettings(transport="cubic", mtu_bytes=9000)


class Measured(RemoteNetwork):
    """Counts round trips and adds up where the time went. ``lookahead=False``: reaction delays are zero."""

    def __init__(self, *, lookahead: bool = True) -> None:
        super().__init__(Target(command=tuple(adapters.command("ns3"))), WANTED)
        self.trips = 0
        self.run_ns = 0
        self.server_ns = 0
        self._lookahead = lookahead
        self._tables: dict[int, tuple[FlowTable, FlowTable]] = {}

    def _without(self, table: FlowTable) -> FlowTable:
        if id(table) not in self._tables:
            zero = np.zeros_like(table.reaction_ps)
            self._tables[id(table)] = (table, dataclasses.replace(table, reaction_ps=zero))
        return self._tables[id(table)][1]

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """As it is, and counted."""
        if not self._lookahead and flows.groups:
            groups = [dataclasses.replace(g, table=self._without(g.table)) for g in flows.groups]
            flows = dataclasses.replace(flows, groups=groups)
        done = super().advance(flows, horizon_ps)
        assert self.last is not None
        self.trips += 1
        self.run_ns += self.last.simulator_ns
        self.server_ns += self.last.server_ns
        return done


@dataclass(frozen=True)
class Cost:
    """One run. Times in seconds."""

    wall: float
    run: float
    server: float
    trips: int
    events: int
    digest: str

    @property
    def overhead(self) -> float:
        """Share of the run that is not ns-3's event loop."""
        return 1 - self.run / self.wall


def measure(
    built: Built, release: Literal["network", "engine"], *, lookahead: bool = True, log: Path | None = None
) -> Cost:
    """Run it once, on a server that is up already."""
    remote = Measured(lookahead=lookahead)
    if log is not None:
        remote.log_to(log)
    remote.describe()
    began = time.perf_counter()
    replay(built.topology, remote, built.jobs, built.planner, release=release)
    wall = time.perf_counter() - began
    last = remote.last
    assert last is not None
    digest = f"{last.digest.a:016x}{last.digest.b:016x}"
    return Cost(wall, remote.run_ns / 1e9, remote.server_ns / 1e9, remote.trips, last.events, digest)


def section() -> str:
    """The table."""
    small = build(loads(SCENARIO.replace("SIZE", "64kB")))
    for release in ("network", "engine"):  # compile, before anything is measured
        measure(small, release)
    built = build(loads(SCENARIO.replace("SIZE", "16MB")))
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        rows["released by ns-3"] = measure(built, "network", log=log)
        alone = run_alone(alone_text(log, {"transport": "cubic", "mtu_bytes": 9000}))
    rows["released by SimPy"] = measure(built, "engine")
    rows["released by ns-3, no lookahead"] = measure(built, "network", lookahead=False)
    rows["released by SimPy, no lookahead"] = measure(built, "engine", lookahead=False)
    lines = [
        "16 ranks, 16 MB ring all-reduce, leaf-spine 4x4 at 100 Gb/s, TCP Cubic, MTU 9000; 480 messages",
        "",
        f"{'':<32} {'wall':>8} {'in Run':>8} {'server':>8} {'outside':>8} {'trips':>6} {'events':>8}  digest",
    ]
    for name, cost in rows.items():
        lines.append(
            f"{name:<32} {cost.wall:>7.3f}s {cost.run:>7.3f}s {cost.server:>7.3f}s {cost.overhead:>8.1%} "
            f"{cost.trips:>6} {cost.events:>8}  {cost.digest[:16]}"
        )
    lines.append(
        f"{'C++ alone, no server':<32} "
        f"{alone['wall_ns'] / 1e9:>7.3f}s {alone['run_ns'] / 1e9:>7.3f}s {'':>8} "
        f"{1 - alone['run_ns'] / alone['wall_ns']:>8.1%} {0:>6} {alone['events']:>8}  {alone['digest'][:16]}"
    )
    same = {(cost.events, cost.digest) for cost in rows.values()} == {(alone["events"], alone["digest"])}
    lines += [
        "",
        f"events and completions {'are the same in all of them' if same else 'DIFFER'}",
        f"outside ns-3's loop: {rows['released by ns-3'].overhead:.1%} with dependent flows (aim: 5 %), "
        f"{rows['released by SimPy'].overhead:.1%} released by SimPy (aim: 20 %)",
    ]
    return "\n".join(lines)
