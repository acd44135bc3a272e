"""Requests to a server, damaged and out of order; answers to a client, damaged."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cache, partial
from random import Random

from cosim.engine.replay import replay
from cosim.errors import CosimError, InputError
from cosim.experiment.build import Built, build
from cosim.experiment.scenario import loads
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.protocol.refusal import Refusal
from cosim.protocol.session import ServerConfig, Session
from cosim.protocol.v1 import network_simulator_pb2 as pb
from tests.lab.fuzz.damage import damaged
from tests.lab.fuzz.loop import Loop, looped
from tests.lab.fuzz.tally import Target, drawn
from tests.protocol.small_run import run

SERVED = ServerConfig(CongestionAwareNetwork)
SCENARIO = """
topology: {kind: ring, endpoints: 2, rate: 80Gbps, latency: 1us}
network: congestion_aware
jobs: [{workload: {kind: collective, collective: all_gather, ranks: 2, size: 4kB}, iterations: 3}]
"""


class _Kept(Loop):
    """Keeps what a run sends."""

    def __init__(self, served: ServerConfig) -> None:
        super().__init__(served)
        self.requests: list[bytes] = []

    def send(self, request: bytes) -> None:
        self.requests.append(request)
        super().send(request)


def a_conversation(release: str) -> tuple[bytes, ...]:
    """The requests of a run."""
    network = looped(SERVED)
    kept = _Kept(SERVED)
    network.session._session._connection = kept  # type: ignore[assignment]
    run(network, release=release)
    return tuple(kept.requests)


def serve(requests: Sequence[bytes]) -> None:
    """Give requests to a session, until it refuses one: by a Refusal, and nothing else."""
    session = Session(ServerConfig(FairShareNetwork))
    answered = 0
    try:
        for request in requests:
            try:
                message = pb.SessionRequest.FromString(request)
            except Exception:  # protobuf's own: gRPC ends such a stream before it is seen
                raise InputError("no request") from None
            for answer in session.handle(message):
                answer.SerializeToString()
                answered += 1
    except Refusal as refusal:
        raise InputError(str(refusal) or "refused") from None
    finally:
        with contextlib.suppress(CosimError):
            session.close()


@cache
def a_small_world() -> tuple[Built, int]:
    """Two messages on two links, and how many answers a server gives about them."""
    built = build(loads(SCENARIO))
    count = 0

    def counted(answer: bytes) -> bytes:
        nonlocal count
        count += 1
        return answer

    replay(built.topology, looped(SERVED, counted), built.jobs, built.planner)
    return built, count


def spoiled(given: tuple[int, int]) -> None:
    """A run whose server's n-th answer is damaged ends as it should, or with a named error."""
    which, number = given
    built, _ = a_small_world()
    count = 0

    def spoil(answer: bytes) -> bytes:
        nonlocal count
        count += 1
        return damaged(Random(number), [answer]) if count == which else answer

    replay(built.topology, looped(SERVED, spoil), built.jobs, built.planner)


def out_of_order(draw: Random, requests: Sequence[bytes]) -> list[bytes]:
    """A beginning of a conversation, with some requests damaged, twice, elsewhere, or from another."""
    first = requests[:12]
    return [
        *requests[: draw.randrange(7)],
        *(
            damaged(draw, first) if draw.random() < 0.7 else draw.choice(first)
            for _ in range(draw.randrange(1, 4))
        ),
    ]


def targets() -> list[Target]:
    """What a server may be sent, and a client."""
    found = []
    for release in ("engine", "network"):
        requests = a_conversation(release)
        inputs = drawn(partial(out_of_order, requests=requests))
        found.append(Target(f"requests ({release})", inputs, serve))
    _, answers = a_small_world()
    inputs = drawn(lambda draw: (draw.randint(1, answers), draw.randrange(1 << 30)))
    return [*found, Target("answers", inputs, spoiled)]
