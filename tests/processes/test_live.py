"""Links, routes, paths and controls that processes change: served, in hybrids, and by closed forms."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

import cosim
from cosim.network.fair_share import FairShareNetwork
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig
from cosim.testing.conformance.faulty_network import StillNetwork
from tests.inputs import ROOT

Proc = Generator[simpy.Event, Any, Any]
US = 1_000_000
TWO_WAYS = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "endpoints_per_leaf": 2, "latency": "0ns"}
"""Two spines: 10 bytes/ns each way, and as much from each endpoint."""
FAST = {**TWO_WAYS, "rate": "80Gbps"}
RING = {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "0ns"}
"""10 bytes/ns."""
DCTCP = {"model": "congestion", "control": "dctcp"}
SERVES_DCTCP = [
    str(Path(sys.executable).parent / "cosim"),
    "serve",
    "--network",
    "{model: congestion, control: dctcp}",
]


def world(network: object = "fair_share", **more: object) -> dict[str, Any]:
    return {"topology": FAST, "network": network, **more}


def way_of(sim: Any, src: str, dst: str) -> str:
    """The spine that a message from one to the other goes over, looked at by what links have sent."""
    before = {spine: sim.link(f"leaf0 -> {spine}").sent_bytes for spine in ("spine0", "spine1")}
    sim.run(until=sim.transfer(src, dst, 1000))
    after = {spine: sim.link(f"leaf0 -> {spine}").sent_bytes for spine in before}
    (over,) = [spine for spine in before if after[spine] > before[spine]]
    return over


@pytest.mark.parametrize("is_served", [False, True])
def test_routes_avoid_a_link_at_once_and_come_back(is_served: bool, tmp_path: Path) -> None:
    with Server(ServerConfig(FairShareNetwork), f"unix:{tmp_path / 's'}") as server:
        network = {"address": server.address} if is_served else "fair_share"
        with cosim.open(world(network, detection="1s"), changes_links=True) as sim:
            own = way_of(sim, "gpu0", "gpu2")
            other = {"spine0": "spine1", "spine1": "spine0"}[own]
            sim.change(f"leaf0 -> {own}", avoid=True)
            assert way_of(sim, "gpu0", "gpu2") == other
            sim.change(f"leaf0 -> {own}", avoid=False)
            assert way_of(sim, "gpu0", "gpu2") == own


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_bytes_of_a_link_never_fall_where_a_message_goes_another_way(engine: str) -> None:
    """1 MB at 10 bytes/ns: 200 kB went by the one spine until 20 us, 800 kB go by the other."""
    with cosim.open(world(detection="1s"), changes_links=True, engine=engine) as sim:
        own = way_of(sim, "gpu0", "gpu2")
        ways = [f"leaf0 -> {spine}" for spine in (own, {"spine0": "spine1", "spine1": "spine0"}[own])]
        began, before = sim.now, [sim.link(way).sent_bytes for way in ways]
        sim.transfer("gpu0", "gpu2", "1MB")
        sim.run(until=began + 20 * US)
        sim.change(ways[0], avoid=True)
        seen = []
        for after in (21, 60, 200):
            sim.run(until=began + after * US)
            seen.append([sim.link(way).sent_bytes - sent for way, sent in zip(ways, before, strict=True)])
    assert seen == [[200_000, 0], [200_000, 0], [200_000, 800_000]]


def test_what_is_avoided_stays_so_when_routing_hears_of_a_failure() -> None:
    """A failure that is heard of 40 us later does not bring back a link that is avoided meanwhile."""
    with cosim.open(world(detection="40us"), changes_links=True) as sim:
        own = way_of(sim, "gpu0", "gpu2")
        other = {"spine0": "spine1", "spine1": "spine0"}[own]
        sim.change("leaf1 -> gpu3", up=False)
        sim.run(until=sim.timeout("10us"))
        sim.change(f"leaf0 -> {own}", avoid=True)
        sim.run(until=sim.timeout("50us"))
        assert way_of(sim, "gpu0", "gpu2") == other


@pytest.mark.parametrize("is_served", [False, True])
def test_a_job_whose_messages_take_another_path(is_served: bool, tmp_path: Path) -> None:
    work = {"kind": "periodic", "compute": "1us", "size": "100kB", "ranks": 2}
    job = {
        "name": "one",
        "workload": work,
        "iterations": 6,
        "placement": {"kind": "explicit", "endpoints": [0, 2]},
    }
    with Server(ServerConfig(FairShareNetwork), f"unix:{tmp_path / 's'}") as server:
        network = {"address": server.address} if is_served else "fair_share"
        with cosim.open(world(network, jobs=[job]), changes_links=True) as sim:
            own = way_of(sim, "gpu0", "gpu2")
            other = {"spine0": "spine1", "spine1": "spine0"}[own]
            one = sim.jobs["one"]
            sim.run(until=one.iteration(1))
            sent = sim.link(f"leaf0 -> {other}").sent_bytes
            one.change(paths={("gpu0", "gpu2"): ["leaf0", other, "leaf1"]})
            sim.run()
            assert sim.link(f"leaf0 -> {other}").sent_bytes > sent
            with pytest.raises(cosim.TopologyError, match="has no link 'leaf0 -> leaf1'"):
                one.change(paths={("gpu0", "gpu2"): ["leaf0", "leaf1"]})
            with pytest.raises(cosim.WorkloadError, match="has no endpoint 'gpu9'"):
                one.change(paths={("gpu9", "gpu2"): ["leaf0"]})


def test_a_network_that_finds_paths_itself_says_so() -> None:
    job = {"name": "one", "workload": {"kind": "periodic", "compute": "1us", "size": "1kB", "ranks": 2}}
    network = {"model": "fair_share", "balancer": "spray"}
    with (
        cosim.open(world(network, jobs=[job]), changes_links=True) as sim,
        pytest.raises(cosim.NetworkError, match="finds paths itself"),
    ):
        sim.jobs["one"].change(paths={("gpu0", "gpu1"): ["leaf0"]})


# -- controls ----------------------------------------------------------------------------------------------


def test_a_window_that_is_set_while_a_message_is_under_way() -> None:
    """A window of a quarter of the path's product sends at a quarter of the rate, then at half of it."""
    network = {"model": "congestion", "control": {"kind": "fixed", "bdp": 0.25}}
    topology = {**RING, "latency": "10us"}

    def sends(change: bool) -> int:
        with cosim.open({"topology": topology, "network": network}, changes_links=True) as sim:
            done = sim.transfer(0, 1, "1MB")
            if change:
                sim.run(until="200us")
                sim.change_control(bdp=0.5)
            sim.run(until=done)
            return int(sim.now)

    alone, changed = sends(change=False), sends(change=True)
    # Sent at half the pace for 200 us, then twice as fast: about 200 + (alone - 200) / 2.
    assert changed == pytest.approx(200 * US + (alone - 200 * US) / 2, rel=0.05)


@pytest.mark.parametrize("rest", [True, False])
def test_a_control_that_rests_hears_of_it(rest: bool) -> None:
    network = {"model": "congestion", "control": "dctcp", "rest": rest}

    def digest(**values: float) -> str:
        with cosim.open({"topology": RING, "network": network}, changes_links=True) as sim:
            for src in (0, 1, 3):
                sim.transfer(src, 2, "5MB")
            sim.run(until="300us")
            sim.change_control(**values)
            run: cosim.Run = sim.run()
            return run.digest

    assert digest(g=0.0625) != digest(g=0.9)
    digests = set()
    for each in (True, False):
        network["rest"] = each
        digests.add(digest(g=0.9))
    assert len(digests) == 1


def test_a_control_changes_beside_a_link_as_it_does_alone() -> None:
    """Both are made in one instant, in either order: the link is slow from then on."""

    def ends(*calls: str) -> tuple[int, str]:
        with cosim.open({"topology": RING, "network": DCTCP}, changes_links=True) as sim:
            sim.transfer(0, 1, "1MB")
            sim.run(until="20us")
            for call in calls:
                if call == "link":
                    sim.change("npu0 -> npu1", rate="8Gbps")
                else:
                    sim.change_control(g=0.5)
            run: cosim.Run = sim.run()
            return run.records.end_ps, run.digest

    assert ends("control", "link") == ends("link", "control")
    assert ends("link", "control")[0] > 7 * ends("control")[0]


@pytest.mark.parametrize(
    ("network", "values", "says"),
    [
        ("fair_share", {"g": 0.5}, "has no control"),
        ({"model": "congestion", "control": "dctcp"}, {"gg": 0.5}, "Dctcp has no parameter 'gg'.*it has g, "),
        ({"model": "congestion", "control": "dctcp"}, {"g": 5}, "Dctcp: g: "),
        ({"model": "congestion", "control": "dctcp"}, {"threshold": 5}, "threshold: ports are set by it"),
    ],
)
def test_controls_that_can_not_change(network: object, values: dict[str, Any], says: str) -> None:
    with cosim.open(world(network), changes_links=True) as sim:
        sim.run(until="1ns")
        with pytest.raises(cosim.NetworkError, match=says):
            sim.change_control(**values)
    with cosim.open(world(network)) as sim, pytest.raises(cosim.NetworkError, match="without changes_links"):
        sim.change_control(**values)


def tuned(network: object, *, dies: bool = False) -> tuple[str, int]:
    """Three senders to one, whose control changes twice, beside a link; the server is killed in between."""

    def controller(sim: Any) -> Proc:
        yield sim.timeout("20us")
        sim.change_control(g=np.float64(0.5))
        sim.change("npu1 -> npu2", rate="8Gbps")
        yield sim.timeout("33us")
        if dies:
            (served,) = sim._replay.network.parts()
            served.session.process.kill()
        sim.change_control(g=0.9)

    with cosim.open({"topology": RING, "network": network}, changes_links=True) as sim:
        for src in (0, 1, 3):
            sim.transfer(src, 2, "1MB")
        sim.process(controller(sim))
        run: cosim.Run = sim.run()
        return run.digest, run.records.end_ps


@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_control_changes_behind_grpc_as_here(dies: bool) -> None:
    assert tuned({"command": SERVES_DCTCP}, dies=dies) == tuned(DCTCP)


def test_a_value_that_a_server_refuses_is_an_error_where_it_is_asked_for() -> None:
    def controller(sim: Any) -> Proc:
        yield sim.timeout("20us")
        with pytest.raises(cosim.NetworkError, match="can't be sent to a server"):
            sim.change_control(g=object())
        sim.change_control(g=5)

    with cosim.open({"topology": RING, "network": {"command": SERVES_DCTCP}}, changes_links=True) as sim:
        sim.transfer(0, 1, "1MB")
        sim.process(controller(sim))
        says = r"test_live.py:\d+: controller: congestion: Dctcp: g: Input should be less than or equal to 1"
        with pytest.raises(cosim.NetworkError, match=says):
            sim.run()


def test_a_server_without_a_control_says_so_at_once(tmp_path: Path) -> None:
    with Server(ServerConfig(FairShareNetwork), f"unix:{tmp_path / 's'}") as server:
        sim = cosim.open(world({"address": server.address}), changes_links=True)
        with sim, pytest.raises(cosim.NetworkError, match="has no control whose parameters change"):
            sim.change_control(g=0.5)


# -- elsewhere ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [StillNetwork])
def test_a_server_that_can_not_change_says_so_when_it_is_opened(
    make: type[NetworkSimulator], tmp_path: Path
) -> None:
    with (
        Server(ServerConfig(make), f"unix:{tmp_path / 's'}") as server,
        pytest.raises(cosim.InputError, match="no links that change while it runs; what it is told of"),
    ):
        cosim.open(world({"address": server.address}), changes_links=True)


@pytest.mark.parametrize(
    ("name", "network"), [("congestion_unaware", CongestionUnawareNetwork), ("fair_share", FairShareNetwork)]
)
def test_hybrids_change_as_one_network_does(
    name: str, network: type[NetworkSimulator], tmp_path: Path
) -> None:
    """Two parts, in this process and served, against one network of the whole."""
    hosts = {"gpus": 2, "nvlink_rate": "400Gbps", "nvlink_latency": "300ns", "nics": 2, "nic_rate": "80Gbps"}
    topology = {**TWO_WAYS, "endpoints_per_leaf": 4, "hosts": hosts}

    def controller(sim: Any, links: list[str]) -> Proc:
        for link in links:
            yield sim.timeout("7us")
            sim.change(link, rate="10Gbps")
            yield sim.timeout("5us")
            sim.change(link, up=False)
            yield sim.timeout("31us")
            sim.change(link, up=True)

    def digest(chosen: object) -> str:
        scenario = {"topology": topology, "network": chosen, "detection": "1s"}
        with cosim.open(scenario, changes_links=True) as sim:
            whole: Any = sim
            made = whole._topology
            links = [made.link_name(link) for link in range(0, made.num_links, 3)]
            for _ in range(3):
                sim.all_reduce(range(8), "1MB")
                sim.transfer(0, 1, "300kB")
            sim.process(controller(sim, links))
            run: cosim.Run = sim.run()
            return run.digest

    one = digest(name)
    assert digest({"model": "hybrid", "scale_up": name, "scale_out": name}) == one
    with Server(ServerConfig(network), f"unix:{tmp_path / 's'}") as server:
        assert digest({"model": "hybrid", "scale_up": name, "scale_out": {"address": server.address}}) == one


def test_a_hybrid_with_a_part_that_can_not_change_names_it(tmp_path: Path) -> None:
    hosts = {"gpus": 2, "nvlink_rate": "400Gbps", "nvlink_latency": "300ns", "nics": 2, "nic_rate": "80Gbps"}
    topology = {**TWO_WAYS, "endpoints_per_leaf": 4, "hosts": hosts}
    with Server(ServerConfig(StillNetwork), f"unix:{tmp_path / 's'}") as server:
        network = {"model": "hybrid", "scale_up": "fair_share", "scale_out": {"address": server.address}}
        with pytest.raises(cosim.InputError, match="no links that change while it runs"):
            cosim.open({"topology": topology, "network": network}, changes_links=True)


def test_a_scenario_with_a_controller_is_the_same_behind_grpc(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "cosim"), "serve", "--network", "fair_share"]
    circuit = ROOT / "scenarios" / "circuit.yaml"
    elsewhere = cosim.load(circuit, {"network": {"command": command}})
    right, done = cosim.run(circuit), cosim.run(elsewhere, out=tmp_path / "run")
    assert done.digest == right.digest
