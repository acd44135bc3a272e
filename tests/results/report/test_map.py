"""Fabrics as maps: tiers in rows, rings round, few boxes however many nodes, none on another."""

from __future__ import annotations

import numpy as np
import pytest

from cosim.context import Context
from cosim.results.report.fabric import MOST_IN_A_ROW, FabricMap, draw_map
from cosim.topology.graph import Topology
from cosim.topology.grid import Dimension, grid_topology
from cosim.topology.leaf_spine import LeafSpine


def leaf_spine(leaves: int, each: int, **more: object) -> Topology:
    fields = {"leaves": leaves, "spines": 4, "endpoints_per_leaf": each, "latency": "500ns", **more}
    return LeafSpine.model_validate(fields).build(Context(seed=0))


def drawn(topology: Topology) -> FabricMap:
    links = topology.link_src.astype(np.int64), topology.link_dst.astype(np.int64)
    return draw_map(topology.node_names, topology.num_endpoints, *links, topology.dims)


def row_of(map_: FabricMap, name: str) -> float:
    return float(map_.y[map_.label.index(name)])


def test_tiers_are_rows_from_the_spines_down() -> None:
    found = drawn(leaf_spine(4, 4, rate="400Gbps"))
    assert row_of(found, "spine0") < row_of(found, "leaf0") == row_of(found, "leaf3")
    ends = found.y[found.is_endpoint]
    assert (ends > row_of(found, "leaf0")).all()
    assert len(found.a) == 16 + 16  # both directions are one line


def test_a_hosts_switch_is_below_its_gpus() -> None:
    hosts = {"gpus": 8, "nvlink_rate": "450GB/s", "nics": 8, "nic_rate": "400Gbps"}
    found = drawn(leaf_spine(2, 8, hosts=hosts))
    switch = next(k for k, label in enumerate(found.label) if "nvswitch" in label)
    assert found.y[switch] > found.y[found.is_endpoint].max()


@pytest.mark.parametrize("leaves", [4, 64])
def test_no_box_lies_on_another_and_every_node_is_in_one(leaves: int) -> None:
    topology = leaf_spine(leaves, 16, rate="400Gbps")
    found = drawn(topology)
    assert found.size.sum() == topology.num_nodes
    assert len({(round(x, 6), round(y, 6)) for x, y in zip(found.x, found.y, strict=True)}) == len(found.x)
    assert max(np.unique(found.y, return_counts=True)[1]) <= MOST_IN_A_ROW
    inside = found.line < 0
    assert (found.box[topology.link_src[inside]] == found.box[topology.link_dst[inside]]).all()


def test_rings_are_round_and_grids_are_grids() -> None:
    ring = drawn(grid_topology([Dimension("Ring", 8, 1e11, 500)]))
    assert np.allclose(np.hypot(ring.x - 0.5, ring.y - 0.5), 0.42)
    grid = drawn(grid_topology([Dimension("Ring", 4, 1e11, 500), Dimension("Ring", 3, 1e11, 500)]))
    assert (len(np.unique(grid.x.round(6))), len(np.unique(grid.y.round(6)))) == (4, 3)


def test_switches_of_two_dimensions_are_two_rows_one_on_each_side_of_the_endpoints() -> None:
    """8 endpoints, 2 to a switch of the first dimension (8 to 11), 4 to one of the second (12 and 13)."""
    ends = [(k, 8 + k // 2) for k in range(8)] + [(k, 12 + k % 2) for k in range(8)]
    src, dst = np.array(ends + [(b, a) for a, b in ends]).T
    drawn = draw_map([str(k) for k in range(14)], 8, src, dst)
    (endpoints,), (first,), (second,) = (
        set(drawn.y[part].tolist()) for part in (slice(8), slice(8, 12), slice(12, 14))
    )
    assert second < endpoints < first  # from the top down
