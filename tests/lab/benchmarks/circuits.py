"""Circuits beside OpenOptics' ns-3 backend (github.com/mpi-ncs/openoptics, commit aa5145c), run by hand.

``python -m tests.lab.benchmarks.circuits`` prints the table of docs/validation/fabrics.md. There, its optical
switch and its ToRs, in Debian's ns-3 3.37: slices of 100 us, of which 10 us are dark, uplinks of 10 Gb/s and
1 us, packets of 1,500 bytes, per-hop tables with the direct way only, and admission control. A host, on a
link of 4 Tb/s, sends in each slice what its window holds. Its ToRs stop a link's delay before the switch goes
dark, and put 14 bytes of headers on a packet. So here ``circuits`` has a schedule of 89 us, then 11 us dark,
and messages with these headers.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

import cosim

PACKET, WIRE = 1_500, 1_514
OPENOPTICS = {
    "4 ToRs, all-to-all of 250 kB": (4, 1, 727.44, 827.44),
    "8 ToRs, 1 MB to the next": (8, 1, 6614.12, 6914.12),
    "8 ToRs of two uplinks, 50 to 1,000 kB, drawn": (8, 2, 1827.53, 3586.78),
}
"""ToRs, uplinks of each, mean and last completion, us."""


def matchings(n: int) -> list[list[tuple[int, int]]]:
    """Rounds in which each meets each once: the circle method."""
    last = n - 1
    return [[(last, r), *(((r + k) % last, (r - k) % last) for k in range(1, n // 2))] for r in range(last)]


def messages(name: str, n: int) -> list[tuple[int, int, int]]:
    """(Source, destination, bytes), in whole packets."""
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    if "next" in name:
        kilobytes = [1_000 * (b == (a + 1) % n) for a, b in pairs]
    elif "drawn" in name:
        kilobytes, seed = [], 12345
        for _ in pairs:
            seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
            kilobytes.append(50 + (seed >> 33) % 950)
    else:
        kilobytes = [250] * len(pairs)
    sizes = [size * 1_000 // PACKET * WIRE for size in kilobytes]
    return [(*pair, size) for pair, size in zip(pairs, sizes, strict=True) if size]


def ours(name: str, n: int, uplinks: int) -> tuple[float, float]:
    """Mean and last completion, us."""
    rounds = matchings(n)
    slots = [[*chain(*rounds[k : k + uplinks])] for k in range(0, len(rounds), uplinks)]
    topology: dict[str, Any] = {
        "kind": "circuits",
        "endpoints": n,
        "ports": uplinks,
        "rate": "10Gbps",
        "latency": "2us",
        "reconfiguration": "11us",
        "schedule": [{"circuits": [[*pair] for pair in slot], "hold": "89us"} for slot in slots],
    }
    with cosim.open({"topology": topology, "network": "fair_share"}) as sim:
        done = [sim.transfer(src, dst, size) for src, dst, size in messages(name, n)]
        ends: list[int] = []
        for one in done:
            one.callbacks.append(lambda _: ends.append(sim.now))
        sim.run(sim.all_of(done))
    return float(np.mean(ends)) / 1e6, max(ends) / 1e6


def table() -> str:
    """A row for each world."""
    lines = ["| world | mean, theirs | ours | | last, theirs | ours |", "|---|---|---|---|---|---|"]
    for name, (n, uplinks, mean, last) in OPENOPTICS.items():
        mine, mine_last = ours(name, n, uplinks)
        lines.append(
            f"| {name} | {mean:,.1f} us | {mine:,.1f} us | {mine / mean - 1:+.1%} | {last:,.1f} us | "
            f"{mine_last:,.1f} us |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
