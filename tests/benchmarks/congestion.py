"""The congestion network: ``python -m tests.benchmarks.congestion [pairwise | ns3 | speed]``.

``pairwise``: how far apart controls are. ``ns3``: flow completion times against ns-3's TCP. ``speed``: CPU
seconds and memory for jobs, with counts of messages, flows and updates.
"""

from __future__ import annotations

import importlib
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.network.congestion.control import Control
from cosim.network.congestion.controls.mltcp import Mltcp
from cosim.network.congestion.network import CongestionNetwork, Ports
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.network.simulator import NetworkSimulator
from cosim.registry import find
from cosim.topology.graph import Topology
from cosim.units import NEVER

F64 = NDArray[np.float64]
CONTROLS = ("dctcp", "dcqcn", "timely", "swift", "hpcc", "cubic", "newreno", "fixed")
MTU = 9000


@dataclass(frozen=True)
class Case:
    """Flows (source, destination, bytes, start in us) on a topology."""

    name: str
    topology: Topology
    flows: tuple[tuple[int, int, int, float], ...]


def _fabric(oversubscription: int) -> Topology:
    text = f"""
topology: {{kind: leaf_spine, leaves: 4, spines: 4, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us,
           oversubscription: {oversubscription}}}
network: fair_share
jobs: [{{workload: {{kind: collective, collective: barrier, ranks: 2}}}}]
"""
    return build(loads(text)).topology


def cases() -> list[Case]:
    """Incasts, a permutation at two oversubscriptions, and flows that come one after another."""
    one, four = _fabric(1), _fabric(4)
    to = np.random.default_rng(7).permutation(16).tolist()
    permutation = tuple((src, dst, 4_000_000, 0.0) for src, dst in enumerate(to) if src != dst)
    return [
        Case("incast 8:1, 4 MB", one, tuple((4 + k, 0, 4_000_000, 0.0) for k in range(8))),
        Case("late comers, 8 MB", one, tuple((4 + k, 0, 8_000_000, 300.0 * k) for k in range(4))),
        Case("permutation 1:1, 4 MB", one, permutation),
        Case("permutation 4:1, 4 MB", four, permutation),
    ]


def fcts(network: NetworkSimulator, case: Case) -> F64:
    """Flow completion times, us."""
    network.open(case.topology, 0)
    src, dst, size, at = (list(column) for column in zip(*case.flows, strict=True))
    count, ends = len(case.flows), case.topology.num_endpoints
    table = flat_table(src, dst, size, num_participants=ends, reaction_ps=NEVER)
    group = FlowGroup(0, table, np.arange(ends, dtype=np.int32), (0, 0), coflow_bytes=sum(size))
    start = np.array([round(us * 1e6) for us in at], np.int64)
    number = np.arange(count, dtype=np.int64)
    batch = FlowBatch([group], np.zeros(count, np.int32), number, start, start)
    took = np.full(count, -1.0)
    while (took < 0).any():
        done = network.advance(batch, NEVER).completions
        batch = FlowBatch()
        took[done.index] = (done.time_ps - done.start_ps) / 1e6
    network.close()
    return took


def _control(name: str) -> Control:
    if name.startswith("mltcp over "):
        return Mltcp(over=find("cosim.controls", name.removeprefix("mltcp over "))())
    made: Control = find("cosim.controls", name)()
    return made


def pairwise() -> str:
    """Mean distance of flow completion times between any two controls, over all cases."""
    found = {}
    names = [*CONTROLS, "mltcp over dctcp"]
    for name in names:
        times = [fcts(CongestionNetwork(_control(name), Ports(mtu_bytes=MTU)), case) for case in cases()]
        found[name] = np.concatenate(times)
    lines = ["mean distance of flow completion times, |row / column - 1|", ""]
    lines.append(f"{'':<17}" + "".join(f"{name.replace('mltcp over ', 'ml '):>9}" for name in names))
    least = min((float(np.abs(found[a] / found[b] - 1).mean()), a, b) for a in names for b in names if a < b)
    for a in names:
        cells = [f"{np.abs(found[a] / found[b] - 1).mean():>9.1%}" if a != b else f"{'':>9}" for b in names]
        lines.append(f"{a:<17}" + "".join(cells))
    return "\n".join([*lines, "", f"nearest: {least[1]} and {least[2]}, {least[0]:.2%} apart"])


def ns3() -> str:
    """Errors by control, orders, and the ratio of wall times."""
    return str(importlib.import_module("tests.benchmarks.ns3_congestion").section())


TWO_JOBS = """
topology: {kind: leaf_spine, leaves: 8, spines: 4, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us,
           oversubscription: 1}
network: {model: congestion, control: CONTROL}
jobs:
  - name: a
    workload: {kind: periodic, compute: 1ms, size: 25MB, communication: all_reduce, ranks: 16, steps: 4}
    iterations: 200
    placement: spread
  - name: b
    workload: {kind: periodic, compute: 1ms, size: 25MB, communication: all_reduce, ranks: 16, steps: 4}
    iterations: 200
    placement: spread
"""
EIGHT_JOBS = """
topology: {kind: leaf_spine, leaves: 32, spines: 16, endpoints_per_leaf: 32, rate: 100Gbps, latency: 1us,
           oversubscription: 2}
network: {model: congestion, control: CONTROL}
collectives: {all_reduce: ALGORITHM}
jobs:
"""


def _eight() -> str:
    job = (
        "  - {{name: j{0}, iterations: 50, placement: {{kind: packed}}, start: {1}us, workload: "
        "{{kind: periodic, compute: 5ms, size: 25MB, communication: all_reduce, ranks: 128}}}}\n"
    )
    return EIGHT_JOBS + "".join(job.format(k, 500 * k) for k in range(8))


def speed() -> str:
    """The two sizes that the model is meant for."""
    from cosim.engine.replay import replay

    rows = [f"{'':<47} {'messages':>10} {'updates':>10} {'CPU-s':>7} {'peak MB':>8}"]
    for label, text, control in (
        ("2 jobs x 16 ranks x 200, 4 x 25 MB, dctcp", TWO_JOBS, "dctcp"),
        ("2 jobs x 16 ranks x 200, 4 x 25 MB, dcqcn", TWO_JOBS, "dcqcn"),
        (
            "8 jobs x 128 ranks x 50, 25 MB, dctcp",
            _eight().replace("ALGORITHM", "halving_doubling"),
            "dctcp",
        ),
        ("8 jobs x 128 ranks x 50, 25 MB, ring, dctcp", _eight().replace("ALGORITHM", "ring"), "dctcp"),
        (
            "8 jobs x 128 ranks x 50, 4 x 25 MB, ring, dctcp",
            _eight().replace("ALGORITHM", "ring").replace("size: 25MB", "steps: 4, size: 25MB"),
            "dctcp",
        ),
    ):
        warm = build(loads(text.replace("CONTROL", control), {"jobs[0].iterations": 1}))
        replay(warm.topology, warm.network, warm.jobs[:1], warm.planner)
        built = build(loads(text.replace("CONTROL", control)))
        began = time.process_time()
        records = replay(built.topology, built.network, built.jobs, built.planner)
        took = time.process_time() - began
        assert isinstance(built.network, CongestionNetwork)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            f"{label:<47} {records.num_messages:>10,} {built.network.control_updates:>10,} "
            f"{took:>7.2f} {peak:>8.0f}"
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return "\n".join(rows)


SECTIONS: dict[str, Callable[[], str]] = {"pairwise": pairwise, "ns3": ns3, "speed": speed}

if __name__ == "__main__":
    for section in sys.argv[1:] or SECTIONS:
        print(SECTIONS[section]())
        print()
