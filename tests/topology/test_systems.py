"""Systems by name: what their data sheets say is what is built."""

import numpy as np
import pytest

from cosim.context import HERE
from cosim.topology import systems
from cosim.topology.scale_up import host_shape
from cosim.topology.systems import System

EVERY = [
    kind
    for kind in vars(systems).values()
    if isinstance(kind, type) and issubclass(kind, System) and kind is not System
]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_hosts_have_what_the_data_sheet_says(kind: type[System]) -> None:
    topology = kind(hosts=2).build(HERE)
    shape = host_shape(topology)
    assert shape is not None
    assert topology.num_endpoints == 2 * kind.sheet.gpus == 2 * shape.gpus
    assert shape.nics == kind.sheet.nics
    assert topology.dims == (kind.sheet.gpus, 2)


def test_equal_local_ranks_meet_at_a_leaf_and_nothing_is_oversubscribed() -> None:
    made = systems.DgxH100(hosts=64)
    assert (made.groups, made.as_leaf_spine().leaves) == (2, 16)
    assert made.as_leaf_spine().ratio() == pytest.approx(1.0)
    assert systems.DgxH100(hosts=33).groups == 3
    topology = systems.DgxH100(hosts=4).build(HERE)
    assert topology.scale_up is not None
    nic_links = np.flatnonzero(~topology.scale_up)
    leaf = {
        topology.node_names[topology.link_src[link]]: topology.node_names[topology.link_dst[link]]
        for link in nic_links
        if ".nic" in topology.node_names[topology.link_src[link]]
        and topology.node_names[topology.link_dst[link]].startswith("leaf")
    }
    assert {leaf[f"host{host}.nic5"] for host in range(4)} == {"leaf5"}
