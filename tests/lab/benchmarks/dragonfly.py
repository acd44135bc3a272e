"""Dragonflies beside those of uet-htsim (github.com/ultraethernet/uet-htsim, commit 40ccb05), run by hand.

``python -m tests.lab.benchmarks.dragonfly`` prints the table of docs/validation/fabrics.md. There, its
``DragonFlyTopology`` with ``RANDOM`` queues that never fill, links of 100 Gb/s and 1 us, minimal paths (the
first of ``get_bidir_paths``), and sources of our own, for it wires that topology to no transport: each host's
flows of 200 kB take turns at its rate, in packets of 4,000 bytes, without headers. Here, ``congestion`` with
``fixed``, which sends at the host's rate, the same packets, and pauses at thresholds that are never met.
Which link goes to which group differs, so patterns are those that it doesn't matter to.
"""

from __future__ import annotations

import numpy as np

from cosim.context import HERE
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.fabric import PortSettings
from cosim.topology.dragonfly import Dragonfly
from tests.network.congestion.worlds import watch

SIZE = 200_000
HTSIM: dict[tuple[int, int, int], dict[str, tuple[float, float]]] = {
    (1, 4, 1): {
        "within the group": (19.64, 19.64),
        "to the next group": (65.158, 68.96),
        "incast": (264.491, 307.64),
        "all-to-all": (308.165, 315.0),
    },
    (2, 4, 2): {
        "within the group": (35.48, 35.64),
        "to the next group": (117.879, 132.96),
        "incast": (873.973, 1138.32),
        "all-to-all": (1145.11, 1173.56),
    },
}
"""(p, a, h): pattern: its mean and last completion, us."""


def flows(pattern: str, p: int, a: int, n: int) -> list[tuple[int, int, int]]:
    """(Source, destination, bytes)."""
    if pattern == "all-to-all":
        return [(src, dst, SIZE) for src in range(n) for dst in range(n) if src != dst]
    if pattern == "incast":
        return [(src, 0, SIZE) for src in range(1, n)]
    group = p * a
    if pattern == "to the next group":
        return [(src, (src + group) % n, SIZE) for src in range(n)]
    return [(src, src // group * group + (src + p) % group, SIZE) for src in range(n)]


def ours(pattern: str, p: int, a: int, h: int) -> tuple[float, float]:
    """Mean and last completion, us."""
    topology = Dragonfly(
        endpoints_per_switch=p, switches_per_group=a, links_per_switch=h, rate="100Gbps", latency="1us"
    ).build(HERE)
    ports = PortSettings(mtu_bytes=4_000, headers=False, lossless=True, buffer_bytes=10**10)
    seen = watch(topology, Fixed(bdp=10_000), flows(pattern, p, a, topology.num_endpoints), ports)
    done_us = np.array(list(seen.done_ps.values())) / 1e6
    return float(done_us.mean()), float(done_us.max())


def table() -> str:
    """A row for each dragonfly and pattern."""
    lines = [
        "| p, a, h | hosts | pattern | mean, theirs | ours | | last, theirs | ours |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (p, a, h), rows in HTSIM.items():
        for pattern, (mean, last) in rows.items():
            mine, mine_last = ours(pattern, p, a, h)
            lines.append(
                f"| {p}, {a}, {h} | {p * a * (a * h + 1)} | {pattern} | {mean:.1f} us | {mine:.1f} us | "
                f"{mine / mean - 1:+.1%} | {last:.1f} us | {mine_last:.1f} us |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
