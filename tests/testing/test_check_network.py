"""The conformance kit in-process: built-in networks pass; each fault fails its own check, and no other."""

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
import pytest

from cosim.context import HERE
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.contract import NetworkSpec
from cosim.network.device.network import DeviceNetwork
from cosim.network.device.settings import DeviceSpec
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch
from cosim.network.hybrid import HybridNetwork
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.registry import Named
from cosim.testing import ConformanceError, FaultyNetwork, Recorder, check_network
from cosim.testing.conformance.cases import two_hosts
from cosim.testing.conformance.faulty_network import NETWORK_FAULTS, FaultInNetwork, model_for
from cosim.testing.conformance.kit import check_names
from cosim.topology.graph import Topology

READ_BY = {
    "name": "describe",
    "dependent_flows": "dependents",
    "peek": "peek",
    "deterministic": "determinism",
    "quantum_ps": "quantum",
    "symmetric": "symmetry",
    "link_changes": "link_changes",
    "live_changes": "live_changes",
    "live_control": "unclaimed",
    "switch_ends": "switch_ends",
    "computations": "computations",
    "queues": "queues",
    "rates": "rates",
}
"""Each claim, and the check that holds a network to it."""


def device() -> NetworkSimulator:
    return DeviceNetwork(DeviceSpec.model_validate({"workgroup_time": "10us"}))


@pytest.mark.parametrize("make", [CongestionAwareNetwork, FairShareNetwork, device])
def test_the_built_in_networks_pass(make: Callable[[], NetworkSimulator]) -> None:
    check_network(make)


@pytest.mark.parametrize("control", ["dcqcn", "swift"])
def test_congestion_passes(control: str) -> None:
    spec = Named("cosim.networks").resolve({"model": "congestion", "control": control})
    assert isinstance(spec, NetworkSpec)
    check_network(lambda: spec.build(HERE))


def test_a_hybrid_passes_on_two_hosts() -> None:
    check_network(lambda: HybridNetwork(FairShareNetwork(), CongestionAwareNetwork()), topology=two_hosts())


def test_a_network_without_congestion_fails_what_it_does_not_model_and_nothing_else() -> None:
    with pytest.raises(ConformanceError) as caught:
        check_network(CongestionUnawareNetwork)
    assert caught.value.report.failed == ("shares", "order", "ties", "merge")
    check_network(CongestionUnawareNetwork, skip=["shares", "order", "ties", "merge"])


def test_networks_in_front_of_another_pass() -> None:
    check_network(lambda: Recorder(FairShareNetwork()))
    report = check_network(lambda: FaultyNetwork(FairShareNetwork(), {}))
    assert {"dependents", "peek"} <= {*report.skipped}


@pytest.mark.parametrize("fault", NETWORK_FAULTS)
def test_each_fault_fails_exactly_its_check(fault: str) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_network(lambda: FaultInNetwork(model_for(fault), fault))
    assert caught.value.report.failed == (NETWORK_FAULTS[fault],), str(caught.value)


def test_every_check_has_a_fault_that_it_notices() -> None:
    assert {*check_names("network")} == {*NETWORK_FAULTS.values()}


def test_whatever_a_network_can_claim_is_checked() -> None:
    assert {field.name for field in fields(Capabilities)} == {*READ_BY}
    assert {*READ_BY.values()} <= {*check_names("network")}


class Stranger(FairShareNetwork):
    """Somebody's network, with somebody's mistake."""

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        if len(flows.start_ps) and flows.start_ps.max() > 10**6:
            return Advance(horizon_ps, np.zeros(3)[7])
        return super().advance(flows, horizon_ps)


def test_an_error_of_the_network_itself_says_where_it_was_raised() -> None:
    with pytest.raises(ConformanceError, match=r"IndexError: .*test_check_network\.py:\d+") as caught:
        check_network(Stranger, only=["marks"])
    assert caught.value.report.failed == ("marks",)


def test_no_such_check() -> None:
    with pytest.raises(ValueError, match=r"there is no check 'speed' of a network; there are: .*latency"):
        check_network(FairShareNetwork, only=["speed"])


def test_the_topologies_of_the_kit_are_two_links_between_any_two_endpoints() -> None:
    topology: Topology = two_hosts()
    pairs = np.array([(a, b) for a in range(8) for b in range(8) if a != b], np.int32)
    ptr, links = topology.paths(pairs[:, 0].copy(), pairs[:, 1].copy(), np.zeros(len(pairs), np.int32))
    assert (np.diff(ptr) == 2).all()
    assert topology.scale_up is not None
    inside = topology.scale_up[links].reshape(-1, 2)
    assert (inside == (pairs[:, :1] // 4 == pairs[:, 1:] // 4)).all()


def test_told_is_called_after_each_check() -> None:
    names: list[str] = []
    only: Sequence[str] = ("latency", "order")
    check_network(FairShareNetwork, only=only, told=lambda result: names.append(result.name))
    assert sorted(names) == sorted(only)
