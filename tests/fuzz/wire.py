"""Requests to a server, damaged and out of order; answers to a client, damaged."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from hypothesis import strategies as st

from cosim.errors import CosimError, InputError
from cosim.network.aware import CongestionAwareNetwork
from cosim.network.fair_share import FairShareNetwork
from cosim.protocol.refusal import Refusal
from cosim.protocol.session import ServerConfig, Session
from cosim.protocol.v1 import network_simulator_pb2 as pb
from tests.fuzz.damage import damaged, edited
from tests.fuzz.loop import Loop, looped
from tests.fuzz.tally import Target
from tests.protocol.small_run import run

SERVED = ServerConfig(CongestionAwareNetwork)


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


def spoiled(given: tuple[int, list[tuple[int, int, int]]]) -> None:
    """A run whose server's n-th answer is damaged ends as it should, or with a named error."""
    which, edits = given
    count = 0

    def spoil(answer: bytes) -> bytes:
        nonlocal count
        count += 1
        return edited(answer, edits, answer) if count == which else answer

    run(looped(SERVED, spoil))


def _out_of_order(requests: Sequence[bytes]) -> st.SearchStrategy[list[bytes]]:
    """A beginning of a conversation, with some requests damaged, twice, elsewhere, or from another."""
    any_request = st.sampled_from(requests[:12]) | damaged(requests[:12])

    def begun(count: int) -> st.SearchStrategy[list[bytes]]:
        return st.lists(any_request, max_size=4).map(lambda rest: [*requests[:count], *rest])

    return st.integers(0, 6).flatmap(begun)


def targets() -> list[Target]:
    """What a server may be sent, and a client."""
    edits = st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 1 << 16), st.integers(0, 1 << 16)), min_size=1, max_size=3
    )
    return [
        Target("requests (engine)", _out_of_order(a_conversation("engine")), serve),
        Target("requests (network)", _out_of_order(a_conversation("network")), serve),
        Target("answers", st.tuples(st.integers(1, 60), edits), spoiled),
    ]
