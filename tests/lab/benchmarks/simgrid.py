"""``fair_share`` beside SimGrid's: ``python -m tests.lab.benchmarks.simgrid [MOST_HOSTS] [CASE ...]``.

SimGrid's fluid model: the same flows on the same links and paths, given to both. SimGrid's is ``CM02`` (all
flows of equal latency, so that its shares go by nothing else; ``network/optim:Full``, precision 1e-12), as
``simgrid.cc`` beside this file has it, and ``fair_share``, by itself (``alone``: the network is given all
flows at once) and in a whole run of cosim (``run``: the same flows as a ``flow-list``, which is read from a
file). CPU seconds, the best of three turns, of twenty where SimGrid takes 50 ms at most, with four runs of
ours in each (of SimGrid one run, where that takes 30 s); nothing is compiled in them, and building the
topology and SimGrid's platform, with its routes, is left out; finding paths is a part of a run. ``x`` is
SimGrid's simulation over ``alone``, ``x run`` SimGrid's with the time in which it reads the flows over
``run``; ``apart`` is the largest relative difference of a flow's time.
``looked`` and ``changed``: flows that were looked at, and whose rate changed, for each arrival or departure.

Cases: four flows from each host to as many others, of random sizes; all-to-all of random sizes; arrivals as
in a Poisson process, of heavy-tailed sizes (Pareto, 1.2), at 70 % of what the uplinks carry, each pair of
hosts at most once. On a star and on a fat-tree of three tiers, 4:1 oversubscribed at the edge, with ECMP.
``growth`` is the exponent of CPU seconds against flows. SimGrid gets 300 CPU seconds: what it has not done by
then is a lower bound of its seconds and of the ratios, and how far apart times are is not known.

SimGrid is Debian's libsimgrid-dev with g++; where either is missing the benchmark says so and stops.
"""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.context import HERE
from cosim.engine.records import JobInfo
from cosim.engine.replay import replay
from cosim.formats.flow_list.read import FlowListWorkload
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch, FlowGroup, flat_table, pack_key
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.topology.fat_tree import FatTree
from cosim.topology.graph import Topology
from cosim.topology.regular import Switch
from cosim.units import NEVER, PS_PER_S

Times = NDArray[np.float64]
SOURCE = Path(__file__).with_suffix(".cc")
RATE_BPS, LATENCY_PS = 100e9, 1_000_000
REPEATS, SHORT_REPEATS, SHORT_CPU_S = 3, 20, 0.05
OURS_A_TURN = 4
MOST_CPU_S = 300
K_OF = {32: 4, 64: 4, 256: 8, 1024: 16}
"""Ports of the fat-tree's switches, by hosts."""
SETTINGS = (
    "network/model:CM02",
    "network/optim:Full",
    "network/crosstraffic:0",
    "network/TCP-gamma:1e18",
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/weight-S:0",
    "surf/precision:1e-12",
    "maxmin/precision:1e-12",
)


@dataclass(frozen=True, eq=False)
class Flows:
    """Columns: endpoints, bytes and picoseconds; starts ascend."""

    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    size: NDArray[np.int64]
    start_ps: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.src)


def fabric(name: str, hosts: int) -> Topology:
    """A star or an oversubscribed fat-tree, whose paths all have the latency of their first link."""
    if name == "star":
        spec: Switch | FatTree = Switch.model_validate(
            {"endpoints": hosts, "rate": f"{RATE_BPS:.0f}bps", "latency": "0ns"}
        )
    else:
        k = K_OF[hosts]
        spec = FatTree.model_validate(
            {
                "k": k,
                "endpoints_per_edge": 2 * hosts // k**2,
                "rate": f"{RATE_BPS:.0f}bps",
                "latency": "0ns",
                "oversubscription": 4,
            }
        )
    topology = spec.build(HERE)
    first = topology.link_src < hosts
    return replace(topology, link_latency_ps=np.where(first, LATENCY_PS, 0).astype(np.int64))


def permutation(hosts: int, _: int) -> Flows:
    """Four flows from each host, each to another one."""
    rng = np.random.default_rng(hosts)
    order = rng.permutation(hosts)
    src = np.tile(np.arange(hosts), 4)
    dst = np.concatenate([np.roll(order, turn)[np.argsort(order)] for turn in range(1, 5)])
    return _flows(src, dst, rng.integers(100_000, 10_000_000, len(src)), np.zeros(len(src)))


def all_to_all(hosts: int, _: int) -> Flows:
    """Every pair, of random sizes."""
    src, dst = np.divmod(np.arange(hosts * hosts), hosts)
    src, dst = src[src != dst], dst[src != dst]
    size = np.random.default_rng(hosts).integers(10_000, 1_000_000, len(src))
    return _flows(src, dst, size, np.zeros(len(src)))


def poisson(hosts: int, count: int) -> Flows:
    """Arrivals of heavy-tailed sizes, at 70 % of what uplinks at 4:1 carry."""
    rng = np.random.default_rng(hosts)
    pair = rng.choice(hosts * (hosts - 1), count, replace=False)
    src = pair // (hosts - 1)
    dst = (src + 1 + pair % (hosts - 1)) % hosts
    size = np.minimum((rng.pareto(1.2, count) + 1) * 20_000, 2e8)
    gap_ps = size.mean() * 8 / (0.7 * RATE_BPS * hosts / 4) * PS_PER_S
    return _flows(src, dst, size, np.cumsum(rng.exponential(gap_ps, count)))


def _flows(src: object, dst: object, size: object, start: object) -> Flows:
    ends = [np.asarray(one).astype(np.int32) for one in (src, dst)]
    start_ps = np.asarray(start).astype(np.int64) // 1000 * 1000
    return Flows(ends[0], ends[1], np.asarray(size).astype(np.int64), start_ps)


@dataclass(frozen=True)
class Case:
    """One traffic on one fabric, at several sizes."""

    name: str
    fabric: str
    traffic: Callable[[int, int], Flows]
    sizes: tuple[tuple[int, int], ...]
    """(hosts, flows) of each; 0: the traffic says how many."""


CASES = (
    Case("star permutation", "star", permutation, ((64, 0), (256, 0), (1024, 0))),
    Case("star all-to-all", "star", all_to_all, ((16, 0), (32, 0), (64, 0), (96, 0))),
    Case("star poisson", "star", poisson, ((64, 500), (256, 2000), (1024, 8000))),
    Case("star poisson, 64", "star", poisson, ((64, 500), (64, 1000), (64, 2000), (64, 4000))),
    Case("4:1 permutation", "fat-tree", permutation, ((64, 0), (256, 0), (1024, 0))),
    Case("4:1 all-to-all", "fat-tree", all_to_all, ((32, 0), (64, 0))),
    Case("4:1 poisson", "fat-tree", poisson, ((64, 500), (256, 2000), (1024, 8000))),
)


def by_simgrid(program: Path, topology: Topology, flows: Flows) -> tuple[float, Times, float]:
    """(CPU seconds, when each flow arrived in seconds, CPU seconds of reading flows) of SimGrid; NaN where
    it takes too long.
    """
    ptr, links = topology.paths(flows.src, flows.dst, np.zeros(len(flows), np.int32))
    lines = [f"{topology.num_links} {topology.num_endpoints} {len(flows)} {len(flows)}"]
    seconds = topology.link_latency_ps / PS_PER_S
    lines += [
        f"{rate / 8!r} {late!r}"
        for rate, late in zip(topology.link_rate_bps.tolist(), seconds.tolist(), strict=True)
    ]
    for k, (src, dst) in enumerate(zip(flows.src.tolist(), flows.dst.tolist(), strict=True)):
        path = links[ptr[k] : ptr[k + 1]].tolist()
        lines.append(" ".join(map(str, (src, dst, len(path), *path))))
    columns = (
        flows.src.tolist(),
        flows.dst.tolist(),
        flows.size.tolist(),
        (flows.start_ps / PS_PER_S).tolist(),
    )
    lines += [f"{src} {dst} {size} {start!r}" for src, dst, size, start in zip(*columns, strict=True)]
    command = [str(program), *(f"--cfg={setting}" for setting in SETTINGS), "--log=root.thresh:error"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))

    done = subprocess.run(
        command, input="\n".join(lines), stdout=subprocess.PIPE, check=False, text=True, preexec_fn=limit
    )
    if done.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        return float(MOST_CPU_S), np.full(len(flows), np.nan), 0.0
    done.check_returncode()
    reading, run, *arrived = map(float, done.stdout.split())
    return run, np.array(arrived), reading


def by_network(topology: Topology, flows: Flows) -> tuple[float, Times, tuple[float, float]]:
    """The same of ``fair_share`` by itself; flows looked at and changed for each arrival or departure."""
    count, hosts = len(flows), topology.num_endpoints
    columns = flows.src.tolist(), flows.dst.tolist(), flows.size.tolist()
    table = flat_table(*columns, num_participants=hosts, reaction_ps=NEVER)
    group = FlowGroup(0, table, np.arange(hosts, dtype=np.int32), pack_key(0, 0, 0, 0))
    network = FairShareNetwork()
    network.open(topology)
    network.bind(table, group.endpoints, group.job, group.channel)  # its paths, as SimGrid is given its own
    batch = FlowBatch([group], np.zeros(count, np.int32), np.arange(count), flows.start_ps, flows.start_ps)
    arrived, left = np.zeros(count), count
    began = time.process_time()
    while left:
        done = network.advance(batch, NEVER).completions
        batch = FlowBatch()
        arrived[done.index] = done.time_ps / PS_PER_S
        left -= len(done)
    cpu = time.process_time() - began
    counts = network.columns.counts[0]
    looked, changed = (float(counts[name]) / (2 * count) for name in ("num_looked", "num_changed"))
    return cpu, arrived, (looked, changed)


def by_run(topology: Topology, flows: Flows, folder: Path) -> float:
    """CPU seconds of a whole run, its flow list read from a file."""
    rows = [
        f"{src} {dst} 3 100 {size} {start / PS_PER_S:.12f}"
        for src, dst, size, start in zip(
            flows.src.tolist(), flows.dst.tolist(), flows.size.tolist(), flows.start_ps.tolist(), strict=True
        )
    ]
    path = folder / "flows.txt"
    path.write_text("\n".join([str(len(rows)), *rows]) + "\n")
    named = str(path)
    began = time.process_time()
    spec = FlowListWorkload(path=named, nodes=topology.num_endpoints)
    ranks = np.arange(topology.num_endpoints, dtype=np.int32)
    job = JobInfo("flows", spec.build(HERE), ranks, 1, 0)
    replay(topology, FairShareNetwork(), [job], Planner(CollectiveConfig()))
    return time.process_time() - began


def measure(case: Case, program: Path, folder: Path) -> Iterator[tuple[float, ...]]:
    """Of each size: hosts, flows, CPU seconds of SimGrid, the network and the run, seconds that SimGrid reads
    flows for, how far apart, flows looked at and changed.
    """
    for hosts, count in case.sizes:
        topology, flows = fabric(case.fabric, hosts), case.traffic(hosts, count)
        theirs, ours, whole = [by_simgrid(program, topology, flows)], [by_network(topology, flows)], [np.inf]
        repeats = REPEATS if theirs[0][0] > SHORT_CPU_S else SHORT_REPEATS
        # In turns, so that whatever else the machine does meets both.
        for turn in range(repeats):
            if turn > 0 and theirs[0][0] < MOST_CPU_S / 10:
                theirs.append(by_simgrid(program, topology, flows))
            for _ in range(OURS_A_TURN):  # the first one finds in the caches what SimGrid has left there
                ours.append(by_network(topology, flows))
                whole.append(by_run(topology, flows, folder))
        start = flows.start_ps / PS_PER_S
        apart = np.abs(ours[0][1] - theirs[0][1]) / (theirs[0][1] - start)
        run = min(whole)
        simgrid, network = min(one[0] for one in theirs), min(one[0] for one in ours)
        read = min(one[2] for one in theirs)
        yield hosts, len(flows), simgrid, network, run, read, float(apart.max()), *ours[0][2]


def growth(counts: Sequence[int], seconds: Sequence[float]) -> float:
    """The exponent of a power law through the points."""
    return float(np.polyfit(np.log(counts), np.log(seconds), 1)[0])


def main(names: Sequence[str]) -> None:
    """Measure the cases named, or all, of up to so many hosts, and print a line for each size."""
    most = int(names[0]) if names and names[0].isdigit() else 1024
    names = [name for name in names if not name.isdigit()]
    compiler = shutil.which("g++")
    if compiler is None:
        sys.exit("g++ is not installed: apt-get install g++ libsimgrid-dev")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        build = [compiler, "-O2", "-std=c++17", str(SOURCE), "-o", str(folder / "simgrid"), "-lsimgrid"]
        if subprocess.run(build, stderr=subprocess.DEVNULL, check=False).returncode:
            sys.exit("SimGrid is not installed: apt-get install libsimgrid-dev")
        for warm in map(fabric, ("fat-tree", "star"), (64, 64)):  # with enough flows for compiled paths
            by_run(warm, poisson(64, 1000), folder)
            by_network(warm, poisson(64, 1000))
        names_of = f"{'SimGrid':>10}{'alone':>9}{'run':>9}{'x':>7}{'x run':>7}  apart  looked  changed"
        print(f"{'':<20}{'hosts':>6}{'flows':>7}{names_of}")
        for case in CASES:
            if names and case.name not in names:
                continue
            sizes = tuple(size for size in case.sizes if size[0] <= most)
            rows = list(measure(replace(case, sizes=sizes), folder / "simgrid", folder))
            for hosts, count, simgrid, network, run, read, apart, looked, changed in rows:
                print(
                    f"{case.name:<20}{hosts:>6}{count:>7}{simgrid:>10.4f}{network:>9.4f}{run:>9.3f}"
                    f"{simgrid / network:>7.1f}{(simgrid + read) / run:>7.2f}  {apart:.0e}"
                    f"{looked:>8.1f}{changed:>9.1f}",
                    flush=True,
                )
            if len(rows) < 2:
                continue
            counts, *columns = zip(*[row[1:5] for row in rows], strict=True)
            print(f"{'  growth':<33}" + "".join(f"{growth(counts, one):>9.2f}" for one in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
