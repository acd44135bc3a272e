"""The congestion network: ``python -m tests.lab.benchmarks.congestion [pairwise | ns3 | speed | plugins]``

``pairwise``: how far apart controls are. ``ns3``: flow completion times against ns-3's TCP. ``speed``: CPU
seconds and memory for jobs, with counts of messages, flows and updates. ``plugins``: what an update costs, by
how a control is written.
"""

from __future__ import annotations

import importlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.mltcp import Mltcp
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
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
        times = [
            fcts(CongestionNetwork(_control(name), PortSettings(mtu_bytes=MTU)), case) for case in cases()
        ]
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
    return str(importlib.import_module("tests.lab.benchmarks.ns3_congestion").section())


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


_RING, _HALVES = "ring", "halving_doubling"
SIZES = (
    ("2 jobs x 16 ranks x 200, 4 x 25 MB, dctcp", TWO_JOBS, {"CONTROL": "dctcp"}),
    ("2 jobs x 16 ranks x 200, 4 x 25 MB, dcqcn", TWO_JOBS, {"CONTROL": "dcqcn"}),
    ("8 jobs x 128 ranks x 50, 25 MB, halves, dctcp", "", {"ALGORITHM": _HALVES, "CONTROL": "dctcp"}),
    ("8 jobs x 128 ranks x 50, 25 MB, ring, dctcp", "", {"ALGORITHM": _RING, "CONTROL": "dctcp"}),
    ("8 jobs x 128 ranks x 50, 4 x 25 MB, halves, dctcp", "4", {"ALGORITHM": _HALVES, "CONTROL": "dctcp"}),
    ("8 jobs x 128 ranks x 50, 4 x 25 MB, ring, dctcp", "4", {"ALGORITHM": _RING, "CONTROL": "dctcp"}),
)


def _measure(number: int) -> str:
    from cosim.engine.replay import replay

    label, text, changes = SIZES[number]
    if len(text) < 2:
        text = _eight().replace("size: 25MB", f"steps: {text or 1}, size: 25MB")
    for name, value in changes.items():
        text = text.replace(name, value)
    warm = build(loads(text, {"jobs[0].iterations": 1}))
    replay(warm.topology, warm.network, warm.jobs[:1], warm.planner)
    built = build(loads(text))
    inside = 0.0
    network = built.network
    assert isinstance(network, CongestionNetwork)
    run = network._run

    def timed(horizon_ps: int) -> None:
        nonlocal inside
        began = time.process_time()
        run(horizon_ps)
        inside += time.process_time() - began

    network._run = timed  # type: ignore[method-assign]
    began = time.process_time()
    records = replay(built.topology, network, built.jobs, built.planner)
    took = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{label:<50} {records.num_messages:>10,} {network.num_connections:>11,} "
        f"{network.control_updates:>11,} {took:>7.2f} {inside:>7.2f} {peak:>8.0f}"
    )


def speed() -> str:
    """The sizes that the model is meant for, each in a process of its own."""
    columns = (
        f"{'messages':>10} {'connections':>11} {'updates':>11} {'CPU-s':>7} {'in loop':>7} {'peak MB':>8}"
    )
    rows = [f"{'':<50} {columns}"]
    for number in range(len(SIZES)):
        code = f"from tests.lab.benchmarks.congestion import _measure; print(_measure({number}))"
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        rows.append(done.stdout.rstrip())
        print(rows[-1], file=sys.stderr, flush=True)
    return "\n".join(rows)


class NumpyFixed(Control):
    """Fixed windows, as a user would write them in numpy: what it costs to ask"""

    def update(self, c: Any) -> None:
        """The bandwidth-delay product."""
        c.window = c.line * c.base_rtt / 8e12


class NumpyDctcp(Control):
    """DCTCP, as a user would write it in numpy"""

    state: ClassVar[dict[str, float]] = {"alpha": 1.0, "threshold": 1e18, "cut": 0.0}

    def update(self, c: Any) -> None:
        """Alizadeh et al., SIGCOMM 2010."""
        c.alpha = (1 - 1 / 16) * c.alpha + 1 / 16 * c.marked
        cut = (c.marked > 0) & (c.cut == 0)
        smaller = np.maximum(c.window * (1 - 0.5 * c.alpha), 2 * c.mss)
        slow = (c.window < c.threshold) & (c.limited != 0) & ~cut
        more = np.where(slow, c.acked, c.mss * np.minimum(c.acked / c.window, 1)) * c.limited
        c.threshold = np.where(cut, smaller, c.threshold)
        c.window = np.where(cut, smaller, c.window + more)
        c.cut = cut


class CompiledPlugIn(Control):
    """A control with a kernel of its own"""

    kernel = "halve.c"


def plugins() -> str:
    """What an update costs, the network's own work included, by how a control is written."""
    rows = [f"{'us an update, incast of':<28} {'8':>8} {'64':>8} {'512':>8}   flows"]
    kinds: tuple[tuple[str, Callable[[], Control]], ...] = (
        ("dctcp, built in", lambda: _control("dctcp")),
        ("compiled plug-in", CompiledPlugIn),
        ("numpy plug-in, dctcp", NumpyDctcp),
        ("numpy plug-in, one line", NumpyFixed),
    )
    for label, make in kinds:
        cells = []
        for flows in (8, 64, 512):
            text = f"topology: {{kind: leaf_spine, leaves: 1, spines: 1, endpoints_per_leaf: {flows + 1}, "
            text += "rate: 100Gbps, latency: 1us}\nnetwork: fair_share\njobs: [{workload: "
            text += "{kind: collective, collective: barrier, ranks: 2}}]\n"
            one = build(loads(text)).topology
            times = []
            for length in (4, 24):  # the difference has no setting up in it
                size = 2_000_000 * length * 64 // max(flows, 64)
                case = Case("incast", one, tuple((1 + k, 0, size, 0.0) for k in range(flows)))
                best = min(_cost(make(), case) for _ in range(4))
                times.append(best)
            cells.append((times[1][0] - times[0][0]) / (times[1][1] - times[0][1]) * 1e6)
        rows.append(f"{label:<28} " + " ".join(f"{cell:>8.2f}" for cell in cells))
    return "\n".join(rows)


def _cost(control: Control, case: Case) -> tuple[float, int]:
    network = CongestionNetwork(control, PortSettings(mtu_bytes=MTU))
    began = time.process_time()
    fcts(network, case)
    return time.process_time() - began, network.control_updates


SECTIONS: dict[str, Callable[[], str]] = {
    "pairwise": pairwise,
    "ns3": ns3,
    "speed": speed,
    "plugins": plugins,
}

if __name__ == "__main__":
    for section in sys.argv[1:] or SECTIONS:
        print(SECTIONS[section]())
        print()
