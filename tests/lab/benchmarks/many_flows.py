"""Many connections share each port: ``python -m tests.lab.benchmarks.many_flows [CONTROL:RANKS...]``

An all-to-all of 64 MiB a rank, every rank to each other at once, on a leaf-spine of 100 Gb/s with ECMP. A row
has CPU-seconds of the network alone, updates of the control, the process's peak of memory up to then, mean
and last completion; up to 64 ranks, both with ``accuracy: exact`` and ``1%``, and how far the second's flows
are from the first's: in the mean, and 99 of 100. *Jitter* is how far flows of ``exact`` move if each starts
up to a nanosecond later: no model of the scenario can know more.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace

import numpy as np

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.network.congestion.network import CongestionNetwork
from cosim.topology.graph import Topology
from tests.lab.benchmarks.congestion import F64, Case, fcts

PER_LEAF = {16: 4, 32: 8, 64: 8, 128: 16, 256: 16, 512: 32}
PER_RANK = 64 << 20
EXACT_UP_TO = 64
ROWS = (
    *(("dctcp", ranks) for ranks in (32, 64, 128, 256, 512)),
    *((control, ranks) for control in ("hpcc", "dcqcn", "swift", "timely", "nscc") for ranks in (64, 256)),
)


def network_of(control: str, ranks: int, accuracy: str) -> tuple[CongestionNetwork, Topology]:
    """The congestion network of a row, and its fabric."""
    each = PER_LEAF[ranks]
    text = f"""
topology: {{kind: leaf_spine, leaves: {ranks // each}, spines: {each}, endpoints_per_leaf: {each},
           rate: 100Gbps, latency: 1us}}
network: {{model: congestion, control: {control}, accuracy: {accuracy}}}
jobs: [{{workload: {{kind: collective, collective: barrier, ranks: 2}}}}]
"""
    built = build(loads(text))
    assert isinstance(built.network, CongestionNetwork)
    return built.network, built.topology


def all_to_all(topology: Topology, ranks: int) -> Case:
    """All flows at once."""
    pairs = [(src, dst) for src in range(ranks) for dst in range(ranks) if src != dst]
    return Case("all-to-all", topology, tuple((src, dst, PER_RANK // ranks, 0.0) for src, dst in pairs))


def once(control: str, ranks: int, accuracy: str, *, jitter: bool = False) -> tuple[F64, float, int]:
    """Completion times (us), CPU-seconds, updates of a run."""
    network, topology = network_of(control, ranks, accuracy)
    case = all_to_all(topology, ranks)
    if jitter:
        drawn = np.random.default_rng(3).integers(0, 1000, len(case.flows)).tolist()
        moved = tuple((*flow[:3], late / 1e6) for flow, late in zip(case.flows, drawn, strict=True))
        case = replace(case, flows=moved)
    began = time.process_time()
    took = fcts(network, case)
    return took, time.process_time() - began, network.control_updates


def apart(one: F64, other: F64) -> str:
    """How far two runs' flows are from each other: mean of all, single flows in the mean, 99 of 100."""
    far = np.abs(other / one - 1)
    return f"{other.mean() / one.mean() - 1:+.2%} {far.mean():.2%} {np.quantile(far, 0.99):.1%}"


def row(control: str, ranks: int) -> str:
    """A row of the table."""
    coarse, seconds, updates = once(control, ranks, "1%")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    line = f"{control} {ranks}: 1% {seconds:.2f} CPU-s, {updates:,} updates, {peak_mb} MB, "
    line += f"mean {coarse.mean():,.0f} us, last {coarse.max():,.0f} us"
    if ranks > EXACT_UP_TO:
        return line
    exact, seconds, updates = once(control, ranks, "exact")
    moved, _, _ = once(control, ranks, "exact", jitter=True)
    line += f"; exact {seconds:.2f} CPU-s, {updates:,} updates, mean {exact.mean():,.0f} us"
    return f"{line}, last {exact.max():,.0f} us; apart {apart(exact, coarse)}; jitter {apart(exact, moved)}"


def main(names: list[str]) -> None:
    """Print the rows."""
    for control, ranks in [(one.split(":")[0], int(one.split(":")[1])) for one in names] or ROWS:
        print(row(control, ranks), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
