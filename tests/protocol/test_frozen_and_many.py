"""Servers that freeze in runs of several networks and in open loops; a server of many sessions."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.network.flows import FlowBatch
from cosim.network.simulator import Advance
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.connection import Connection
from cosim.protocol.launcher import ServerProcess
from tests.lab.fuzz.wire import a_conversation
from tests.protocol.small_run import GOOD, SCENARIO

pytestmark = pytest.mark.slow
SERVED: dict[str, Any] = {"command": [*GOOD], "answer_timeout": "20s"}
TEXT = SCENARIO.replace("iterations: 10", "iterations: 2")


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each server freezes before its client's fifth advance; the processes that did."""
    advance, counts, done = RemoteNetwork.advance, dict[RemoteNetwork, int](), list[int]()

    def freezing(self: RemoteNetwork, flows: FlowBatch, horizon_ps: int) -> Advance:
        counts[self] = counts.get(self, 0) + 1
        if counts[self] == 5:
            process = self.session.process
            assert process is not None
            os.kill(process.pid, signal.SIGSTOP)
            done.append(process.pid)
        return advance(self, flows, horizon_ps)

    monkeypatch.setattr(RemoteNetwork, "advance", freezing)
    return done


def test_in_a_run_of_several_networks_each_frozen_server_is_replaced(frozen: list[int]) -> None:
    networks = [SERVED, {**SERVED, "answer_timeout": "21s"}, "congestion_aware"]
    both = cosim.study({"kind": "networks", "networks": networks}, TEXT)
    assert len(frozen) == 2
    first, second, right = (both.times(name) for name in both.networks)
    assert first == second == right


def test_a_server_that_freezes_in_an_open_loop_is_replaced(frozen: list[int]) -> None:
    study = {"kind": "open_loop", "changes": ["topology.rate=50Gbps"]}
    served = cosim.study(study, TEXT, {"network": SERVED})
    assert len(frozen) >= 2
    here = cosim.study(study, TEXT)
    for one, other in zip(served.jobs, here.jobs, strict=True):
        assert one.open_ps == other.open_ps


def test_a_server_of_ten_thousand_sessions_holds_none_of_them() -> None:
    """A session's columns are 1 MB: of nine thousand after the first, which warm the server up, fewer than
    fifty may be there. Pages that the process keeps come and go by 8 MB, whatever it holds.
    """
    requests = a_conversation("engine")[:4]
    server = ServerProcess(GOOD)
    try:
        connection = Connection(server.address)
        held = []
        for count in (1_000, 9_000):
            for _ in range(count):
                connection.open_stream()
                for request in requests:
                    connection.send(request)
                    connection.receive(60.0)
                connection.finish()
            pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1])
            held.append(pages * os.sysconf("SC_PAGE_SIZE"))
        connection.close()
        assert held[1] - held[0] < 50 * 1_000_000
    finally:
        server.stop()
