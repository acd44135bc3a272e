"""Scenarios over two networks: settings, mistakes, idle settings, and a simulator elsewhere that dies."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError, NetworkError, ScenarioError, TopologyError
from cosim.experiment import resume
from cosim.experiment.build import build
from cosim.experiment.scenario import Scenario, loads
from cosim.experiment.serve import serve_network
from cosim.experiment.simulate import Run, simulate
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.hybrid import HybridNetwork
from cosim.network.hybrid_spec import Hybrid
from cosim.network.simulator import Advance
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.remote import Remote
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig

HOSTS = """
topology:
  kind: leaf_spine
  leaves: 2
  spines: 1
  endpoints_per_leaf: 4
  latency: 500ns
  hosts: {gpus: 4, nvlink_rate: 100GB/s, nics: 4, nic_rate: 100Gbps}
network: NETWORK
jobs:
  - workload: {kind: collective, collective: all_reduce, size: 1MB, ranks: 8}
    iterations: 3
"""
SERVED = [sys.executable, "-c", "from cosim.cli import main; main()", "serve", "--network", "fair_share"]


def hybrid(network: str = "{model: hybrid, scale_out: fair_share}", **changes: Any) -> Scenario:
    return loads(HOSTS.replace("NETWORK", network), changes)


def elsewhere() -> Scenario:
    return hybrid("hybrid", **{"network.scale_out": {"command": SERVED}})


def scale_out(scenario: Scenario) -> Remote:
    assert isinstance(scenario.network, Hybrid)
    assert isinstance(scenario.network.scale_out, Remote)
    return scenario.network.scale_out


def test_each_network_is_named_and_set_as_any_other() -> None:
    remote = scale_out(hybrid("hybrid"))
    assert (remote.simulator, remote.mltcp) == ("ns3", False)
    text = HOSTS.replace("NETWORK", "{model: hybrid, scale_up: congestion_aware, scale_out: ns3}")
    for start in (text, HOSTS.replace("NETWORK", "hybrid")):
        remote = scale_out(loads(start, ["network.scale_out.transport=dctcp"]))
        assert (remote.simulator, remote.transport) == ("ns3", "dctcp")


@pytest.mark.parametrize(
    ("network", "says"),
    [
        ("{model: hybrid, scale_out: fair_shar}", "did you mean 'fair_share'"),
        ("{model: hybrid, scale_up: hybrid}", "a hybrid's networks are single ones"),
        ("{model: hybrid, scaleout: ns3}", "did you mean 'scale_out'"),
        ("{model: hybrid, scale_out: {transprt: dctcp}}", "did you mean 'transport'"),
    ],
)
def test_mistakes_say_what_would_be_right(network: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        hybrid(network)


def test_what_cannot_work_is_refused_before_anything_starts() -> None:
    with pytest.raises(TopologyError, match=r"network: .*no scale-up links(.|\n)*nvlink_rate"):
        build(hybrid(topology={"kind": "switch", "endpoints": 8, "rate": "1Gbps", "latency": "1us"}))
    two = f"{{model: hybrid, scale_up: {{command: {SERVED}}}, scale_out: {{command: {SERVED}}}}}"
    with pytest.raises(InputError, match="may be a simulator elsewhere, not both"):
        build(hybrid(two))
    with pytest.raises(InputError, match="hybrid can't be served"):
        serve_network("hybrid", "127.0.0.1:0")


def test_a_network_that_no_job_sends_through_draws_a_warning() -> None:
    def warnings(ranks: int, placement: Any) -> list[str]:
        changes = {"jobs[0].workload.ranks": ranks, "jobs[0].placement": placement}
        return [text for text in build(hybrid(**changes)).warnings if "network" in text]

    assert warnings(8, "packed") == []
    [out] = warnings(4, "packed")
    assert "scale_out: has no effect: every job sits within one scale-up domain" in out
    [up] = warnings(2, {"kind": "explicit", "endpoints": [0, 4]})
    assert "network" in up
    assert "no job has two ranks in one scale-up domain" in up


def test_a_hybrid_keeps_its_settings_when_asked_beside_others() -> None:
    asked = cosim.study({"kind": "networks", "networks": "hybrid,fair_share"}, hybrid())
    one, two = (asked.times(name) for name in ("hybrid", "fair_share"))
    assert one == two


class Hooked(ForwardingNetwork):
    """Does something before an advance."""

    def __init__(self, inner: RemoteNetwork, number: int, what: Callable[[], None]) -> None:
        super().__init__(inner)
        self._number, self._what = number, what

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        self._number -= 1
        if self._number == 0:
            self._what()
        return self.inner.advance(flows, horizon_ps)


class ClientEndedError(NetworkError):
    """The client's end, as far as the server can tell."""


def over(
    scenario: Scenario, number: int, what: Callable[[RemoteNetwork], None], log: Path | None = None
) -> Run:
    built = build(scenario)
    assert isinstance(built.network, HybridNetwork)
    if log is not None:
        resume.keep_log(built.network, scenario, log)
    up, remote = built.network.networks
    assert isinstance(remote, RemoteNetwork)
    network = HybridNetwork(up, Hooked(remote, number, lambda: what(remote)))
    return simulate(scenario, dataclasses.replace(built, network=network))


@pytest.mark.slow
def test_a_server_within_a_hybrid_that_is_killed_is_brought_back(tmp_path: Path) -> None:
    """And a client that ends is gone on with from the log of that server."""
    whole = simulate(hybrid(), build(hybrid())).digest
    deaths = []

    def kill(remote: RemoteNetwork) -> None:
        process = remote.session.process
        assert process is not None
        process.kill()
        deaths.append(remote)

    assert over(elsewhere(), 5, kill).digest == whole
    assert [remote.session.deaths for remote in deaths] == [1]

    def leave(remote: RemoteNetwork) -> None:
        raise ClientEndedError

    with pytest.raises(ClientEndedError):
        over(elsewhere(), 12, leave, tmp_path)
    again = resume.load_unfinished(tmp_path)
    built = build(again)
    resume.go_on(built.network, tmp_path)
    assert simulate(again, built).digest == whole


def test_networks_and_loops_are_compared_over_a_simulator_elsewhere(tmp_path: Path) -> None:
    with Server(ServerConfig(FairShareNetwork), f"unix:{tmp_path / 's'}") as server:
        there = {"address": server.address}
        scenario = hybrid("hybrid", **{"network.scale_out": there})
        asked = cosim.study({"kind": "networks", "networks": ["hybrid", there, "fair_share"]}, scenario)
        assert asked.times("hybrid") == asked.times("fair_share")
        [job] = cosim.study({"kind": "open_loop", "changes": ["topology.latency=500ns"]}, scenario).jobs
        assert job.open_ps == job.closed_ps
        one, two = tmp_path / "hybrid.yaml", tmp_path / "out"
        one.write_text(HOSTS.replace("NETWORK", f"{{model: hybrid, scale_out: {there}}}"))
        arguments = ["run", str(one), "--open-loop", "topology.latency=500ns", "--out", str(two)]
        printed = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert printed.exit_code == 0
        assert "closed loop against open loop" in printed.stdout
        assert not (two / resume.LOG_FILE).exists()
        refused = CliRunner().invoke(app, ["run", str(one), "--network", "hybrid", "--resume", str(two)])
        assert isinstance(refused.exception, InputError)
