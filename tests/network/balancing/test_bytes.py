"""Whatever paths a balancer takes: links carry exactly the messages' bytes, and nodes keep none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.network.balancing.balancers.adaptive import Adaptive
from cosim.network.balancing.balancers.reps import Reps
from cosim.network.balancing.balancers.spray import Spray
from cosim.network.balancing.balancers.ugal import Ugal
from cosim.network.balancing.contract import Balancer
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.simulator import NetworkSimulator
from tests.network.balancing.worlds import leaf_spine, send, up_links

Make = Callable[[Balancer], NetworkSimulator]


def by_congestion(balancer: Balancer) -> NetworkSimulator:
    return CongestionNetwork(Dctcp(), PortSettings(mtu_bytes=1000, headers=False), balancer)


NETWORKS: list[Make] = [FairShareNetwork, by_congestion]


@pytest.mark.parametrize("make", NETWORKS)
@pytest.mark.parametrize("spines", [2, 7])
def test_a_thousand_messages_of_a_byte_are_a_thousand_bytes_spread_evenly(make: Make, spines: int) -> None:
    topology = leaf_spine(leaves=2, below=1, spines=spines)
    starts = [k * 1_000_000 for k in range(1000)]
    _, counted = send(make(Spray()), topology, [(0, 1, 1)] * 1000, starts)
    up = counted.link_bytes[[k for k in up_links(topology) if topology.link_src[k] == topology.link_dst[0]]]
    assert up.sum() == 1000
    assert np.abs(up - 1000 / spines).max() <= 10


@settings(max_examples=12)
@given(
    make=st.sampled_from(NETWORKS),
    kind=st.sampled_from([Spray, Reps, Adaptive, Ugal]),
    spines=st.integers(1, 6),
    messages=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 300_000), st.integers(0, 50)),
        min_size=1,
        max_size=15,
    ),
)
def test_bytes_are_conserved_at_every_node(
    make: Make, kind: type[Balancer], spines: int, messages: list[tuple[int, int, int, int]]
) -> None:
    topology = leaf_spine(leaves=3, below=2, spines=spines)
    given = [(src, dst, size) for src, dst, size, _ in messages if src != dst]
    if make is FairShareNetwork and kind is Reps:
        kind = Spray  # it sees no marks
    starts = [at * 1_000_000 for src, dst, _, at in messages if src != dst]
    if not given:
        return
    _, counted = send(make(kind()), topology, given, starts)
    into, out = np.zeros(topology.num_nodes, np.int64), np.zeros(topology.num_nodes, np.int64)
    np.add.at(out, topology.link_src, counted.link_bytes)
    np.add.at(into, topology.link_dst, counted.link_bytes)
    for src, dst, size in given:
        into[src] += size
        out[dst] += size
    assert into.tolist() == out.tolist()
    assert counted.link_bytes.min() >= 0
