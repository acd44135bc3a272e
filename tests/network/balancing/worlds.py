"""Messages that all begin at one time, on fabrics with several paths, by any network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cosim.context import HERE
from cosim.network.flows import I64, FlowGroup, flat_table, pack_key
from cosim.network.simulator import NetworkSimulator, NetworkStatistics
from cosim.topology.graph import Topology
from cosim.topology.leaf_spine import LeafSpine
from cosim.units import NEVER
from tests.network.worlds import batch


def leaf_spine(leaves: int = 4, below: int = 4, spines: int = 4, **more: Any) -> Topology:
    settings: dict[str, Any] = {
        "rate": "80Gbps",
        "latency": "1us",
        "routing": "ecmp",
    } | more
    made = LeafSpine(leaves=leaves, endpoints_per_leaf=below, spines=spines, **settings)
    return made.build(HERE)


def groups_of(messages: Sequence[tuple[int, int, int]]) -> list[FlowGroup]:
    """A group for each (source, destination, bytes), on a channel of its own."""
    return [
        FlowGroup(
            handle=k,
            table=flat_table([0], [1], [size], reaction_ps=NEVER),
            endpoints=np.array([src, dst], np.int32),
            key=pack_key(0, 0, k, 0),
            channel=k,
        )
        for k, (src, dst, size) in enumerate(messages)
    ]


def send(
    network: NetworkSimulator,
    topology: Topology,
    messages: Sequence[tuple[int, int, int]],
    starts: Sequence[int] | None = None,
    seed: int = 0,
) -> tuple[I64, NetworkStatistics]:
    """Send (source, destination, bytes), each on a channel of its own; when each arrives, what links did."""
    network.open(topology, seed)
    groups = groups_of(messages)
    at = starts or [0] * len(messages)
    step = network.advance(batch(groups, [(k, 0, at[k], at[k]) for k in range(len(messages))]), NEVER)
    order = np.argsort(step.completions.handle)
    assert len(order) == len(messages)
    return step.completions.time_ps[order], network.statistics()


def up_links(topology: Topology) -> list[int]:
    """Links from a leaf to a spine."""
    names = topology.node_names
    return [
        k
        for k, (a, b) in enumerate(zip(topology.link_src, topology.link_dst, strict=True))
        if names[a].startswith("leaf") and names[b].startswith("spine")
    ]
