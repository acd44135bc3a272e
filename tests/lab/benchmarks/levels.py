"""The least that a departure changes, by any method: ``python -m tests.lab.benchmarks.levels [HOSTS]``.

All-to-all of random sizes on a star and a fat-tree, as in :mod:`tests.lab.benchmarks.simgrid` but without
latencies, up to so many hosts, under ``fair_share``, which is stopped at each completion and asked for the
rate of each flow. ``rates``: those that differ from the completion before, for each; ``levels``: different
ones among these, one for each link that holds some of them back. ``growth``: the exponent of their sums
against the number of flows.

Max-min rates are unique, so no way to work them out changes fewer. One that writes each rate that changes
grows by the first exponent at least; one that keeps a level for each link, and finds the levels of the others
without a look at their flows, by the second.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch, FlowGroup, flat_table, pack_key
from cosim.topology.graph import Topology
from cosim.units import NEVER
from tests.lab.benchmarks.simgrid import Flows, all_to_all, fabric, growth

SIZES = {"star": (8, 16, 32, 64), "fat-tree": (32, 64)}


def changes(topology: Topology, flows: Flows) -> Iterator[tuple[int, int]]:
    """(Rates, levels) that differ from the completion before."""
    hosts = topology.num_endpoints
    columns = flows.src.tolist(), flows.dst.tolist(), flows.size.tolist()
    table = flat_table(*columns, num_participants=hosts)
    group = FlowGroup(0, table, np.arange(hosts, dtype=np.int32), pack_key(0, 0, 0, 0))
    network = FairShareNetwork()
    network.open(replace(topology, link_latency_ps=np.zeros(topology.num_links, np.int64)))
    batch = FlowBatch(
        [group], np.zeros(len(flows), np.int32), np.arange(len(flows)), flows.start_ps, flows.start_ps
    )
    before, left = np.zeros((hosts, hosts)), len(flows)
    while left:
        left -= len(network.advance(batch, NEVER).completions)
        batch, found, rate = FlowBatch(), network.rates(), np.zeros((hosts, hosts))
        rate[found.src, found.dst] = found.rate_bps
        differ = (rate != before) & (rate > 0)
        yield int(np.count_nonzero(differ)), len(np.unique(rate[differ]))
        before = rate


def main(names: Sequence[str]) -> None:
    """Print a line for each size, and the exponents."""
    most = int(names[0]) if names else 64
    print(f"{'':<12}{'hosts':>6}{'flows':>7}{'rates':>9}{'levels':>9}")
    for name, sizes in SIZES.items():
        counts, sums = [], []
        for hosts in (size for size in sizes if size <= most):
            flows = all_to_all(hosts, 0)
            total = np.array([*changes(fabric(name, hosts), flows)]).sum(axis=0)
            counts.append(len(flows))
            sums.append(total)
            each = "".join(f"{one / len(flows):>9.1f}" for one in total)
            print(f"{name:<12}{hosts:>6}{len(flows):>7}{each}", flush=True)
        if len(counts) > 1:
            exponents = "".join(f"{growth(counts, one):>9.2f}" for one in np.array(sums).T)
            print(f"{'  growth':<25}{exponents}")


if __name__ == "__main__":
    main(sys.argv[1:])
