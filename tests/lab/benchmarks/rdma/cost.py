"""CPU seconds for each simulated gigabyte over two hops, RDMA beside TCP; start-up is taken off."""

from __future__ import annotations

from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.protocol.settings import SessionSettings
from cosim.topology.graph import Topology
from tests.lab.benchmarks.ns3_congestion import Case
from tests.lab.benchmarks.rdma.sessions import Ran, packets, run, session

SIZE = 400_000_000
RDMA = ("dcqcn", "hpcc", "swift")
TCP = ("cubic", "dctcp")
MTUS = (1500, 4000, 9000)


def _topology() -> Topology:
    text = """
topology: {kind: switch, endpoints: 5, rate: 100Gbps, latency: 1us}
network: fair_share
jobs: [{workload: {kind: collective, collective: barrier, ranks: 2}}]
"""
    return build(loads(text)).topology


def _ran(name: str, mtu: int, size: int) -> Ran:
    """Four senders to one, ``size`` bytes in all."""
    case = Case("cost", _topology(), tuple((k, 4, size // 4, 0.0) for k in range(4)), mtu)
    if name in RDMA:
        return packets(name, case)
    return run(session("ns3", SessionSettings(transport=name, mtu_bytes=mtu)), case)


def section() -> str:
    """A row for each transport and MTU."""
    lines = [
        f"4 senders to one at 100 Gb/s, {SIZE / 1e9:g} GB over two hops: CPU-s of the server for each GB",
        "",
        f"{'':<14}{'MTU':>6}{'CPU-s/GB':>10}{'events/packet':>15}{'us/event':>10}",
    ]
    for mtu in MTUS:
        for name, kind in [*((n, "RDMA") for n in RDMA), *((n, "TCP") for n in TCP)]:
            idle = _ran(name, mtu, 4_000)
            ran = _ran(name, mtu, SIZE)
            cpu = ran.cpu_s - idle.cpu_s
            count = SIZE / (mtu - (44 if kind == "RDMA" else 40))
            events = ran.statistics.events
            lines.append(
                f"{kind + ' ' + name:<14}{mtu:>6}{cpu / (SIZE / 1e9):>10.2f}{events / count:>15.1f}"
                f"{cpu / events * 1e6:>10.2f}"
            )
    return "\n".join([*lines, ""])
