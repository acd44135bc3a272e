"""Random worlds over every network of this process, each run whole and in pieces, which must not matter.

``python -m tests.kernel.worlds --seeds 0:200 --only congestion`` prints a line for each world: its name and a
digest of all that came of it. Two versions of cosim, or two builds of its kernel (``COSIM_KERNEL``), agree
where they print the same lines. It ends with 1 if a world gave another digest in pieces.

A world is a topology, a network with all its settings, links that fail and come back, and groups of flows
that wait for each other. Nothing above the networks' seam takes part.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from cosim.errors import CosimError
from cosim.experiment.build import build
from cosim.experiment.scenario import from_document
from cosim.files.located_yaml import Document
from cosim.network.flows import ON_COMPLETION, ON_START, FlowBatch, FlowGroup
from cosim.network.simulator import NetworkSimulator, NetworkStatistics
from cosim.testing.strategies.traffic import table_of
from cosim.topology.graph import Topology
from cosim.units import NEVER

CONTROLS = ("cubic", "dcqcn", "dctcp", "fixed", "hpcc", "newreno", "nscc", "rccc", "swift", "timely", "mltcp")
BALANCERS = ("adaptive", "flowlet", "least_loaded", "reps", "spray", "ugal", "valiant", "weighted")
NETWORKS = ("congestion_unaware", "congestion_aware", "fair_share", "congestion", "hybrid")
_SIZES = (0, 1, 64, 9_000, 100_000, 777_777, 3_000_000, 12_000_000)
_STEPS_PS = (1, 999, 12_345, 10**6, 10**7, 10**8)
_MOST_PIECES = 400
_FIRST_END_PS, _LAST_END_PS = 10**9, 4**8 * 10**9

Start = tuple[int, int, int]
"""When, and the flow: its group and its number there."""


@dataclass(frozen=True)
class World:
    """What is sent on what; ``starts`` are of flows that wait for nothing."""

    topology: Topology
    network: NetworkSimulator
    seed: int
    groups: Sequence[FlowGroup]
    starts: Sequence[Start]


# -- scenarios ------------------------------------------------------------------------------------------


def scenario(draw: Random, kind: str) -> dict[str, Any]:
    """A small topology and a network, and links that change: what YAML would say."""
    topology = _topology(draw, hosts=kind == "hybrid")
    made: dict[str, Any] = {
        "topology": topology,
        "network": _network(draw, kind, topology),
        "jobs": [{"workload": {"kind": "periodic", "compute": "0ns", "size": "1B"}}],
        "seed": draw.randrange(1000),
    }
    if draw.random() < 0.35:
        made["events"] = _events(draw, topology)
        made["detection"] = draw.choice(("0ns", "5us", "100us"))
    return made


def _topology(draw: Random, *, hosts: bool) -> dict[str, Any]:
    rates, latency = ("10Gbps", "40Gbps", "100Gbps", "400Gbps"), draw.choice(("0ns", "100ns", "1us", "5us"))
    rate = draw.choice(rates)
    shape = draw.choice(("leaf_spine", "leaf_spine", "fat_tree", "ring", "switch", "fully_connected"))
    made: dict[str, Any] = {"kind": shape, "rate": rate, "latency": latency}
    if hosts or shape == "leaf_spine":
        leaves, below = draw.randint(2, 4), draw.choice((2, 4))
        made |= {
            "kind": "leaf_spine",
            "leaves": leaves,
            "spines": draw.randint(1, 4),
            "endpoints_per_leaf": below,
        }
        if draw.random() < 0.5:
            made["oversubscription"] = draw.choice((1, 2, 4))
        if hosts:
            del made["rate"]
            nvlink = {"nvlink_rate": draw.choice(("300GB/s", "50GB/s")), "nvlink_latency": "300ns"}
            made["hosts"] = {"gpus": 2, "nics": draw.choice((1, 2)), "nic_rate": rate, **nvlink}
        made["routing"] = draw.choice(("ecmp", "shortest", "dmodk"))
        return made
    if shape == "fat_tree":
        return {**made, "k": 4, "routing": draw.choice(("ecmp", "shortest"))}
    return {**made, "endpoints": draw.randint(2, 9)}


def _network(draw: Random, kind: str, topology: dict[str, Any]) -> Any:
    if kind == "congestion":
        return _congestion(draw, topology)
    if kind == "fair_share":
        return {"model": kind, **_balancer(draw, topology)}
    if kind == "hybrid":
        sides = {side: draw.choice(NETWORKS[:4]) for side in ("scale_up", "scale_out")}
        # What a balancer chooses among is beyond the hosts, where there is more than one way.
        made = {side: _network(draw, name, {}) for side, name in sides.items()}
        return {"model": "hybrid", **made}
    return {"model": kind}


def _balancer(draw: Random, topology: dict[str, Any]) -> dict[str, Any]:
    if topology.get("kind") not in ("leaf_spine", "fat_tree") or topology["routing"] == "dmodk":
        return {}
    if draw.random() < 0.5:
        return {}
    kind = draw.choice(BALANCERS)
    return {"balancer": {"kind": kind, "entropies": draw.choice((None, 4))} if kind == "spray" else kind}


def _congestion(draw: Random, topology: dict[str, Any]) -> dict[str, Any]:
    control: Any = draw.choice(CONTROLS)
    if control == "mltcp":
        control = {"kind": "mltcp", "over": draw.choice(("dctcp", "newreno", "swift", "dcqcn"))}
    if control == "fixed":
        control = {"kind": "fixed", "bdp": draw.choice((0.5, 1, 2, 20))}
    if control == "rccc":
        control = {"kind": "rccc", "oversubscription": draw.choice((1, 2, 4))}
    if control == "timely":
        control = {"kind": "timely", "patched": draw.random() < 0.5}
    if control == "dcqcn":
        control = {"kind": "dcqcn", "preset": draw.choice(("paper", "connectx"))}
    made = {"model": "congestion", "control": control, "mtu": draw.choice((1000, 1500, 4000, 9000))}
    if draw.random() < 0.5:
        made["buffer"] = draw.choice(("20kB", "50kB", "200kB", "2MB"))
    if draw.random() < 0.5:
        made["pfc"] = draw.random() < 0.3
    if draw.random() < 0.2:
        made["trimming"] = True
    if draw.random() < 0.2:
        made["rest"] = False
    return made | _balancer(draw, topology)


def _events(draw: Random, topology: dict[str, Any]) -> list[dict[str, Any]]:
    """Links that fail, or are slow for a while; all of them come back."""
    links = ("leaf0 <-> spine0", "leaf* <-> spine0", 1) if topology["kind"] == "leaf_spine" else (0, 1)
    found = []
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(400)
        what = {"down": True} if draw.random() < 0.6 else {"rate": "1Gbps"}
        when = {"at": f"{at}us", "until": f"{at + draw.randint(1, 300)}us"}
        found.append({"link": draw.choice(links), **what, **when})
    return found


# -- traffic --------------------------------------------------------------------------------------------


def _flows(draw: Random, size: int) -> tuple[list[FlowGroup], list[Start]]:
    """Groups of flows among so many endpoints, and when those start that wait for nothing."""
    groups, starts = [], list[Start]()
    for handle in range(draw.randint(1, 6)):
        first = draw.randint(1, 6)
        groups.append(_group(draw, handle, first, size))
        latest = draw.choice((0, 0, 10**6, 3 * 10**8))
        starts += [(draw.randint(0, latest), handle, flow) for flow in range(first)]
    return groups, starts


def _group(draw: Random, handle: int, first: int, size: int) -> FlowGroup:
    """``first`` flows that wait for nothing, and some that do, so many times."""
    ranks = draw.randint(2, min(size, 8))
    waiting, repeats = draw.randint(1, 4), draw.choice((1, 2, 10))
    sink = draw.choice((None, None, 0))  # where all of them send to one they meet
    rows = [_row(draw, ranks, sink, []) for _ in range(first)]
    for number in range(waiting):
        back = [draw.randint(1, first + number) for _ in range(draw.randint(1, 3))]
        waits = [(one, draw.choice((ON_COMPLETION, ON_COMPLETION, ON_START))) for one in back]
        rows.append(_row(draw, ranks, sink, waits))
    table = table_of(rows, ranks, [(first, 1), (waiting, repeats)], draw.choice((0, 10**6, NEVER)))
    whole = draw.random() < 0.3
    return FlowGroup(
        handle,
        table,
        np.array(draw.sample(range(size), ranks), np.int32),
        (handle, 0),
        job=handle % 2,
        coflow=handle % 2,
        coflow_bytes=10**7 if whole else 0,
        channel=draw.randint(0, 1),
        priority=draw.choice((0, 0, 0, 1, 3)),
        weight=draw.choice((1.0, 1.0, 0.5, 3.0)),
    )


def _row(draw: Random, ranks: int, sink: int | None, waits: list[tuple[int, int]]) -> Any:
    """A flow: source, destination, bytes, channel, delay, and what it waits for."""
    src, dst = draw.randrange(ranks), draw.randrange(ranks) if sink is None else sink
    return src, dst, draw.choice(_SIZES), draw.randint(0, 1), draw.choice((0, 0, 1, 10**6)), waits


# -- runs -----------------------------------------------------------------------------------------------


def world(kind: str, seed: int) -> World:
    """The world of a number."""
    draw = Random(f"{kind} {seed}")
    place = Path(__file__).parent
    read = from_document(Document("world.yaml", scenario(draw, kind)), place, "world")
    built = build(read)
    groups, starts = _flows(draw, built.topology.num_endpoints)
    return World(built.topology, built.network, read.seed, groups, starts)


def _batch(groups: Sequence[FlowGroup], starts: Sequence[Start]) -> FlowBatch:
    time, handle, index = np.array(starts, np.int64).reshape(-1, 3).T
    return FlowBatch(groups, handle.astype(np.int32), index, time, time)


def run(one: World, draw: Random | None) -> str:
    """A digest of all that comes of a world; ``draw``: in pieces."""
    found = set[tuple[int, ...]]()
    total = sum(group.table.num_flows for group in one.groups)
    with closing(one.network):
        one.network.open(one.topology, one.seed)
        groups, todo, granted, pieces = one.groups, sorted(one.starts), 0, 0
        # What is counted is so up to the last grant, which is the same however a run is cut.
        end = _FIRST_END_PS
        while granted < end or (len(found) < total and end < _LAST_END_PS):
            if granted == end:
                end *= 4
            pieces += 1
            small = draw is not None and pieces < _MOST_PIECES
            horizon = min(granted + draw.choice(_STEPS_PS), end) if draw and small else end
            given = [start for start in todo if start[0] <= horizon]
            todo = todo[len(given) :]
            step = one.network.advance(_batch(groups, given), horizon)
            groups, granted, done = (), step.granted_ps, step.completions
            columns = (done.handle, done.index, done.start_ps, done.time_ps)
            found |= set(zip(*(column.tolist() for column in columns), strict=True))
        counted = _counted(one.network.statistics())
    whole = hashlib.blake2b(repr(sorted(found)).encode(), digest_size=8).hexdigest()
    return f"{len(found)} of {total} flows, {whole} {counted}"


def _counted(links: NetworkStatistics) -> str:
    """A digest of everything that the network counted, but events: a run in pieces may have others."""
    found = hashlib.blake2b(digest_size=8)
    for array in (links.link_bytes, links.busy_ps, *(links.extra[name] for name in sorted(links.extra))):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def digest(kind: str, seed: int, *, pieces: bool) -> str:
    """All that came of the world of a number, as a short text; or why nothing did."""
    try:
        return run(world(kind, seed), Random(seed) if pieces else None)
    except CosimError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def main() -> int:
    """The command line; 1 if pieces mattered."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.kernel.worlds", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--seeds", default="0:50", help="first:end")
    parser.add_argument("--only", choices=NETWORKS, action="append", help="one network; repeatable")
    parser.add_argument("--whole", action="store_true", help="not in pieces")
    given = parser.parse_args()
    first, end = map(int, given.seeds.split(":"))
    warnings.simplefilter("ignore")
    wrong = 0
    for seed in range(first, end):
        for kind in given.only or NETWORKS:
            found = digest(kind, seed, pieces=False)
            print(f"{kind} {seed}: {found}", flush=True)
            if not given.whole and (cut := digest(kind, seed, pieces=True)) != found:
                wrong += 1
                print(f"{kind} {seed}: in pieces: {cut}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
