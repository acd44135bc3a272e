"""cosim's networks before a referee in exact fractions; ``python -m tests.network.referee`` tries more."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

from cosim.network.balancing.contract import Balancer
from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.mltcp import Mltcp
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.registry import find, names
from tests.network.balancing.worlds import leaf_spine, send
from tests.network.referee import exact
from tests.network.referee.compare import compare
from tests.network.referee.exact import Flow, World, fair_share, first_come
from tests.network.referee.worlds import a_world


def test_the_referee_knows_nothing_of_cosim() -> None:
    tree = ast.parse(Path(exact.__file__).read_text())
    modules = {one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    modules |= {name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names}
    assert not {one for one in modules if one and one.partition(".")[0] in ("cosim", "tests", "numpy")}


def test_the_referee_is_right_where_everybody_can_see_it() -> None:
    byte = Fraction(1, 1000)
    one, other = Flow((0,), 1000, 1), Flow((0,), 3000, 2)
    assert fair_share(World((byte,), (700,), (one, other))) == [2_000_700, 4_000_700]
    heavy = replace(one, weight=Fraction(2))
    assert fair_share(World((byte,), (0,), (heavy, replace(one, channel=2)))) == [1_500_000, 2_000_000]
    later = replace(other, priority=1)
    assert fair_share(World((byte,), (0,), (one, later))) == [1_000_000, 4_000_000]
    slowed = World((byte,), (0,), (one,), ((500_000, 0, byte / 2),))
    assert fair_share(slowed) == [1_500_000]
    released = replace(one, channel=2, after=((0, True),), delay=5)
    assert fair_share(World((byte,), (0,), (one, released))) == [1_000_000, 2_000_005]
    assert first_come(World((byte,), (2000,), (one, other))) == ([1_002_000, 4_002_000], True)


@pytest.mark.parametrize(
    "worlds", [range(100), pytest.param(range(100, 2000), marks=pytest.mark.slow)], ids=["100", "2000"]
)
def test_every_message_comes_to_the_picosecond(worlds: range) -> None:
    found = compare(worlds)
    assert not found.wrong
    assert found.ties < len(worlds) // 5


@pytest.mark.parametrize("change", [{"weight": Fraction(1)}, {"priority": 0}, {"after": ()}, {"delay": 0}])
def test_each_property_of_a_flow_matters_in_some_world(change: dict[str, object]) -> None:
    """Else the referee would agree with a network that ignores it."""
    moved = 0
    for number in range(100):
        world, _ = a_world(number)
        flows = tuple(replace(flow, **change) for flow in world.flows)  # type: ignore[arg-type]
        moved += fair_share(world) != fair_share(replace(world, flows=flows))
    assert moved >= 10


def test_changes_of_links_matter_in_some_world() -> None:
    worlds = [a_world(number)[0] for number in range(100)]
    assert sum(fair_share(one) != fair_share(replace(one, changes=())) for one in worlds) >= 10


def _balancer(name: str) -> tuple[Control, Balancer | None]:
    return Dctcp(), find("cosim.balancers", name)()


def _control(name: str) -> tuple[Control, Balancer | None]:
    kind = find("cosim.controls", name)
    return (kind(over=Dctcp()) if kind is Mltcp else kind()), None


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((_balancer, name) for name in names("cosim.balancers")),
        *((_control, name) for name in names("cosim.controls")),
    ],
)
def test_bytes_into_a_node_are_bytes_out_of_it(
    make: Callable[[str], tuple[Control, Balancer | None]], name: str
) -> None:
    draw = Random(name)
    topology = leaf_spine(leaves=3, below=2, spines=3)
    pairs = [draw.sample(range(6), 2) for _ in range(12)]
    messages = [(src, dst, draw.randrange(200_000)) for src, dst in pairs]
    control, balancer = make(name)
    starts = [draw.randrange(50_000_000) for _ in messages]
    for headers in (False, True):
        ports = PortSettings(mtu_bytes=1000, buffer_bytes=10**8, headers=headers)
        _, counted = send(CongestionNetwork(control, ports, balancer), topology, messages, starts)
        into, out = np.zeros(topology.num_nodes, np.int64), np.zeros(topology.num_nodes, np.int64)
        np.add.at(out, topology.link_src, counted.link_bytes)
        np.add.at(into, topology.link_dst, counted.link_bytes)
        switches = slice(topology.num_endpoints, None)
        assert into[switches].tolist() == out[switches].tolist()
        for src, dst, size in messages:
            into[src] += size
            out[dst] += size
        assert headers or into.tolist() == out.tolist()
