"""NSCC, RCCC beside Ultra Ethernet's simulator: ``python -m tests.lab.benchmarks.ultra_ethernet [ROW...]``.

Permutations of 1 MB over 8,192 hosts are what its repository has results of (``results/*.txt`` of
github.com/ultraethernet/uet-htsim, commit 40ccb05, of versions of July 2024: last completion; 32 entropies,
packets of 4,150 bytes, 64 of them header, queues of one and marks from a quarter to three quarters of 100
packets, 200 at 800 Gb/s; a *failed* spine has a quarter of its rate). Our permutation is drawn, another one.
*By hand*: that commit, built by hand, with our flows: the permutation, and incasts of 2 x 50 MB and 8 x 20 MB
to one of 64 hosts, with the queues and marks that it chooses itself (``htsim_uec -tm FLOWS -topo TOPOLOGY
-paths 32 -linkspeed 400000``, ``-sender_cc_only`` or ``-receiver_cc_only``, for permutations ``-q 100 -ecn 25
75 -cwnd 150``). ``... kilo``: means too, its CPU-seconds, and which control is first, over 1,024 hosts and of
the incasts (at 800 Gb/s with ``-linkspeed 800000 -q 200 -ecn 50 150 -cwnd 300``).

There a flow ends when its sender has the last acknowledgement, here when its last byte is there: the
acknowledgement's way is added to what is here, a microsecond a link. It waits in no queue, there either.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cosim

BIG: dict[str, Any] = {"leaves": 128, "spines": 64, "endpoints_per_leaf": 64}
SMALL: dict[str, Any] = {"leaves": 8, "spines": 8, "endpoints_per_leaf": 8}
PACKET = 4150
OVER: dict[str, Any] = {"topology": {"spines": 16, "oversubscription": 4}}
TWO: dict[str, Any] = {"senders": 2, "size": 50_000_000}
EIGHT: dict[str, Any] = {"senders": 8, "size": 20_000_000}
CREDIT: dict[str, Any] = {"control": "rccc"}
OVER_CREDIT: dict[str, Any] = {"control": {"kind": "rccc", "oversubscription": 4}}
ROWS: dict[str, tuple[float | None, float | None, dict[str, Any]]] = {
    "nscc 400 Gb/s": (38.7065, None, {}),
    "nscc 4:1": (188.805, 111.981, OVER),
    "nscc one spine failed": (41.9739, 40.9801, {"slow": 1}),
    "nscc 800 Gb/s": (25.2974, None, {"rate": 800}),
    "nscc incast 2:1": (None, 2041.11, TWO),
    "nscc incast 8:1": (None, 3263.82, EIGHT),
    "rccc 400 Gb/s": (38.3742, None, CREDIT),
    "rccc 4:1": (116.332, 103.053, OVER | OVER_CREDIT),
    "rccc one spine failed": (43.3924, 40.9264, {"slow": 1} | CREDIT),
    "rccc 800 Gb/s": (25.5619, None, {"rate": 800} | CREDIT),
    "rccc incast 2:1": (None, 2051.51, TWO | CREDIT),
    "rccc incast 8:1": (None, 3283.64, EIGHT | CREDIT),
}
"""(microseconds published, by hand, what is unlike the first row)."""


def kilo(spines: int, ratio: int, *, slow: int = 0, credit: bool = False, gbps: int = 400) -> dict[str, Any]:
    """32 leaves of 32 hosts."""
    fabric = {"leaves": 32, "spines": spines, "endpoints_per_leaf": 32, "oversubscription": ratio}
    rccc: dict[str, Any] = {"control": {"kind": "rccc", "oversubscription": ratio}}
    return {"topology": fabric, "slow": slow, "rate": gbps} | (rccc if credit else {})


KILO: dict[str, tuple[tuple[float, float, float], dict[str, Any]]] = {
    "nscc, 1:1": ((33.5172, 37.5438, 4.5), kilo(32, 1)),
    "rccc, 1:1": ((33.4179, 38.1985, 5.6), kilo(32, 1, credit=True)),
    "nscc, 4:1": ((87.5169, 111.653, 8.2), kilo(8, 4)),
    "rccc, 4:1": ((92.4392, 100.613, 10.1), kilo(8, 4, credit=True)),
    "nscc, 8:1": ((158.204, 193.643, 7.6), kilo(4, 8)),
    "rccc, 8:1": ((171.858, 191.854, 8.8), kilo(4, 8, credit=True)),
    "nscc, one spine at a quarter": ((34.1353, 39.9995, 4.4), kilo(32, 1, slow=1)),
    "rccc, one spine at a quarter": ((34.0208, 40.5125, 5.5), kilo(32, 1, slow=1, credit=True)),
    "nscc, 800 Gb/s": ((21.222, 25.312, 4.4), kilo(32, 1, gbps=800)),
    "rccc, 800 Gb/s": ((21.3005, 25.4543, 5.5), kilo(32, 1, gbps=800, credit=True)),
    "nscc, incast 2:1": ((2003.15, 2041.11, 0.049), TWO),
    "rccc, incast 2:1": ((2051.39, 2051.51, 0.041), TWO | CREDIT),
    "nscc, incast 8:1": ((3106.48, 3263.82, 0.093), EIGHT),
    "rccc, incast 8:1": ((3281.93, 3283.64, 0.064), EIGHT | CREDIT),
}
"""(mean and last completion in microseconds, CPU-seconds there; what is unlike the first row)."""


def permutation(hosts: int) -> list[tuple[int, int]]:
    """Everyone to one other, drawn."""
    drawn = random.Random(1)
    while True:
        to = list(range(hosts))
        drawn.shuffle(to)
        if all(src != dst for src, dst in enumerate(to)):
            return list(enumerate(to))


def leaf_spine(fabric: dict[str, Any], gbps: int, slow: int) -> dict[str, Any]:
    """The fabric, the links of ``slow`` of its spines at a quarter of the rate."""
    more = {"rate": f"{gbps}Gbps", "latency": "1us", "routing": "ecmp"}
    if slow == 0:
        return {"kind": "leaf_spine"} | more | fabric
    below = fabric["endpoints_per_leaf"]
    hosts = [f"gpu{k}" for k in range(fabric["leaves"] * below)]
    leaves = [f"leaf{k}" for k in range(fabric["leaves"])]
    spines = [f"spine{k}" for k in range(fabric["spines"])]
    cables = [(host, leaves[k // below], float(gbps)) for k, host in enumerate(hosts)]
    cables += [(a, b, gbps / 4 if k < slow else gbps) for k, b in enumerate(spines) for a in leaves]
    links = [{"from": a, "to": b, "rate": f"{rate}Gbps", "latency": "1us"} for a, b, rate in cables]
    return {
        "kind": "graph",
        "endpoints": hosts,
        "switches": leaves + spines,
        "links": links,
        "routing": "ecmp",
    }


def scenario(folder: Path, more: dict[str, Any]) -> dict[str, Any]:
    """The scenario of a row, its flows in a file."""
    gbps = more.get("rate", 400)
    senders = more.get("senders", 0)
    fabric = fabric_of(more)
    pairs = pairs_of(more)
    size = more.get("size", 1_000_000)
    lines = [f"{src} {dst} 3 100 {size} 0.0" for src, dst in pairs]
    (folder / "flows.txt").write_text("\n".join([str(len(lines)), *lines]) + "\n")
    queue = 419_150 if senders else gbps // 4 * PACKET
    low, high = (87_150, 336_150) if senders else (queue // 4, queue * 3 // 4)
    return {
        "name": "ultra-ethernet",
        "topology": leaf_spine(fabric, gbps, more.get("slow", 0)),
        "network": {
            "model": "congestion",
            "control": more.get("control", "nscc"),
            "mtu": PACKET - 18,  # without the Ethernet frame: 4,086 bytes of a message in each
            "balancer": {"kind": "reps", "entropies": 32},
            "buffer": queue,
            "ecn_min": low,
            "ecn_max": high,
            "queues_at": f"{gbps}Gbps",
        },
        "jobs": [{"workload": {"kind": "flow-list", "path": str(folder / "flows.txt")}, "iterations": 1}],
    }


def fabric_of(more: dict[str, Any]) -> dict[str, Any]:
    """Leaves, spines and hosts of a row."""
    own: dict[str, Any] = more.get("topology", {})
    return (SMALL if more.get("senders", 0) else BIG) | own


def pairs_of(more: dict[str, Any]) -> list[tuple[int, int]]:
    """Who sends to whom in a row."""
    fabric = fabric_of(more)
    hosts = fabric["leaves"] * fabric["endpoints_per_leaf"]
    return [(7 * k + 1, hosts - 1) for k in range(more.get("senders", 0))] or permutation(hosts)


def ran(more: dict[str, Any]) -> tuple[float, float, float]:
    """When senders have their last acknowledgements in the run of a row, the mean and the last, microseconds;
    its CPU-seconds.
    """
    below = fabric_of(more)["endpoints_per_leaf"]
    back = [2.0 if src // below == dst // below else 4.0 for src, dst in pairs_of(more)]
    with tempfile.TemporaryDirectory() as folder:
        what = scenario(Path(folder), more)
        start = time.process_time()
        summary = cosim.run(what).summary
        spent = time.process_time() - start
    assert summary.fct is not None
    # The last goes between leaves: of those within one none meets a queue.
    return summary.fct.mean_ps / 1e6 + sum(back) / len(back), summary.end_ps / 1e6 + max(back), spent


def compare() -> None:
    """A line for each row over 1,024 hosts, each incast: mean, last completion, CPU-s; then who is first."""
    print(f"{'us: there, here':30}{'mean':>22}{'last':>24}{'CPU-s':>15}")
    means: dict[str, list[tuple[float, float]]] = {}
    for name, ((mean, last, cpu), more) in KILO.items():
        # The first run loads what is compiled.
        mine, end, spent = min((ran(more) for _ in range(2)), key=lambda one: one[2])
        print(
            f"{name:30}{mean:8.1f}{mine:7.1f}{mine / mean - 1:+7.1%}"
            f"{last:10.1f}{end:7.1f}{end / last - 1:+7.1%}{cpu:8.2f}{spent:7.3f}{cpu / spent:5.0f} x",
            flush=True,
        )
        means.setdefault(name.split(", ")[1], []).append((mean, mine))
    alike = sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in means.values())
    print(f"which control has the lower mean: alike in {alike} of {len(means)}")


def main(names: list[str]) -> None:
    """A line for each row: the last completion, beside what was run by hand where there is such a run."""
    print(f"{'us':24}{'published':>12}{'by hand':>12}{'here':>12}{'':>8}{'CPU-s':>8}")
    for name in names or ROWS:
        published, by_hand, more = ROWS[name]
        _, here, spent = ran(more)
        there = by_hand or published or float("nan")
        shown = "".join(f"{one:12.1f}" if one else f"{'-':>12}" for one in (published, by_hand))
        print(f"{name:24}{shown}{here:12.1f}{here / there - 1:+8.0%}{spent:8.1f}", flush=True)


if __name__ == "__main__":
    compare() if sys.argv[1:] == ["kilo"] else main(sys.argv[1:])
