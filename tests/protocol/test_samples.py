"""Queues and rates over time of a network elsewhere: those of the same network here, also where a run goes on
from a log; a server that sends something else is named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cosim.engine.records import Series
from cosim.errors import DivergenceError, ProtocolError
from cosim.experiment.build import build
from cosim.experiment.scenario import Scenario, loads
from cosim.experiment.simulate import Run, simulate
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.fabric import PortSettings
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.hybrid import HybridNetwork
from cosim.network.simulator import NetworkSimulator
from cosim.protocol.client import connect
from cosim.protocol.replay_log import LogReader
from cosim.protocol.sample import decode_queues, decode_rates
from cosim.protocol.server import Server
from cosim.protocol.v1 import network_simulator_pb2 as pb

SCENARIO = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 2, rate: 40Gbps, latency: 1us}
network: fair_share
jobs:
- {name: a, workload: {kind: collective, collective: all_to_all, ranks: 4, size: 1MB}, iterations: 2}
"""
EVERYTHING = "record: {queues: '* -> *', rates: [a, '* -> *'], every: 20us}\n"
RATES = "record: {rates: [a, '* -> *'], every: 20us}\n"
HOSTS = """
topology:
  kind: leaf_spine
  leaves: 2
  spines: 2
  endpoints_per_leaf: 2
  latency: 1us
  hosts: {gpus: 2, nvlink_rate: 300GB/s, nvlink_latency: 300ns, nics: 2, nic_rate: 40Gbps}
"""


def congestion() -> NetworkSimulator:
    return CongestionNetwork(Dctcp(), PortSettings(mtu_bytes=1500))


def run(network: NetworkSimulator, scenario: Scenario) -> Run:
    return simulate(scenario, dataclasses.replace(build(scenario), network=network))


def assert_same(one: Run, other: Run) -> None:
    assert one.digest == other.digest
    here, there = one.records.series, other.records.series
    assert here is not None
    assert there is not None
    assert len(here.at_ps) > 10
    for field in dataclasses.fields(Series):
        np.testing.assert_equal(getattr(there, field.name), getattr(here, field.name), err_msg=field.name)


@pytest.mark.parametrize("release", ["network", "engine"])
@pytest.mark.parametrize(("make", "record"), [(congestion, EVERYTHING), (FairShareNetwork, RATES)])
def test_a_served_network_shows_what_it_shows_here(
    serve: Callable[..., Server], make: Callable[[], NetworkSimulator], record: str, release: str
) -> None:
    scenario = loads(SCENARIO + record, {"release": release})
    assert_same(run(make(), scenario), run(connect(serve(make).address), scenario))


def test_a_hybrid_has_the_queues_of_its_part_elsewhere(serve: Callable[..., Server]) -> None:
    scenario = loads(HOSTS + SCENARIO[SCENARIO.index("network") :] + RATES)
    here = run(HybridNetwork(FairShareNetwork(), congestion()), scenario)
    assert_same(here, run(HybridNetwork(FairShareNetwork(), connect(serve(congestion).address)), scenario))


def test_a_run_that_goes_on_from_a_log_has_the_same_series(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    address = serve(congestion).address
    scenario = loads(SCENARIO + EVERYTHING)
    network = connect(address)
    network.log_to(tmp_path / "log")
    whole = run(network, scenario)
    content = (tmp_path / "log").read_bytes()
    assert sum(len(one.samples) for one in LogReader(tmp_path / "log").exchanges()) > 20
    for share in (0.3, 0.8, 1.0):
        cut = tmp_path / f"log{share}"
        cut.write_bytes(content[: round(len(content) * share)])
        again = connect(address)
        again.log_to(cut, resume=True)
        assert_same(whole, run(again, scenario))
    seldom = loads(SCENARIO + EVERYTHING.replace("20us", "10us"))
    other = connect(address)
    other.log_to(tmp_path / "log", resume=True)
    with pytest.raises(DivergenceError, match="not the same run"):
        run(other, seldom)


def test_a_server_that_sends_columns_of_other_lengths_is_named() -> None:
    with pytest.raises(ProtocolError, match=r"odd was asked for 2 queues, and sent \[1, 0, 0, 0, 0\]"):
        decode_queues(pb.Sampled(queue_bytes=[1.0]), 2, "odd")
    with pytest.raises(ProtocolError, match=r"odd sent columns of rates that differ in length: \[1, 2, "):
        decode_rates(pb.Sampled(job=[0], src=[1, 2]), "odd")
