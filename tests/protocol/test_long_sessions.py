"""Memory follows what is in flight: a long session, a small credit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cosim.errors import RefusedError
from cosim.network.flows import ON_START, FlowBatch, FlowGroup, flat_table
from cosim.protocol.advance_parts import advance_parts, numbered
from cosim.protocol.client import connect
from cosim.protocol.connection import Connection
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig, Session
from cosim.testing.conformance.cases import flows, star
from cosim.testing.conformance.server import ServerProbe
from tests.protocol.small_run import run
from tests.protocol.test_remote_network import random_table

Serve = Callable[..., Server]
SESSIONS: list[Session] = []


class Seen(Session):
    """A session that can be looked into."""

    def __init__(self, served: ServerConfig) -> None:
        super().__init__(served)
        SESSIONS.append(self)


def test_books_of_both_sides_hold_what_is_in_flight(serve: Serve) -> None:
    """Turns of 492 flows, while one flow is there all the time."""
    network = connect(serve(make_session=Seen).address)
    network.open(star(6))
    session = SESSIONS[-1]
    table = random_table(1, 12, 40)
    ends = np.arange(4, dtype=np.int32)[[0, 1, 2, 3, 0, 1]]
    slow = FlowGroup(0, flat_table([0], [1], [10**12]), np.array([4, 5], np.int32), (1, 0))
    zero = np.zeros(1, np.int64)
    granted, done = network.advance(FlowBatch([slow], np.zeros(1, np.int32), zero, zero, zero), 1000)
    turns, held = 30, []
    for turn in range(turns):
        group = FlowGroup(1, table, ends, (0, turn << 32), channel=turn % 3, job=1)
        given = int(table.block_row[1])
        when = np.full(given, granted, np.int64)
        batch = FlowBatch([group], np.ones(given, np.int32), np.arange(given), when, when)
        left = table.num_flows
        while left:
            granted, done = network.advance(batch, granted + 2 * 10**10)
            batch, left = FlowBatch(), left - int((done.handle == 1).sum())
        assert session._simulation is not None
        assert network._injector is not None
        held.append(session._simulation.tracker.held + network._injector.held)
    assert max(held) == held[9] < turns * table.num_flows  # as much after ten turns as after thirty
    network.close()


@pytest.mark.parametrize("release", ["network", "engine"])
@pytest.mark.parametrize("room", [24, 40, 200])
def test_a_small_credit_changes_nothing(serve: Serve, room: int, release: str) -> None:
    """Two jobs, 4 ranks each: 4 and 12 messages at a time."""
    assert run(connect(serve(max_open_flows=room).address), release).digest == run().digest


def test_starts_that_lie_apart_wait_until_there_is_room(serve: Serve) -> None:
    """40 messages given at once for 40 times, where 4 may be open."""
    count = 40

    def ends(network: Any) -> list[int]:
        network.open(star(4))
        table = flat_table([0] * count, [1] * count, [1000] * count)
        when = np.arange(count)[::-1] * 3_000_000
        handle = np.zeros(count, np.int32)
        batch = FlowBatch(
            [FlowGroup(0, table, np.arange(2, dtype=np.int32), (0, 0))], handle, np.arange(count), when, when
        )
        found = [0] * count
        left = count
        while left:
            _, done = network.advance(batch, 10**12)
            batch, left = FlowBatch(), left - len(done)
            for one, time in zip(done.index.tolist(), done.time_ps.tolist(), strict=True):
                found[one] = time
        network.close()
        return found

    assert ends(connect(serve(max_open_flows=4).address)) == ends(connect(serve().address))


def test_what_was_to_be_forgotten_is_not_waited_for(serve: Serve) -> None:
    probe = ServerProbe(connection := Connection(serve().address), connection.describe(), star(4))
    probe.open()
    probe.advance(flows(0, [(0, 1)], 1000, 0))
    for number, (given, oldest) in enumerate(
        [
            (flows(1, [(0, 1)], 1000, 10**9), 1),
            (flows(2, [(0, 1)], 1000, -1, waits_for=[[0]], kinds=[[ON_START]]), 0),
        ]
    ):
        for part in advance_parts(None, given, None, 2 * 10**9, 0, 1 << 20, oldest_id=oldest):
            connection.send(numbered(part, 2 + number))
        if not number:
            probe.answer()
    with pytest.raises(RefusedError, match="waits for flow 0; an earlier advance said 1 or later"):
        probe.answer()
    probe.close()
