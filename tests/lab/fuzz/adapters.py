"""Damaged requests to the adapters' servers: ``python -m tests.lab.fuzz.adapters NAME [COUNT] [SEED]``.

NAME is one of ``ns3``, ``ns3_rdma``, ``astrasim``; it is built where it is not yet. Requests of a run are
damaged, doubled and moved, and sent to one server, session after session. What can't be read as a request
ends the stream in gRPC; all else has to be answered or refused by a reason of the protocol, within 20 s, and
the server goes on.
"""

from __future__ import annotations

import sys
from collections import Counter
from random import Random

from google.protobuf.message import DecodeError

from cosim.engine.replay import replay
from cosim.errors import NetworkError, RefusedError, VersionError
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.protocol.adapters import build as built_adapter
from cosim.protocol.client import launch
from cosim.protocol.connection import Connection
from cosim.protocol.launcher import ServerProcess
from cosim.protocol.v1 import network_simulator_pb2 as pb
from tests.lab.fuzz.wire import SCENARIO, out_of_order

PATIENCE_S = 20.0


def conversations(command: tuple[str, ...]) -> list[tuple[bytes, ...]]:
    """The requests of a run, released by the engine and by the network."""
    plain, found = Connection.send, []
    for release in ("engine", "network"):
        kept: list[bytes] = []

        def send(self: Connection, request: bytes, kept: list[bytes] = kept) -> None:
            kept.append(bytes(request))
            plain(self, request)

        Connection.send = send  # type: ignore[method-assign]
        try:
            world = build(loads(SCENARIO))
            network = launch(list(command))
            replay(world.topology, network, world.jobs, world.planner, release=release)
            network.close()
        finally:
            Connection.send = plain  # type: ignore[method-assign]
        found.append(tuple(kept))
    return found


def may_end(request: bytes) -> bool:
    """Whether a session ends after it: it says so, or is none."""
    try:
        return pb.SessionRequest.FromString(request).WhichOneof("request") in ("close", None)
    except DecodeError:
        return True


def talk(connection: Connection, requests: list[bytes]) -> str:
    """How a session of these requests ends."""
    connection.open_stream()
    try:
        for request in requests:
            connection.send(request)
            connection.receive(PATIENCE_S)
        connection.finish()
    except (RefusedError, VersionError):
        connection.drop_stream()
        return "refused"
    except NetworkError as error:
        connection.drop_stream()
        return "ended" if any(map(may_end, requests)) else f"otherwise: {error}"
    return "answered"


def main() -> None:
    name, count, seed = [*sys.argv[1:], *("10000", "0")[len(sys.argv) - 2 :]]
    command = (str(built_adapter(name)),)
    known, draw, ends = conversations(command), Random(int(seed)), Counter[str]()
    server = ServerProcess(command)
    try:
        connection = Connection(server.address)
        for _ in range(int(count)):
            ends[talk(connection, out_of_order(draw, draw.choice(known)))] += 1
            assert connection.healthy(PATIENCE_S), f"{name} is gone"
        connection.close()
    finally:
        server.stop()
    print(f"{name}:", ", ".join(f"{number:,} {end}" for end, number in ends.most_common()))


if __name__ == "__main__":
    main()
