"""Links that processes look at and change."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import simpy

import cosim

Proc = Generator[simpy.Event, Any, Any]
CONGESTION = {"model": "congestion", "control": "dctcp", "headers": False}
NETWORKS: list[Any] = ["congestion_unaware", "congestion_aware", "fair_share", CONGESTION]


def world(network: object, **more: object) -> dict[str, Any]:
    topology = {"kind": "ring", "endpoints": 8, "rate": "80Gbps", "latency": "1us"}
    return {"topology": topology, "network": network, **more}


def test_a_link_that_a_process_slows_down_and_mends() -> None:
    """1 MB at 10 bytes/ns: half of it in 50 us, a quarter in 50 us at half the rate, the rest in 25 us."""

    def process(sim: Any) -> Proc:
        sent = sim.transfer(0, 1, "1MB")
        yield sim.timeout("50us")
        sim.change("npu0 -> npu1", rate="40Gbps")
        yield sim.timeout("50us")
        assert sim.link("npu0 -> npu1").rate_bps == 40e9
        sim.change("npu0 -> npu1", up=True)
        done = yield sent
        assert done.ended_ps == 126_000_000  # and 1 us of latency

    with cosim.open(world("fair_share"), changes_links=True) as sim:
        process_of_it = sim.process(process(sim))
        sim.run()
        assert not process_of_it.is_alive


def test_a_controller_that_moves_a_circuit_after_each_phase() -> None:
    """Two links of which one is up: what is sent over the other waits until the circuit is there."""
    times = []

    def sender(sim: Any, dst: int) -> Proc:
        for _ in range(3):
            done = yield sim.transfer(0, dst, "100kB")  # 10 us, and 1 us of latency
            times.append((dst, done.ended_ps))
            yield sim.timeout("39us")

    def circuit(sim: Any) -> Proc:
        while True:
            sim.change("npu0 -> npu7", up=False)
            yield sim.timeout("25us")
            sim.change("npu0 -> npu7", up=True)
            sim.change("npu0 -> npu1", up=False)
            yield sim.timeout("25us")
            sim.change("npu0 -> npu1", up=True)

    with cosim.open(world("fair_share", detection="1s"), changes_links=True) as sim:
        one, other = sim.process(sender(sim, 1)), sim.process(sender(sim, 7))
        sim.process(circuit(sim))
        sim.run(until=one & other)
    us = 1_000_000
    assert sorted(times) == [
        (1, 11 * us),
        (1, 61 * us),
        (1, 111 * us),
        (7, 36 * us),
        (7, 86 * us),
        (7, 136 * us),
    ]


def traffic(sim: Any) -> Proc:
    for size in (300_000, 10_000, 200_000, 5, 700_000):
        yield sim.transfer(0, 2, size) & sim.transfer(1, 2, size) & sim.all_reduce(range(8), size)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("what", [{"down": True}, {"rate": "10Gbps"}])
def test_what_a_process_changes_is_what_an_event_changes(network: Any, what: dict[str, Any]) -> None:
    event = {"link": "npu1 -> npu2", "at": "20us", "until": "130us", **what}

    def controller(sim: Any) -> Proc:
        yield sim.timeout("20us")
        sim.change("npu1 -> npu2", **({"up": False} if "down" in what else {"rate": "10Gbps"}))
        yield sim.timeout("110us")
        sim.change("npu1 -> npu2", up=True)

    with cosim.open(world(network, events=[event])) as sim:
        sim.process(traffic(sim))
        by_event = sim.run()
    with cosim.open(world(network), changes_links=True) as sim:
        sim.process(traffic(sim))
        sim.process(controller(sim))
        by_process = sim.run()
    with cosim.open(world(network)) as sim:
        sim.process(traffic(sim))
        without = sim.run()
    assert by_process.digest == by_event.digest != without.digest


@pytest.mark.parametrize("name", ["npu1 -> npu*", "npu2 <-> npu1"])
def test_a_process_names_links_as_an_event_does(name: str) -> None:
    def controller(sim: Any) -> Proc:
        yield sim.timeout("20us")
        sim.change(name, rate="10Gbps")

    with cosim.open(world("fair_share", events=[{"link": name, "at": "20us", "rate": "10Gbps"}])) as sim:
        sim.process(traffic(sim))
        by_event = sim.run()
    digests = set()
    for one in (controller, None):
        with cosim.open(world("fair_share"), changes_links=True) as sim:
            sim.process(traffic(sim))
            if one is not None:
                sim.process(one(sim))
            digests.add(sim.run().digest)
    assert len(digests) == 2
    assert by_event.digest in digests


@pytest.mark.parametrize("network", NETWORKS)
def test_links_that_may_change_and_do_not_are_as_others(network: Any) -> None:
    digests = set()
    for changes in (False, True):
        with cosim.open(world(network), changes_links=changes) as sim:
            sim.process(traffic(sim))
            digests.add(sim.run().digest)
    assert len(digests) == 1


@pytest.mark.parametrize("network", NETWORKS)
def test_the_use_of_a_link(network: Any) -> None:
    seen = []

    def look(sim: Any) -> Proc:
        link = sim.link("npu0 -> npu1")
        for _ in range(3):
            yield sim.timeout("100us")
            seen.append(link.use)
        assert link.sent_bytes == 1_000_000

    with cosim.open(world(network)) as sim:
        sim.transfer(0, 1, "1MB")  # 100 us
        sim.process(look(sim))
        sim.run()
    assert seen[2] == 0
    assert sum(seen) == pytest.approx(1, abs=0.03)


def test_the_queue_of_a_link() -> None:
    def look(sim: Any) -> Proc:
        yield sim.timeout("10us")
        assert sim.link("npu1 -> npu2").queue_bytes > 0

    with cosim.open(world(CONGESTION)) as sim:
        for src in (0, 1):
            sim.transfer(src, 2, "1MB")
        sim.process(look(sim))
        sim.run()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"name": "npu0 -> npu9", "up": False}, "has no node 'npu9'"),
        ({"name": "npu0 -> npu1"}, "a link changes its rate"),
        ({"name": "npu0 -> npu1", "rate": "10"}, "needs a rate unit"),
        ({"name": "npu0 -> npu1", "rate": "90Gbps"}, "more than its own 80 Gbps"),
    ],
)
def test_changes_that_can_not_be(how: dict[str, Any], says: str) -> None:
    with (
        cosim.open(world("fair_share"), changes_links=True) as sim,
        pytest.raises(cosim.CosimError, match=says),
    ):
        sim.change(**how)


def test_a_run_whose_links_do_not_change_says_so() -> None:
    with (
        cosim.open(world("fair_share")) as sim,
        pytest.raises(cosim.NetworkError, match="opened without changes_links"),
    ):
        sim.change("npu0 -> npu1", up=False)
