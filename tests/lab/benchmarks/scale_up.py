"""Credits beside SUE-Sim (github.com/kaima2022/SUE-Sim, commit badd5f1: scale-up Ethernet in ns-3).

``python -m tests.lab.benchmarks.scale_up`` prints the table of docs/validation/fabrics.md. Theirs was run by
hand: its module on Debian's ns-3 3.37, with one default mended that this doesn't take, XPUs at one switch,
links of 200 Gb/s and 500 ns, packets of 2,100 bytes with their headers, one virtual channel, no processing
delays, and a reader of our own for what each XPU receives. Its client drops what doesn't fit its queue, so
sizes are those that arrived. Here, ``congestion`` with ``fixed``, which sends at the host's rate, and room
for as many packets as there are credits.
"""

from __future__ import annotations

from functools import partial
from statistics import fmean
from typing import Any

import cosim

PACKET = 2_100
Flow = tuple[int, int, int]
"""Source, destination, packets."""
FLOOD = [(0, 4, 500), (1, 4, 500), (2, 4, 500), (3, 5, 500)]
BEHIND = [(0, 4, 500), (1, 4, 500), (3, 4, 500), (3, 5, 500)]
SUE_SIM: dict[str, tuple[int, list[Flow], dict[int, float]]] = {
    "one flow": (5, [(0, 1, 1378)], {1: 299.990}),
    "one flow, more credits": (10, [(0, 1, 1755)], {1: 191.558}),
    "one flow, enough credits": (20, [(0, 1, 1975)], {1: 166.988}),
    "three to one, another beside": (20, FLOOD, {4: 127.088, 5: 43.088}),
    "three to one, another behind": (20, BEHIND, {4: 127.088, 5: 117.346}),
    "the same, fewer credits": (10, BEHIND, {4: 163.742, 5: 151.294}),
}
"""Credits, flows, and when each destination has all, us."""


def ours(room: int, flows: list[Flow]) -> dict[int, float]:
    """When each destination has all, us."""
    network: dict[str, Any] = {
        "model": "congestion",
        "control": {"kind": "fixed", "bdp": 1000},
        "mtu": PACKET,
        "headers": False,
        "flow_control": {"kind": "credits", "buffer": room * PACKET},
    }
    ends = max(max(flow[:2]) for flow in flows) + 1
    topology = {"kind": "switch", "endpoints": ends, "rate": "200Gbps", "latency": "500ns"}
    found: dict[int, float] = {}

    def arrived(dst: int, _: object) -> None:
        found[dst] = sim.now / 1e6

    with cosim.open({"topology": topology, "network": network}) as sim:
        for src, dst, packets in flows:
            done = sim.transfer(src, dst, packets * PACKET)
            done.callbacks.append(partial(arrived, dst))
        sim.run()
    return found


def table() -> str:
    """A row for each destination, and one for the mean of a world."""
    lines = ["| flows | credits | to | theirs | ours | |", "|---|---|---|---|---|---|"]
    for name, (room, flows, theirs) in SUE_SIM.items():
        mine = ours(room, flows)
        rows = [(f"XPU {dst}", when, mine[dst]) for dst, when in theirs.items()]
        if len(rows) > 1:
            rows.append(("mean", fmean(theirs.values()), fmean(mine.values())))
        for to, one, other in rows:
            lines.append(
                f"| {name} | {room} | {to} | {one:.1f} us | {other:.1f} us | {other / one - 1:+.1%} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
