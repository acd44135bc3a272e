"""``python -m tests.validation.slow_causes 20 99``: how many slow ranks and NICs are named by logs.

Each world is 32 ranks, 8 groups of 4, all-reduces within the groups and across them, computations with
jitter. The logs are NCCL Inspector's, as ``cosim translate`` writes them. A slow rank has to be the only one
that is named; of a slow NIC its rank has to be the one that has it; of neither nothing may be named.
The second number is the seed; the rules were made on draws of seed 1.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

import cosim
from cosim.captures.read import read_capture
from cosim.formats.inspector.write import InspectorFormat
from cosim.results.traffic.analysis import analyse_capture
from cosim.results.traffic.logged import LoggedAnalysis

WORLD = """
topology: {kind: leaf_spine, leaves: 8, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 500ns}
network: fair_share
collectives: {all_reduce: ring}
jobs:
  - iterations: 8
    jitter: 0.02
    workload:
      kind: operations
      mesh: {dp: 8, tp: 4}
      programs:
        - operations:
            - {name: first, kind: compute, duration: 300us}
            - {name: sum, kind: collective, collective: all_reduce, size: 4MB, axes: [tp], deps: [first]}
            - {name: second, kind: compute, duration: 300us, deps: [sum]}
            - {name: again, kind: collective, collective: all_reduce, size: 4MB, axes: [tp], deps: [second]}
            - {name: all, kind: collective, collective: all_reduce, size: 1MB, axes: [dp], deps: [again]}
"""


def logged(seed: int, changes: dict[str, object]) -> LoggedAnalysis:
    """What the logs of a world say."""
    with tempfile.TemporaryDirectory() as place:
        cosim.translate(
            cosim.loads(WORLD), InspectorFormat(), Path(place) / "x", set={"seed": seed, **changes}
        )
        found = analyse_capture(read_capture(Path(place) / "x")).logged
    assert found is not None
    return found


def tried(count: int, seed: int) -> Counter[str]:
    """So many worlds of each kind: how many were named rightly."""
    draw, right = Random(seed), Counter[str]()
    for number in range(count):
        rank, world = draw.randrange(32), seed * 10_000 + number
        found = logged(world, {})
        right["nothing"] += not found.slow_ranks and not found.slow_groups
        factor = draw.uniform(1.15, 2)
        found = logged(world, {"jobs[0].stragglers": [{"ranks": [rank], "factor": factor}]})
        right["rank"] += [one.process for one in found.slow_ranks] == [f"gpu{rank}:{rank + 1}"]
        rate = f"{draw.randrange(25, 71)}Gbps"
        link = f"gpu{rank} <-> leaf{rank // 4}"
        found = logged(world, {"events": [{"at": "0s", "link": link, "rate": rate}]})
        right["link"] += found.slow_nic == f"gpu{rank}:{rank + 1}"
    return right


if __name__ == "__main__":
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    for kind, times in tried(most, int(sys.argv[2]) if len(sys.argv) > 2 else 1).items():
        print(f"{kind:8} {times} of {most}")
