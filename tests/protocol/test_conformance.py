"""The kit passes what is right, and names what is wrong: each fault fails its own check, and no other."""

from collections.abc import Callable

import pytest

from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.protocol.server import Server
from cosim.testing.conformance import check_network_simulator
from cosim.testing.conformance.faulty import FAULTS, faulty
from cosim.testing.conformance.kit import check_names


@pytest.mark.parametrize("make", [CongestionAwareNetwork, FairShareNetwork])
def test_the_built_in_networks_pass(make: Callable[[], CongestionAwareNetwork]) -> None:
    report = check_network_simulator(make)
    assert report.passed, str(report)


def test_a_network_without_congestion_fails_what_it_does_not_model() -> None:
    assert check_network_simulator(CongestionUnawareNetwork).failed == ("shares", "order")


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_fails_exactly_its_check(serve: Callable[..., Server], fault: str) -> None:
    report = check_network_simulator(serve(make_session=faulty(fault)).address, deadline_s=2.0)
    assert report.failed == (FAULTS[fault],), str(report)


def test_every_check_has_a_fault_that_it_notices() -> None:
    assert {*check_names()} == {*FAULTS.values()}
