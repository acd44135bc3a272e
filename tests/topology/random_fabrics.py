"""Random fabrics, many of which can't be: each is built, routed and run, or refused in one line.

``python -m tests.topology.random_fabrics 5000`` tries so many, with a seed as second argument.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from typing import Any

import cosim
from cosim.errors import CosimError

ALGORITHMS = ("ring", "direct", "multi_ring", "tacos", "swing", "pat", "bruck", "halving_doubling")

HANGS_S = 120


def random_fabric(rng: random.Random) -> dict[str, Any]:
    """A scenario with a collective on a fabric."""

    def few(most: int) -> int:
        odd = [0, -1] if rng.random() < 0.1 else []
        choices: list[int] = [*odd, *range(1, max(most, 2))]
        return rng.choice(choices)

    kind = rng.choice(
        [
            "torus",
            "mesh",
            "dragonfly",
            "hyperx",
            "slim_fly",
            "rail_only",
            "expander",
            "direct_connect",
            "circuits",
            "planes",
        ]
    )
    topology: dict[str, Any] = {"kind": kind, "rate": "100Gbps", "latency": "1us"}
    if kind in ("torus", "mesh", "hyperx"):
        topology["dims"] = [few(5) + (rng.random() < 0.9) for _ in range(rng.randrange(1, 4))]
    if kind in ("dragonfly", "hyperx", "expander"):
        topology["endpoints_per_switch"] = few(4)
    if kind == "dragonfly":
        topology |= {"switches_per_group": few(5), "links_per_switch": few(4)}
        if rng.random() < 0.5:
            topology["groups"] = few(9)
    if kind == "slim_fly":
        topology |= {"q": rng.choice([-3, 2, 3, 4, 5, 6, 7, 8, 9]), "endpoints_per_switch": few(3)}
    if kind == "rail_only":
        topology |= {"hosts": few(5), "gpus": few(5), "nvlink_rate": "900GB/s"}
    if kind == "expander":
        topology |= {"switches": few(14), "degree": few(6)}
    if kind == "direct_connect":
        servers = few(24)
        topology |= {"servers": servers, "degree": few(5) * rng.choice([1, 2, 2])}
        if rng.random() < 0.7:
            listed = [few(servers + 2 if servers > 0 else 3) for _ in range(rng.randrange(3))]
            topology["strides"] = rng.choice(["auto", "best", listed])
        if rng.random() < 0.3:
            topology["pairs"] = [[few(24), few(24)] for _ in range(rng.randrange(4))]
        if rng.random() < 0.3:
            topology["group"] = few(24)
    if kind == "circuits":
        pairs = [[few(8), few(8)] for _ in range(rng.randrange(6))]
        slots = [{"circuits": pairs, "hold": "100us"}, {"circuits": [[0, 1]]}]
        topology |= {"endpoints": few(10), "ports": few(4), "reconfiguration": "5us"}
        topology["schedule"] = rng.choice(["auto", "auto", slots[:1], slots])
    if kind == "planes":
        topology |= {"kind": "leaf_spine", "leaves": few(4), "spines": few(3), "endpoints_per_leaf": few(5)}
    if kind not in ("torus", "mesh", "direct_connect", "circuits") and rng.random() < 0.3:
        topology["planes"] = few(4)
    topology["routing"] = rng.choice(["shortest", "ecmp", "by_channel", "dmodk"])
    if kind in ("torus", "mesh") and rng.random() < 0.7:
        topology["routing"] = "dimension_ordered"
    network: dict[str, Any] = {"model": "fair_share"}
    if rng.random() < 0.3:
        network["balancer"] = rng.choice(["valiant", "ugal", "spray"])
    collective = rng.choice(["all_reduce", "all_gather", "reduce_scatter", "all_to_all"])
    workload = {"kind": "collective", "collective": collective, "ranks": few(9), "size": "1MB"}
    return {
        "topology": topology,
        "network": network,
        "jobs": [{"workload": workload}],
        "collectives": {collective: rng.choice(ALGORITHMS)} if rng.random() < 0.8 else {},
    }


def try_one(scenario: dict[str, Any]) -> bool:
    """Whether it ran; it may be refused, and in one line."""
    try:
        records = cosim.run(scenario).records
    except CosimError as error:
        refusal = str(error)
    else:
        assert not records.interrupted
        return True
    assert refusal.strip()
    assert "Traceback" not in refusal
    return False


def main(count: int, seed: int) -> None:
    """Try so many, and say how many ran; one that takes longer than HANGS_S ends this with its name."""

    def hangs(*_: object) -> None:
        raise TimeoutError(f"more than {HANGS_S} s")

    signal.signal(signal.SIGALRM, hangs)
    rng = random.Random(seed)
    ran, longest = 0, 0.0
    for number in range(count):
        scenario = random_fabric(rng)
        begun = time.process_time()
        signal.alarm(HANGS_S)
        try:
            ran += try_one(scenario)
        except BaseException:
            print(f"fabric {number} of seed {seed}: {scenario}")
            raise
        longest = max(longest, time.process_time() - begun)
    signal.alarm(0)
    print(f"{count} random fabrics of seed {seed}: {ran} ran, {count - ran} were refused in a line")
    print(f"no traceback, no hang; the longest took {longest:.1f} CPU-s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
