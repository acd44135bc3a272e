"""A bare session, which believes all that a server says: each check looks at its own property alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosim.errors import ProtocolError
from cosim.network.flows import I64
from cosim.protocol.catalogue import known_paths
from cosim.protocol.columns import FlatFlows, array
from cosim.protocol.messages import advance_parts, make_paths, numbered
from cosim.protocol.v1 import VERSION
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.protocol.wire import Wire
from cosim.protocol.world import encode_topology
from cosim.topology.graph import Topology
from cosim.units import NEVER


@dataclass(eq=False)
class Answer:
    """The parts of an answer put together; ``part_bytes`` are their sizes."""

    sequence: int
    granted_ps: int
    stop_reason: int
    ids: I64
    start_ps: I64
    time_ps: I64
    credit: int
    digest: tuple[int, int]
    part_bytes: list[int]

    def times(self) -> dict[int, int]:
        """Completion time of each id."""
        return dict(zip(self.ids.tolist(), self.time_ps.tolist(), strict=True))


class Probe:
    """One session on a wire of its own."""

    def __init__(self, wire: Wire, there: pb.DescribeResponse, topology: Topology) -> None:
        self.wire = wire
        self._there = there
        self._topology = topology
        self._sent_paths: set[tuple[int, int, int]] = set()
        self._given = pb.FEATURE_GIVEN_PATHS in there.features
        self.sequence = 0
        self.next_id = 0
        self.answers: list[Answer] = []

    def request(self) -> pb.Open:
        """The message that opens a plain session."""
        message = pb.Open(seed=1, version=pb.Version(major=VERSION[0], minor=VERSION[1]))
        encode_topology(self._topology, message.topology)
        message.routing.kind = pb.ROUTING_KIND_GIVEN if self._given else pb.ROUTING_KIND_ECMP
        return message

    def open(self, message: pb.Open | None = None) -> pb.Opened:
        """Open the session."""
        self.wire.open_stream()
        self.send(pb.SessionRequest(open=message or self.request()))
        answer = self.receive()
        if not answer.HasField("opened"):
            raise ProtocolError(f"Open was answered by {answer.WhichOneof('response')}")
        return answer.opened

    def send(self, request: pb.SessionRequest) -> None:
        """Send anything."""
        self.wire.send(request.SerializeToString())

    def receive(self, deadline_s: float | None = None) -> pb.SessionResponse:
        """The next message."""
        return pb.SessionResponse.FromString(self.wire.receive(deadline_s))

    def ask(
        self,
        flows: FlatFlows | None = None,
        horizon_ps: int = NEVER,
        *,
        starts: tuple[I64, I64, I64] | None = None,
        wall_budget_us: int = 0,
        sequence: int | None = None,
    ) -> None:
        """Send an advance and don't wait."""
        paths = None
        if flows is not None:
            self.next_id = max(self.next_id, flows.first_id + flows.count)
            if self._given:
                columns = (flows.column(name).astype(np.int32) for name in ("src", "dst", "channel"))
                src, dst, channel = columns
                triples, ptr, links = known_paths(self._topology, (src, dst, channel), self._sent_paths)
                paths = make_paths(triples, ptr, links) if triples else None
        self.sequence = self.sequence + 1 if sequence is None else sequence
        most = min(1 << 22, self._there.limits.max_message_bytes or 1 << 22)
        for part in advance_parts(paths, flows, starts, horizon_ps, wall_budget_us, most):
            self.wire.send(numbered(part, self.sequence))

    def answer(self, deadline_s: float | None = None) -> Answer:
        """Receive an answer whole."""
        parts: list[pb.Advanced] = []
        sizes = []
        while not parts or parts[-1].more:
            response = self.receive(deadline_s)
            if not response.HasField("advanced"):
                raise ProtocolError(f"Advance was answered by {response.WhichOneof('response')}")
            sizes.append(response.ByteSize())
            parts.append(response.advanced)
        last = parts[-1]
        ids, start, time = (
            np.concatenate([array(getattr(part, name), np.int64) for part in parts])
            for name in ("id", "start_ps", "time_ps")
        )
        digest = (last.digest.a, last.digest.b)
        made = Answer(
            last.sequence, last.granted_ps, last.stop_reason, ids, start, time, last.credit, digest, sizes
        )
        self.answers.append(made)
        return made

    def advance(
        self,
        flows: FlatFlows | None = None,
        horizon_ps: int = NEVER,
        *,
        starts: tuple[I64, I64, I64] | None = None,
        wall_budget_us: int = 0,
    ) -> Answer:
        """Send an advance and wait for its answer."""
        self.ask(flows, horizon_ps, starts=starts, wall_budget_us=wall_budget_us)
        return self.answer()

    def finish(self, most: int = 10_000, wall_budget_us: int = 0) -> dict[int, int]:
        """Advance until every flow given has completed; completion times of all, by id."""
        for _ in range(most):
            times = self.times()
            if all(one in times for one in range(self.next_id)):
                return times
            self.advance(wall_budget_us=wall_budget_us)
        missing = [one for one in range(self.next_id) if one not in self.times()]
        raise ProtocolError(f"{most} advances did not complete flows {missing[:5]}")

    def times(self) -> dict[int, int]:
        """Completion times so far, of flows that were given."""
        return {
            one: when for answer in self.answers for one, when in answer.times().items() if one < self.next_id
        }

    def close(self) -> None:
        """Close the session and the wire."""
        self.wire.finish()
        self.wire.close()
