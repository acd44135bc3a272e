"""``python -m tests.lab.validation.slow_causes 50 99``: how many causes logs and counters of ports name.

Each world is ``scenarios/slow-link.yaml``: 32 ranks on 4 leaves and 8 spines, all-reduces within groups of 8
on a leaf and across leaves, paths that share no link. The jitter of computations is drawn, 1 to 5 %, and one
cause: nothing, a slow rank, a slow NIC, a slow link between switches, or a path that takes the same spine as
another. What is analysed are NCCL Inspector's logs and counters of ports, as ``cosim translate`` writes them.
Cause and place have to be right.

The second number is the seed; the rules were made on draws of seed 1. The third: samples are so many
microseconds apart.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

import cosim
from cosim.captures.read import read_capture
from cosim.formats.inspector.write import InspectorFormat
from cosim.plugins import Context, Fabric, Paths, RoutingSpec, Topology
from cosim.results.traffic.analysis import analyse_capture
from cosim.results.traffic.causes import COLLISION, LINK, NIC, RANK, find_cause
from cosim.topology.graph import I32, I64
from cosim.topology.routings import DModKSpec
from tests.inputs import ROOT

LEAVES, SPINES, PER_LEAF = 4, 8, 8
NOTHING = "nothing"
WORLD = ROOT / "scenarios" / "slow-link.yaml"


@dataclass(frozen=True)
class OneMoved(Paths):
    """Paths of ``others``, but those from ``source`` to other leaves go by ``spine``."""

    others: Paths
    source: int
    spine: int
    name: str = "one_moved"

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        """See :meth:`Paths.paths`."""
        ptr, links = self.others.paths(topology, src, dst, channel)
        ends = topology.link_src.tolist(), topology.link_dst.tolist()
        number = {pair: link for link, pair in enumerate(zip(*ends, strict=True))}
        spine = topology.node_names.index(f"spine{self.spine}")
        moved = links.copy()
        for at in np.flatnonzero((src == self.source) & (np.diff(ptr) == 4)).tolist():
            _, up, down, _ = links[ptr[at] : ptr[at + 1]].tolist()
            moved[ptr[at] + 1] = number[ends[0][up], spine]
            moved[ptr[at] + 2] = number[spine, ends[1][down]]
        return ptr, moved


class OneMovedSpec(RoutingSpec):
    """Destination modulo k, but one source goes by another's spine, as a hash may have it"""

    source: int
    spine: int

    def build(self, fabric: Fabric, context: Context) -> OneMoved:
        """See :meth:`RoutingSpec.build`."""
        return OneMoved(DModKSpec().build(fabric, context), self.source, self.spine)


def drawn(kind: str, draw: Random) -> tuple[dict[str, object], str]:
    """What to change in the world, and the place to be named."""
    rank = draw.randrange(LEAVES * PER_LEAF)
    leaf, spine = rank // PER_LEAF, draw.randrange(SPINES)
    rate, factor = f"{draw.randrange(25, 71)}Gbps", draw.uniform(1.15, 2)
    if kind == RANK:
        return {"jobs[0].stragglers": [{"ranks": [rank], "factor": factor}]}, f"gpu{rank}:{rank + 1}"
    if kind == NIC:
        cable = {"at": "0s", "link": f"gpu{rank} <-> leaf{leaf}", "rate": rate}
        return {"events": [cable]}, f"gpu{rank}:{rank + 1}"
    if kind == LINK:
        cable = {"at": "0s", "link": f"leaf{leaf} <-> spine{spine}", "rate": rate}
        return {"events": [cable]}, f"leaf{leaf}:spine{spine}"
    if kind == COLLISION:
        spine = (rank + draw.randrange(1, SPINES)) % SPINES
        routing = {"plugin": f"{__file__}:OneMovedSpec", "source": rank, "spine": spine}
        return {"topology.routing": routing}, f"leaf{leaf}:spine{spine}"
    return {}, ""


def named(seed: int, changes: dict[str, object], every_us: int) -> tuple[str, str]:
    """Cause and place that a world's logs and counters name; of none, nothing and the empty text."""
    scenario = cosim.load(WORLD, {"seed": seed, "events": [], **changes})
    with tempfile.TemporaryDirectory() as place:
        logs, counters = Path(place) / "logs", Path(place) / "counters"
        cosim.translate(scenario, InspectorFormat(), logs)
        cosim.translate(scenario, {"kind": "counters", "every": f"{every_us}us"}, counters)
        logged = analyse_capture(read_capture(logs)).logged
        ports = analyse_capture(read_capture(counters / "counters.csv")).ports
    assert logged is not None
    assert ports is not None
    found = find_cause(logged, ports)
    return (NOTHING, "") if found is None else (found.kind, found.place)


def tried(count: int, seed: int, every_us: int = 20) -> dict[str, Counter[str]]:
    """So many worlds of each kind: how many were named rightly, wrongly, and not at all."""
    found = {}
    for number, kind in enumerate((NOTHING, RANK, NIC, LINK, COLLISION)):
        found[kind] = Counter(right=0, wrong=0, unnamed=0)
        for world in range(count):
            draw = Random(f"{seed} {kind} {world}")
            changes, place = drawn(kind, draw)
            changes["jobs[0].jitter"] = draw.uniform(0.01, 0.05)
            said = named(seed * 100_000 + number * 10_000 + world, changes, every_us)
            if said == (kind, place):
                found[kind]["right"] += 1
            else:
                found[kind]["unnamed" if said[0] == NOTHING else "wrong"] += 1
    return found


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    for cause, times in tried(*[*given, *(50, 1)[len(given) :]]).items():
        print(f"{cause:14}", ", ".join(f"{number} {word}" for word, number in times.items()))
