"""NSCC with trimming beside Ultra Ethernet's simulator (github.com/ultraethernet/uet-htsim): incasts.

Its last completions, in us, are those of ``tests/lab/benchmarks/ultra_ethernet.py``, run by hand with the
queues and marks that it chooses for 400 Gb/s, and so are the packets that it sent again.
"""

from __future__ import annotations

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from tests.lab.benchmarks.ns3_congestion import Case
from tests.lab.benchmarks.rdma.sessions import packets

INCASTS = ((2, 50_000_000, 2041.11, 102), (8, 20_000_000, 3263.82, 1012))
"""Senders, bytes each, last completion, packets sent again."""
TOPOLOGY = """
topology: {kind: leaf_spine, leaves: 8, spines: 8, endpoints_per_leaf: 8, rate: 400Gbps, latency: 1us}
network: fair_share
jobs: [{workload: {kind: collective, collective: barrier, ranks: 2}}]
"""


def section() -> str:
    """A row for each incast and routing."""
    topology = build(loads(TOPOLOGY)).topology
    lines = ["NSCC: last completion in us and packets sent again", ""]
    lines.append(f"{'':<16}{'uet-htsim':>10}{'':>7}{'ns3_rdma':>10}{'':>7}{'':>7}")
    for senders, size, there, again in INCASTS:
        for routing in ("spray", "given"):
            flows = tuple((7 * k + 1, 63, size, 0.0) for k in range(senders))
            one = packets(
                "nscc",
                Case("incast", topology, flows, 4140),
                buffer=419_150,
                shared_buffer=False,
                ecn_min=87_150,
                ecn_max=336_150,
                routing=routing,
            )
            last, sent = one.us.max(), one.statistics.extra["retransmissions"].sum()
            cells = f"{there:>10.0f}{again:>7}{last:>10.0f}{sent:>7.0f}{last / there - 1:>+7.1%}"
            lines.append(f"{f'{senders}:1, {routing}':<16}{cells}")
    return "\n".join([*lines, ""])
