"""ns-3 as a server: conformance, the same results however they are asked for, and errors that help."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from cosim.engine.records import Records
from cosim.engine.replay import replay
from cosim.errors import FeatureError, RefusedError
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.settings import Target
from cosim.testing import check_server
from tests.adapters.ns3_worlds import US, alone_text, graph, network, ns3, run_alone, send, star
from tests.cli.processes import PATIENCE_S
from tests.protocol.small_run import Hooked, Killer, moments, patient, recovered

Release = Literal["engine", "network"]

RING = """
topology: {kind: leaf_spine, endpoints_per_leaf: 4, leaves: 2, spines: 2, rate: 100Gbps, latency: 1us}
network: fair_share
jobs:
  - workload: {kind: collective, collective: all_reduce, size: 2MB, ranks: 8, repeat: 2}
collectives: {all_reduce: ring}
"""


def test_conformance() -> None:
    report = check_server([ns3()], deadline_s=PATIENCE_S)
    assert report.passed, str(report)


def test_dependent_flows_released_by_ns3_or_by_the_engine_end_alike() -> None:
    built = build(loads(RING))
    seen = set()
    for release in ("network", "engine"):
        remote = network(transport="dctcp")
        records = replay(built.topology, remote, built.jobs, built.planner, release=release)
        assert remote.last is not None
        seen.add((records.digest, remote.last.events))
    assert len(seen) == 1


def test_the_server_runs_what_ns3_alone_runs(tmp_path: Path) -> None:
    built = build(loads(RING))
    remote = network(transport="cubic", mtu_bytes=9000)
    remote.log_to(tmp_path / "log")
    replay(built.topology, remote, built.jobs, built.planner)
    last = remote.last
    assert last is not None
    alone = run_alone(alone_text(tmp_path / "log", {"transport": "cubic", "mtu_bytes": 9000}))
    assert alone["events"] == last.events
    assert alone["digest"] == f"{last.digest.a:016x}{last.digest.b:016x}"


@pytest.mark.parametrize(
    ("release", "size", "repeat", "kills"),
    [
        ("network", "20kB", 40, 3),
        pytest.param("network", "20kB", 40, 10, marks=pytest.mark.slow),
        pytest.param("engine", "2MB", 2, 10, marks=pytest.mark.slow),
    ],
)
def test_a_server_killed_at_random_moments_is_brought_back(
    release: Release, size: str, repeat: int, kills: int, record_property: Callable[[str, object], None]
) -> None:
    built = build(loads(RING.replace("size: 2MB", f"size: {size}").replace("repeat: 2", f"repeat: {repeat}")))

    def ran(remote: RemoteNetwork, before: Callable[[int], None]) -> Records:
        return replay(built.topology, Hooked(remote, before), built.jobs, built.planner, release=release)

    expected = ran(network(), lambda _: None)
    remote = RemoteNetwork(Target(command=(ns3(),)), policy=patient(most_deaths=kills))
    killer = Killer(remote, moments(11, expected.info["advances"], kills))
    assert ran(remote, killer).digest == expected.digest
    session = remote.session
    record_property(
        "fault", (f"kill -9 of ns-3, released by the {release}", recovered(session.deaths, session.replays))
    )
    assert session.deaths == len(killer.killed) == kills
    # A collective that begins in a later round of an instant, behind flows that the server has started there,
    # is given where it was given: of those that the network releases two in three do.
    calls = 2 if release == "engine" else 2 * expected.info["advances"]
    assert session.replays <= calls * session.deaths


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"transport": "dctcp", "queue_discipline": "drop_tail"}, "dctcp needs marks"),
        ({"queue_discipline": "drop_tail", "mark_min_bytes": 1000}, "marks nothing"),
        ({"mtu_bytes": 100}, "an MTU is"),
        ({"options": {"min_rto": "5"}}, "no option min_rto"),
        ({"options": {"initial_window": "many"}}, "takes a number"),
    ],
)
def test_settings_that_cannot_be_are_refused(wanted: dict[str, object], text: str) -> None:
    remote = network(**wanted)
    with pytest.raises(RefusedError, match=text):
        remote.open(star(2))
    remote.close()


def test_what_is_not_claimed_is_refused() -> None:
    remote = network(transport="bbr")
    with pytest.raises(FeatureError, match="it has cubic, newreno, dctcp"):
        remote.open(star(2))
    remote.close()


def test_no_way_is_said_so() -> None:
    apart = graph(2, [(0, 2, 100.0, US), (2, 0, 100.0, US), (1, 3, 100.0, US), (3, 1, 100.0, US)])
    with pytest.raises(RefusedError, match="no path from node 0 to node 1"):
        send(apart, [(0, 1, 1000)], routing="ecmp")


def test_it_serves_this_machine_only() -> None:
    done = subprocess.run(
        [ns3(), "--address", "0.0.0.0:0"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode != 0
    assert "no TLS" in done.stderr
