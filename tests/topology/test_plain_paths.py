"""Cheapest paths in plain Python beside the kernel's: the same links, whatever chooses among equal ways."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from cosim.context import Context
from cosim.experiment.scenario import loads
from cosim.kernel.library import KernelLibrary
from cosim.topology.contract import TopologySpec
from cosim.topology.graph import Topology

LINK = {"rate": "1Gbps", "latency": "1us"}
SPINES = {"kind": "leaf_spine", "leaves": 2, "spines": 2}
NVLINK = {"nvlink_rate": "4Gbps", "nvlink_latency": "1us"}
HOSTS = {"gpus": 4, "nics": 2, "nic_rate": "1Gbps", "rails": True, **NVLINK}
FABRICS = {
    "leaf-spine": {"kind": "leaf_spine", "leaves": 4, "spines": 3, "endpoints_per_leaf": 4, **LINK},
    "fat-tree": {"kind": "fat_tree", "k": 4, **LINK},
    "hosts": {**SPINES, "endpoints_per_leaf": 8, "latency": "1us", "hosts": HOSTS},
    "planes": {**SPINES, "endpoints_per_leaf": 4, "planes": 2, **LINK},
}


def fabric(name: str, routing: str) -> Topology:
    """A fresh topology, whose tables nobody has filled."""
    job = {"workload": {"kind": "collective", "collective": "all_reduce", "ranks": 2, "size": "1MB"}}
    document = {"network": "fair_share", "topology": {**FABRICS[name], "routing": routing}, "jobs": [job]}
    spec = loads(yaml.safe_dump(document)).topology
    assert isinstance(spec, TopologySpec)
    return spec.build(Context())


def paths(topology: Topology) -> list[np.ndarray]:
    """Between all pairs, by some channels; and up to three of each pair."""
    ends = np.arange(topology.num_endpoints, dtype=np.int32)
    src, dst = (one.ravel() for one in np.meshgrid(ends, ends))
    channel = ((7 * src + 3 * dst) % 5).astype(np.int32)
    return [*topology.paths(src, dst, channel), *topology.routing.alternatives(topology, src, dst, 3)]


@pytest.mark.parametrize("routing", ["shortest", "ecmp", "dmodk", "by_channel"])
@pytest.mark.parametrize("name", FABRICS)
def test_paths_are_the_kernels(name: str, routing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = paths(fabric(name, routing))
    monkeypatch.setattr(KernelLibrary, "why_not", lambda _: "there is none")
    assert all(np.array_equal(a, b) for a, b in zip(given, paths(fabric(name, routing)), strict=True))


def test_flows_of_a_plane_use_all_of_its_spines() -> None:
    topology = fabric("planes", "ecmp")
    _, links, *_ = paths(topology)
    met = {topology.node_names[int(node)] for node in topology.link_dst[links]}
    assert {f"plane{p}.spine{s}" for p in range(2) for s in range(2)} <= met


def test_channels_take_one_core_each_of_a_fat_tree() -> None:
    topology = fabric("fat-tree", "by_channel")
    ends = np.zeros(4, np.int32), np.full(4, 15, np.int32)
    _, links = topology.paths(*ends, np.arange(4, dtype=np.int32))
    met = [topology.node_names[int(node)] for node in topology.link_dst[links]]
    assert sorted(name for name in met if name.startswith("core")) == [f"core{k}" for k in range(4)]
