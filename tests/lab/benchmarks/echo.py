"""The way to a server and back: an echo network in a process of its own, and round trips of a run.

``python -m tests.lab.benchmarks.cosim echo``. A round trip is told as it was waited for (the median), and as
the processor seconds of both sides, which other work on the machine changes less.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import cosim
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.experiment.simulate import simulate
from cosim.network.flows import FlowBatch, FlowGroup, FlowTable, flat_table
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.simulator import Advance
from cosim.protocol import frames
from cosim.protocol.client import RemoteNetwork, launch
from cosim.protocol.launcher import ServerProcess
from cosim.testing.conformance.cases import star


def echo_server() -> RemoteNetwork:
    network = launch([sys.executable, "-m", "tests.lab.benchmarks.echo_server"])
    network.open(star(16))
    return network


def _batch(handle: int, table: FlowTable, now: int) -> FlowBatch:
    count = table.num_flows
    group = FlowGroup(handle, table, np.arange(16, dtype=np.int32), (0, handle << 12), release="caller")
    when = np.full(count, now, np.int64)
    return FlowBatch([group], np.full(count, handle, np.int32), np.arange(count), when, when)


WAYS = ("socket", "stream")


@contextmanager
def way(name: str) -> Iterator[None]:
    """How messages go: over the socket, or all over gRPC's stream."""
    listen = frames.listen
    if name == "stream":
        frames.listen = lambda: None
    try:
        yield
    finally:
        frames.listen = listen


def _round_trips(count: int, flows: int) -> tuple[list[float], float]:
    """Seconds of each round trip, and flows per second over all."""
    network = echo_server()
    table = flat_table(
        [k % 16 for k in range(flows)], [(k + 1) % 16 for k in range(flows)], [1000 + k for k in range(flows)]
    )
    if flows == 1:
        table = dataclasses.replace(table, num_participants=16)
    took = []
    now = 0
    for number in range(count):
        batch = _batch(number, table, now)
        began = time.perf_counter()
        now, done = network.advance(batch, now + 10**9)
        took.append(time.perf_counter() - began)
        assert len(done) == flows
    network.close()
    took = took[count // 10 :]
    return took, flows * len(took) / sum(took)


def echo() -> Iterator[str]:
    """Flows per second in batches of 1,000, and the round trip of one flow, each way."""
    yield "echo network in a process of its own; log on disk, answers checked"
    for flows, count in ((1000, 200), (10_000, 40), (1, 3000)):
        for name in WAYS:
            with way(name):
                took, rate = _round_trips(count, flows)
            p50, p99 = np.percentile(took, [50, 99]) * 1e6
            what = f"batches of {flows:>6,} over the {name}"
            yield f"  {what}: {rate:>10,.0f} flows/s; p50 {p50:,.0f} us, p99 {p99:,.0f} us"


ASKED = """
topology: {{kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 500ns}}
network: {network}
release: engine
"""
COMMAND = (sys.executable, "-c", "from cosim.cli import main; main()", "serve", "--network", "fair_share")
SERVED = f"{{command: {json.dumps(COMMAND)}}}"
ALONE, TRIPS = 300, 3000  # transfers before the clock is looked at, and while it is


def _seconds(pid: int) -> float:
    """Processor seconds of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((one / "schedstat").read_text().split()[0]) for one in tasks) / 1e9


def _transfers(network: str) -> tuple[list[float], list[float], str]:
    """Seconds of each transfer that a process of SimPy waits for; the processor's, here and in the server."""
    pids: list[int] = []
    took, spent = [], []
    started = ServerProcess.__init__

    def noted(self: ServerProcess, *arguments: Any, **named: Any) -> None:
        started(self, *arguments, **named)
        pids.append(self.pid)

    def asking(sim: cosim.Simulation) -> Generator[Any, Any, Any]:
        for number in range(ALONE + TRIPS):
            if number == ALONE:
                spent.append([time.process_time(), *map(_seconds, pids)])
            began = time.perf_counter()
            yield sim.transfer(0, 1, "10kB")
            took.append(time.perf_counter() - began)
        spent.append([time.process_time(), *map(_seconds, pids)])

    ServerProcess.__init__ = noted  # type: ignore[method-assign]
    try:
        sim = cosim.open(ASKED.format(network=network))
        sim.process(asking(sim))
        digest = sim.run().digest
    finally:
        ServerProcess.__init__ = started  # type: ignore[method-assign]
    return took[ALONE:], [float(one) / TRIPS for one in np.subtract(spent[1], spent[0])], digest


def decisions() -> Iterator[str]:
    """What a transfer costs that a process waits for: SimPy, engine, the way there and back, and server."""
    yield "a process of SimPy waits for each transfer; released by the engine"
    for what, network in (
        ("fair_share in this process", "fair_share"),
        ("fair_share served", SERVED),
        ("ns-3 RDMA", "{model: ns3_rdma, control: dctcp}"),
    ):
        for name in WAYS if network != "fair_share" else [""]:
            with way(name):
                took, (here, *there), digest = _transfers(network)
            over = f", over the {name}" if name else ""
            yield (
                f"  {what + over:<36} p50 {np.median(took) * 1e6:7,.0f} us; of the processor here "
                f"{here * 1e6:6,.0f} us, server {sum(there) * 1e6:6,.0f} us; digest {digest[:12]}"
            )


class Blind(ForwardingNetwork):
    """A network whose caller may react to every completion at once: without lookahead."""

    def __init__(self, inner: RemoteNetwork) -> None:
        super().__init__(inner)
        self._tables: dict[int, tuple[FlowTable, FlowTable]] = {}

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        groups = [dataclasses.replace(group, table=self._blind(group.table)) for group in flows.groups]
        return self.inner.advance(dataclasses.replace(flows, groups=groups), horizon_ps)

    def _blind(self, table: FlowTable) -> FlowTable:
        known = self._tables.get(id(table))
        if known is None:
            made = dataclasses.replace(table, reaction_ps=np.zeros_like(table.reaction_ps))
            known = self._tables[id(table)] = (table, made)
        return known[1]


SCENARIO = """
topology: {kind: leaf_spine, leaves: 4, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us}
network: fair_share
jobs:
  - {workload: {kind: collective, collective: all_to_all, size: 16MB, ranks: 8}, placement: spread}
  - {workload: {kind: collective, collective: all_reduce, size: 16MB, ranks: 8}, placement: spread}
collectives: {endpoint_delay: 20us}
"""


def lookahead() -> Iterator[str]:
    """Round trips of one run: dependents released by the network, by the engine, and without lookahead."""
    yield "all-to-all and all-reduce at once, 2 x 8 ranks, 16 MB, 20 us between messages; fair_share served"
    for release, blind in (("network", False), ("engine", False), ("engine", True)):
        scenario = loads(SCENARIO, {"release": release})
        inside = simulate(scenario, build(scenario))
        network = launch(COMMAND)
        network.describe()  # starts it
        began = time.perf_counter()
        seen = Blind(network) if blind else network
        done = simulate(scenario, dataclasses.replace(build(scenario), network=seen))
        took = time.perf_counter() - began
        what = f"released by the {release}" + (", without lookahead" if blind else "")
        yield (
            f"  {what}: {done.records.info['advances']} round trips, {took:.2f} s, "
            f"same digest as in-process: {done.digest == inside.digest}"
        )


def section() -> str:
    """See :mod:`tests.lab.benchmarks.cosim`."""
    return "\n".join([*echo(), *decisions(), *lookahead()])
