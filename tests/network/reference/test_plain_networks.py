"""The models in plain Python: the rules of the seam, and the kernel's times of random traffic."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.reference import plain_network
from cosim.network.reference.analytical import PlainAware, PlainUnaware
from cosim.network.reference.changing import ChangingAware, ChangingUnaware
from cosim.network.reference.fair_share import PlainFairShare
from cosim.network.reference.plain import PlainNetwork
from cosim.network.reference.releasing import PlainReleasing
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.testing.conformance.network import check_network
from cosim.testing.strategies.traffic import Traffic
from cosim.testing.strategies.traffic import traffic as worlds
from tests.network.worlds import drive

some = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
KERNELS: tuple[type[NetworkSimulator], ...] = (
    CongestionAwareNetwork, CongestionUnawareNetwork, FairShareNetwork,
)  # fmt: skip
BY_ITSELF = ["shares", "order", "ties", "merge"]
"""What ``congestion_unaware`` leaves out on purpose: there, messages don't meet."""


@pytest.mark.parametrize("model", [PlainAware, ChangingAware, PlainFairShare])
def test_a_model_keeps_every_rule(model: type[PlainNetwork]) -> None:
    check_network(model)
    check_network(lambda: PlainReleasing(model()))


@pytest.mark.parametrize("model", [PlainUnaware, ChangingUnaware])
def test_a_model_without_congestion_keeps_the_others(model: type[PlainNetwork]) -> None:
    check_network(model, skip=BY_ITSELF)


def plain(model: NetworkSimulator, world: Traffic) -> NetworkSimulator:
    made = plain_network(model.describe().name, world.topology)
    assert made is not None
    return made


@pytest.mark.parametrize("model", KERNELS)
@some
@given(world=worlds(), seed=st.integers(0, 2**32))
def test_random_traffic_takes_as_long(model: type[NetworkSimulator], world: Traffic, seed: int) -> None:
    expected = drive(model(), world)
    assert drive(plain(model(), world), world) == expected
    assert drive(plain(model(), world), world, cuts=random.Random(seed)) == expected
    assert drive(PlainReleasing(plain(model(), world)), world) == expected


@pytest.mark.parametrize("model", KERNELS)
@some
@given(world=worlds(), seed=st.integers(0, 2**32))
def test_random_traffic_takes_as_long_on_links_that_change(
    model: type[NetworkSimulator], world: Traffic, seed: int
) -> None:
    draw, topology = random.Random(seed), world.topology
    changes = []
    for link in draw.sample(range(topology.num_links), draw.randint(1, topology.num_links)):
        time, rate = draw.choice((0, 1, 1_000, 131_000, 1_000_000)), float(topology.link_rate_bps[link])
        changes.append(LinkChange(time, link, draw.choice((0.0, rate / 2, rate / 3))))
        changes.append(LinkChange(time + draw.choice((1, 1_000, 2_000_000)), link, rate))
    changing = LinkChanges(sorted(changes), draw.choice((0, 500, 1_000_000)))
    world = replace(world, topology=replace(topology, changes=changing))
    expected = drive(model(), world)
    assert drive(plain(model(), world), world) == expected
    assert drive(plain(model(), world), world, cuts=draw) == expected
