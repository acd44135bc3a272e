"""Changes of links that nobody knew of when a session opened: exact, replayed, resumed, and refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim.errors import NetworkError, RemoteError
from cosim.fabric.changes import LinkChange, LinkChanges, RouteChange
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.network.flows import FlowBatch
from cosim.network.simulator import NetworkSimulator
from cosim.network.unaware import CongestionUnawareNetwork
from cosim.protocol.client import RemoteNetwork, connect
from cosim.protocol.live_changes import decode_changes, encode_changes
from cosim.protocol.refusal import Refusal
from cosim.protocol.server import Server
from cosim.protocol.settings import Target
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.faulty_network import StillNetwork
from cosim.units import NEVER, PS_PER_MS
from tests.network.test_fair_share import GB_PER_S, Message, groups_of
from tests.network.test_link_changes import MB, changing, two_ways
from tests.network.worlds import batch

Serve = Callable[..., Server]
EXACT = (FairShareNetwork, CongestionAwareNetwork, CongestionUnawareNetwork)
STEPS: dict[int, list[LinkChange | RouteChange]] = {
    3: [LinkChange(3 * PS_PER_MS, 1, 0.0), RouteChange(4 * PS_PER_MS, (1,))],
    5: [LinkChange(5 * PS_PER_MS, 0, GB_PER_S / 2)],
    10: [LinkChange(10 * PS_PER_MS, 1, GB_PER_S), RouteChange(11 * PS_PER_MS, ())],
    12: [LinkChange(12 * PS_PER_MS, 0, GB_PER_S), LinkChange(12 * PS_PER_MS, 0, GB_PER_S)],
}
"""A detour, on a link that slows down, and the own way again."""


def run(
    network: NetworkSimulator, *, upto: int = 99, on_step: Callable[[int], None] = lambda _: None
) -> tuple[list[int], list[list[int]]]:
    """When 10 MB from 0 to 1 arrive, and what links had sent when each change was made."""
    network.open(changing(two_ways(), [], detection_ps=PS_PER_MS))
    flows = batch(groups_of([Message(10 * MB)]), [(0, 0, 0, 0)])
    done: list[int] = []
    seen: list[list[int]] = []
    for at, changes in STEPS.items():
        if at > upto:
            network.close()
            return done, seen
        done += network.advance(flows, at * PS_PER_MS).completions.time_ps.tolist()
        flows = FlowBatch()
        seen.append(network.statistics().link_bytes.tolist())
        on_step(at)
        network.change(changes)
    for _ in range(3):
        done += network.advance(flows, NEVER).completions.time_ps.tolist()
    network.close()
    return done, seen


@pytest.mark.parametrize("make", EXACT)
def test_changes_are_those_of_a_network_in_this_process(serve: Serve, make: type[NetworkSimulator]) -> None:
    server = serve(make)
    right = run(make())
    assert len(right[0]) == 1
    assert run(connect(server.address)) == right


def test_told_ahead_or_as_it_happens_the_time_is_one() -> None:
    ahead = FairShareNetwork()
    links = [one for changes in STEPS.values() for one in changes if isinstance(one, LinkChange)]
    ahead.open(changing(two_ways(), [(t // PS_PER_MS, link, rate) for t, link, rate in links], PS_PER_MS))
    flows = batch(groups_of([Message(10 * MB)]), [(0, 0, 0, 0)])
    assert ahead.advance(flows, NEVER).completions.time_ps.tolist() == run(FairShareNetwork())[0]


@pytest.mark.parametrize(
    "dies", [{5, 10}, *[pytest.param(each, marks=pytest.mark.slow) for each in ({3}, {12}, {3, 5, 10, 12})]]
)
def test_a_server_that_dies_is_brought_back_with_its_changes(dies: set[int]) -> None:
    command = (str(Path(sys.executable).parent / "cosim"), "serve", "--network", "fair_share")
    network = RemoteNetwork(Target(command=command))

    def kill(at: int) -> None:
        process = network.session.process
        if at in dies and process is not None:
            process.kill()

    assert run(network, on_step=kill) == run(FairShareNetwork())
    assert network.session.deaths == len(dies)


@pytest.mark.parametrize("broken_off", [3, 5, 10])
@pytest.mark.parametrize("make", EXACT)
def test_a_run_that_broke_off_looks_and_changes_as_it_did(
    serve: Serve, tmp_path: Path, make: type[NetworkSimulator], broken_off: int
) -> None:
    address, log = serve(make).address, tmp_path / "injections.log"
    for upto, resume in ((broken_off, False), (99, True)):
        network = connect(address)
        network.log_to(log, resume=resume)
        found = run(network, upto=upto)
    assert found == run(make())


def test_a_server_without_the_feature_is_asked_for_nothing(serve: Serve) -> None:
    network = connect(serve(StillNetwork).address)
    network.open(two_ways())
    with pytest.raises(NetworkError, match="has no links that change while it runs"):
        network.change([LinkChange(0, 0, 0.0)])
    network.close()


def test_what_a_client_sends_all_the_same_is_refused(serve: Serve) -> None:
    network = connect(serve(FairShareNetwork).address)
    network.open(two_ways())  # links don't change, it said
    sends: Any = network
    sends._changes = pb.Changes(time_ps=[0], link=[0], rate_bps=[0.0])
    with pytest.raises(RemoteError, match="no links here that change"):
        network.advance(FlowBatch(), 5)
    network.close()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"time_ps": [9], "link": [0]}, "don't fit each other"),
        ({"route_ps": [9], "dead_end": [2], "dead": [0]}, "don't fit each other"),
        ({"time_ps": [9], "link": [2], "rate_bps": [1.0]}, "a change of link 2 of 2"),
        ({"route_ps": [9], "dead_end": [1], "dead": [7]}, "a change of link 7 of 2"),
        ({"time_ps": [9], "link": [0], "rate_bps": [11.0]}, "from 0 to its own"),
        ({"time_ps": [9], "link": [0], "rate_bps": [-1.0]}, "from 0 to its own"),
        ({"time_ps": [4], "link": [0], "rate_bps": [1.0]}, "given for 4 ps, but 5 ps had been granted"),
        ({"route_ps": [4], "dead_end": [0]}, "given for 4 ps, but 5 ps had been granted"),
        ({"route_ps": [9], "dead_end": [2], "dead": [1, 0]}, "a set of dead links ascends"),
    ],
)
def test_changes_that_can_not_be(columns: dict[str, Any], says: str) -> None:
    with pytest.raises(Refusal, match=says):
        decode_changes(pb.Changes(**columns), np.array([10.0, 10.0]), 5)


def test_what_is_written_is_read() -> None:
    changes: list[LinkChange | RouteChange] = [
        LinkChange(5, 1, 3.0),
        LinkChange(7, 0, 0.0),
        RouteChange(6, (0, 1)),
        RouteChange(8, ()),
    ]
    message = pb.Changes()
    encode_changes(changes, message)
    assert decode_changes(message, np.array([10.0, 10.0]), 5) == changes
    assert LinkChanges(()).part(np.zeros(1, np.int32)) is not None
