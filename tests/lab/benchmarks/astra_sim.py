"""A closed loop with ASTRA-sim's network beside ASTRA-sim: ``python -m tests.lab.benchmarks.astra_sim``.

A training iteration is exported as Chakra traces, one for each rank. ASTRA-sim's binary runs them by itself;
cosim reads the same traces and releases every message of them to ASTRA-sim's network behind gRPC, and to its
own model of it. Three times in turn, the slow way once; medians are printed, and how far apart ranks finish.
Wall time has a server's start in it, CPU time is that of all processes. Needs ASTRASIM_ROOT
(adapters/astrasim/README.md).
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cosim
from cosim.engine.records import Records
from cosim.engine.replay import replay
from cosim.experiment.build import Built, build
from cosim.experiment.translate import Translation, translate
from cosim.formats.astra_sim.config import AstraSimFormat
from cosim.formats.astra_sim.run import binary, start
from cosim.network.flows import FlowBatch
from cosim.network.simulator import Advance, NetworkSimulator
from cosim.protocol import adapters
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.settings import Target
from cosim.units import PS_PER_NS

TRAINING = """
name: training
topology: {kind: astra_sim, topology: [TOPOLOGY], npus_count: [RANKS], bandwidth: [50.0], latency: [500.0]}
network: congestion_aware
collectives: {all_reduce: ring, sizing: floor, splits: 4, active_chunks: 2, endpoint_delay: 10ns}
jobs:
  - workload: WORKLOAD
"""
MODEL = """{kind: transformer, layers: 12, hidden: 2048, heads: 16, vocabulary: 51200, sequence: 2048,
      data_parallel: RANKS, gpu: h100-sxm}"""
RANKS = 64
TURNS = 3


class Timed(RemoteNetwork):
    """Adds up the time in ASTRA-sim's event loop, and counts round trips."""

    def __init__(self) -> None:
        super().__init__(Target(command=tuple(adapters.command("astrasim"))))
        self.run_s = 0.0
        self.trips = 0

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """As it is, and counted."""
        done = super().advance(flows, horizon_ps)
        assert self.last is not None
        self.run_s += self.last.simulator_ns / 1e9
        self.trips += 1
        return done


@dataclass(frozen=True)
class Cost:
    """One run: wall and CPU time in all, wall time in the simulator's event loop, and the answer."""

    wall_s: float
    cpu_s: float
    run_s: float
    trips: int
    finish_ps: tuple[int, ...]


def whole(exported: Translation) -> Cost:
    """ASTRA-sim's own binary on the export."""
    config = exported.format
    assert isinstance(config, AstraSimFormat)
    folder = exported.out.resolve()
    arguments = config.arguments(exported.source, str(folder), False)
    ran = start(binary("aware"), arguments, folder / "run", exported.source.topology.num_endpoints, 3600.0)
    ends = tuple(ran.finish_ns[npu] * PS_PER_NS for npu in sorted(ran.finish_ns))
    return Cost(ran.wall_s, ran.cpu_s, ran.wall_s, 0, ends)


def _cpu_s() -> float:
    """Of this process and of those that it waited for."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def loop(
    built: Built, make: Callable[[], NetworkSimulator], release: Literal["network", "engine"]
) -> tuple[Cost, Records]:
    """The traces in cosim's engine, on a network."""
    began, before = time.perf_counter(), _cpu_s()
    with closing(make()) as network:
        records = replay(built.topology, network, built.jobs, built.planner, release=release)
    wall = time.perf_counter() - began
    run_s, trips = (network.run_s, network.trips) if isinstance(network, Timed) else (wall, 0)
    return Cost(wall, _cpu_s() - before, run_s, trips, tuple(records.finish_ps[0].tolist())), records


def measure(topology: str, ranks: int) -> str:
    """One row for each way."""
    text = TRAINING.replace("TOPOLOGY", topology).replace("WORKLOAD", MODEL).replace("RANKS", str(ranks))
    with tempfile.TemporaryDirectory(prefix="cosim-") as folder:
        exported = translate(cosim.loads(text), "astra-sim", Path(folder) / "export")
        traces = {"jobs": [{"workload": {"kind": "chakra", "path": str(exported.out)}}]}
        read = cosim.loads(text).with_settings(traces)
        built = build(read)
        ways: dict[str, Callable[[], Cost]] = {"ASTRA-sim, the whole binary": lambda: whole(exported)}
        for release in ("network", "engine"):
            who = "by the network" if release == "network" else "by SimPy"
            ways[f"ASTRA-sim behind gRPC, released {who}"] = lambda r=release: loop(built, Timed, r)[0]  # type: ignore[misc]
        ways["congestion_aware in-process"] = lambda: loop(built, lambda: build(read).network, "network")[0]
        costs: dict[str, list[Cost]] = {name: [] for name in ways}
        for turn in range(TURNS):
            for name, run in ways.items():
                if turn == 0 or "SimPy" not in name:
                    costs[name].append(run())
        messages = loop(built, lambda: build(read).network, "network")[1].num_messages
    return _table(f"{topology}({ranks}), {messages:,} messages", costs)


def _table(title: str, costs: dict[str, list[Cost]]) -> str:
    heads = f"{'wall':>8} {'ratio':>6} {'CPU':>8} {'ratio':>7} {'loop':>8} {'trips':>6} {'iteration':>14}"
    lines = [f"{title:<46} {heads}"]
    base: tuple[float, float] | None = None
    for name, mine in costs.items():
        wall = statistics.median(cost.wall_s for cost in mine)
        cpu = statistics.median(cost.cpu_s for cost in mine)
        base = base or (wall, cpu)
        run = statistics.median(cost.run_s for cost in mine)
        times = f"{wall:>7.2f}s {wall / base[0]:>6.2f} {cpu:>7.3f}s {cpu / base[1]:>7.3f} {run:>7.2f}s"
        iteration = f"{max(mine[0].finish_ps) / 1e6:>11.3f} us"
        lines.append(f"  {name:<44} {times} {mine[0].trips:>6} {iteration}")
    first = next(iter(costs.values()))[0].finish_ps
    apart = max(
        abs(a - b) for mine in costs.values() for c in mine for a, b in zip(c.finish_ps, first, strict=True)
    )
    lines.append(f"  ranks finish at most {apart / PS_PER_NS:g} ns apart")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    measure("Ring", 8)  # compiles the loops and reads the libraries, before anything is measured
    for topology in ("Ring", "Switch"):
        print(measure(topology, RANKS), flush=True)


if __name__ == "__main__":
    main()
