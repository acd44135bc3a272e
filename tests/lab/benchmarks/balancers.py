"""What choosing costs: ``python -m tests.lab.benchmarks.balancers``.

A kernel alone, called for 512 connections of eight paths each; and 50,000 messages on
``fair_share``, one after the other, so that each is a batch of its own: CPU-seconds more than without a
balancer, for each choice.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import numpy as np

from cosim.context import HERE
from cosim.network.balancing.ask import CHOICE, MAX_STATE, SEEN
from cosim.network.balancing.contract import Balancer
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowGroup, flat_table, pack_key
from cosim.network.plugged import address_of_kernel
from cosim.registry import find, names
from cosim.topology.leaf_spine import LeafSpine
from cosim.units import NEVER
from tests.network.worlds import batch

ROWS, PATHS, MESSAGES, REPEATS = 512, 8, 50_000, 7


def least(run: Callable[[], object]) -> float:
    """The least CPU-seconds of several runs: others may be at work on this machine."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def kernel_ns(balancer: Balancer) -> float:
    """Nanoseconds of a kernel for one connection."""
    rng = np.random.default_rng(0)
    rows, seen = np.zeros(ROWS, CHOICE), np.zeros((ROWS, PATHS), SEEN)
    rows["conn"], rows["paths"], rows["begins_message"] = np.arange(ROWS), PATHS, 1
    rows["chance"], rows["hash"], rows["base_rtt"] = rng.random(ROWS), rng.random(ROWS), 1e7
    seen["alive"], seen["rate"], seen["minimal"] = 1, 1e11, np.arange(PATHS) < PATHS // 2
    seen["load"], seen["flows"] = rng.random((ROWS, PATHS)), rng.integers(0, 9, (ROWS, PATHS))
    state, parameters = np.zeros((ROWS, MAX_STATE)), np.array(balancer.parameters(), np.float64)
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 4)(address_of_kernel(type(balancer)))
    where = [array.ctypes.data for array in (rows, seen, state, parameters)]

    def many() -> None:
        for _ in range(200):
            call(ROWS, *where)

    return least(many) / (200 * ROWS) * 1e9


def network_seconds(balancer: Balancer | None) -> float:
    """CPU-seconds of messages one after the other, without what a run needs before the first."""
    topology = LeafSpine.model_validate(
        {
            "leaves": 4,
            "spines": 8,
            "endpoints_per_leaf": 8,
            "rate": "100Gbps",
            "latency": "1us",
            "routing": "ecmp",
        }
    ).build(HERE)
    table = flat_table([0] * MESSAGES, [1] * MESSAGES, [1000] * MESSAGES, reaction_ps=NEVER)
    starts = [(0, k, k * 10_000_000, k * 10_000_000) for k in range(MESSAGES)]

    def run() -> None:
        network = FairShareNetwork(balancer)
        network.open(topology)
        group = FlowGroup(0, table, np.array([0, 31], np.int32), pack_key(0, 0, 0, 0))
        network.advance(batch([group], []), 0)
        network.advance(given, NEVER)

    given = batch([], starts)
    run()
    return least(run)


def main() -> None:
    """Print the table."""
    base = network_seconds(None)
    print(f"without a balancer: {base / MESSAGES * 1e9:.0f} ns a message")
    print(f"{'balancer':14} {'kernel':>10} {'choice, all told':>18}")
    for name in names("cosim.balancers"):
        balancer: Balancer = find("cosim.balancers", name)()
        if balancer.chooses and not balancer.needs_queues:
            more = (network_seconds(balancer) - base) / MESSAGES * 1e9
            print(f"{name:14} {kernel_ns(balancer):7.0f} ns {more:15.0f} ns")


if __name__ == "__main__":
    main()
