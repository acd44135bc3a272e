"""What a server holds of sessions that are over: ``python -m tests.lab.benchmarks.sessions [COUNT]``.

So many sessions (10,000 unless said), one after another, each with an advance, of ``cosim serve`` and of the
example server of the protocol's README; of each thousand what is resident after it, in MB, and the bytes more
a session than after the thousand before it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cosim.protocol.connection import Connection
from cosim.protocol.launcher import ServerProcess
from cosim.protocol.v1 import network_simulator_pb2 as pb
from tests.lab.fuzz.wire import a_conversation
from tests.protocol.small_run import GOOD

STEP = 1_000
EXAMPLE = (sys.executable, "-m", "tests.protocol.minimal_server")
PATIENCE_S = 60.0


def requests_to_cosim() -> tuple[bytes, ...]:
    """A run's first requests."""
    return a_conversation("engine")[:4]


def requests_to_the_example() -> tuple[bytes, ...]:
    """The same Open, asking for what the example claims, and a message to its own endpoint."""
    first = pb.SessionRequest.FromString(a_conversation("engine")[0])
    del first.open.required_features[:]
    first.open.routing.kind = pb.ROUTING_KIND_GIVEN
    flows = pb.Flows(count=1, src=[0], dst=[0], size_bytes=[1], start_ps=[0])
    advance = pb.Advance(sequence=1, horizon_ps=10**6, flows=flows)
    return first.SerializeToString(), pb.SessionRequest(advance=advance).SerializeToString()


def resident(pid: int) -> int:
    """Bytes of a process that are in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def after_sessions(command: Sequence[str], requests: Sequence[bytes], count: int) -> list[int]:
    """Bytes resident of a server after each :data:`STEP` of ``count`` sessions."""
    server = ServerProcess(tuple(command))
    found = []
    try:
        connection = Connection(server.address)
        for number in range(1, count + 1):
            connection.open_stream()
            for request in requests:
                connection.send(request)
                connection.receive(PATIENCE_S)
            connection.finish()
            if number % STEP == 0:
                found.append(resident(server.pid))
        connection.close()
    finally:
        server.stop()
    return found


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for name, command, requests in (
        ("cosim serve", GOOD, requests_to_cosim()),
        ("the example", EXAMPLE, requests_to_the_example()),
    ):
        found = after_sessions(command, requests, count)
        print(f"{name:12} sessions  resident  more, a session")
        for number, held in enumerate(found):
            more = (held - found[number - 1]) / STEP if number else 0.0
            print(f"{'':12} {(number + 1) * STEP:8,}  {held / 1e6:5.1f} MB  {more:10,.0f} B", flush=True)


if __name__ == "__main__":
    main()
