"""Sends and receives: they meet by (sender, receiver, tag), in the order in which they are posted.

A SEND's message leaves when the SEND starts, and ends it when it has arrived; a RECV ends at the arrival,
or at once if the message was there before it (ASTRA-sim's semantics). With rendezvous the RECV first sends
:data:`REQUEST_BYTES` to the sender, and the message waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from cosim.engine.desk import Desk
from cosim.engine.rank import Rank
from cosim.errors import MismatchError, WorkloadError
from cosim.network.flows import I32, pack_key
from cosim.units import format_size
from cosim.workload.program import Operation, OpKind, Peer

REQUEST_BYTES = 8192
"""A rendezvous request, as ASTRA-sim sends it."""

MESSAGE_PART, REQUEST_PART = 4095, 4094
"""Parts in flow keys; those below are the chunks and phases of collectives, so that keys never meet."""

Ended = Callable[[Rank, int, int], None]
"""Told rank, operation, and when it became certain that it ends now."""


@dataclass(eq=False, slots=True)
class Post:
    """One posted SEND or RECV."""

    rank: Rank
    op: int
    iteration: int

    @property
    def operation(self) -> Operation:
        """What was posted."""
        return self.rank.program.operations[self.op]


@dataclass(eq=False, slots=True)
class _Flow:
    """One flow of a message; tells what to do at its arrival."""

    desk: Desk
    then: Callable[[int, int], None]
    handle: int = -1

    def arrived(self, index: int, now: int, cause: int) -> None:
        del index
        self.desk.finish(self.handle)
        self.then(now, cause)


@dataclass(eq=False, slots=True)
class _Message:
    """A SEND and its RECV, as far as they are posted."""

    send: Post | None = None
    recv: Post | None = None
    requested: bool = False
    has_arrived: bool = False


@dataclass(eq=False, slots=True)
class _Channel:
    """Messages of one (sender, receiver, tag), those whose ends have not both been posted."""

    open: deque[_Message] = field(default_factory=deque)


class Messages:
    """All point-to-point messages of a run."""

    def __init__(self, desk: Desk, ended: Ended) -> None:
        self._desk = desk
        self._ended = ended
        self._channels: dict[tuple[int, int, int, int], _Channel] = {}
        self._peers: dict[tuple[int, int, Peer | None], int] = {}
        self._endpoints: dict[tuple[int, int, int], I32] = {}

    def peer(self, rank: Rank, operation: Operation) -> int:
        """The rank at the other end.

        Raises
        ------
        WorkloadError
            No peer, or none at that offset.
        """
        key = rank.job.number, rank.number, operation.peer
        known = self._peers.get(key)
        if known is not None:
            return known
        peer, mesh = operation.peer, rank.job.info.workload.mesh
        world = rank.job.info.workload.world_size
        other = None if peer is None else peer.rank
        if peer is not None and peer.axis is not None and peer.axis in mesh.axes:
            where = mesh.coordinates(rank.number)
            where[peer.axis] += peer.offset
            if 0 <= where[peer.axis] < mesh.axes[peer.axis]:
                other = mesh.rank(where)
        if other is None or not 0 <= other < world or other == rank.number:
            raise WorkloadError(
                f"rank {rank.number}: {operation.kind.value} {operation.name!r} has no peer "
                f"({operation.peer}) among the {world} ranks"
            )
        self._peers[key] = other
        return other

    def post(self, rank: Rank, op: int, now: int) -> None:
        """A SEND or RECV starts.

        Raises
        ------
        MismatchError
            The sizes of the two ends differ.
        """
        operation = rank.program.operations[op]
        other = self.peer(rank, operation)
        is_send = operation.kind is OpKind.SEND
        ends = (rank.number, other) if is_send else (other, rank.number)
        channel = self._channels.setdefault((rank.job.number, *ends, operation.tag), _Channel())
        mine = Post(rank, op, rank.iteration)
        # All that are open lack the same end, so the first is the one to match, or none is.
        first = channel.open[0] if channel.open else None
        if first is not None and (first.send if is_send else first.recv) is None:
            message = channel.open.popleft()
        else:
            message = _Message()
            channel.open.append(message)
        if is_send:
            message.send = mine
        else:
            message.recv = mine
        if message.send and message.recv:
            _check(message.send, message.recv)
        rendezvous = rank.job.info.workload.rendezvous
        if rendezvous and not is_send:
            self._send_request(message, mine, ends, now)
        if is_send and not rendezvous:
            self._send(message, ends, now, rank.cause_ps)
        elif is_send and message.requested:
            self._send(message, ends, now, now)
        elif not is_send and message.has_arrived:
            self._ended(rank, op, now)

    def _send_request(self, message: _Message, recv: Post, ends: tuple[int, int], now: int) -> None:
        def reached(at: int, cause: int) -> None:
            message.requested = True
            if message.send:
                self._send(message, ends, at, cause)

        self._start(recv, (ends[1], ends[0]), REQUEST_BYTES, REQUEST_PART, reached, now, recv.rank.cause_ps)

    def _send(self, message: _Message, ends: tuple[int, int], now: int, cause: int) -> None:
        send = message.send
        assert send is not None

        def reached(at: int, cause: int) -> None:
            del at
            message.has_arrived = True
            self._ended(send.rank, send.op, cause)
            if message.recv:
                self._ended(message.recv.rank, message.recv.op, cause)

        self._start(send, ends, send.operation.size_bytes, MESSAGE_PART, reached, now, cause)

    def _start(
        self,
        post: Post,
        ends: tuple[int, int],
        size: int,
        part: int,
        then: Callable[[int, int], None],
        now: int,
        cause: int,
    ) -> None:
        job = post.rank.job
        key = pack_key(job.number, post.iteration, post.op, post.rank.number, part)
        flow = _Flow(self._desk, then)
        place = job.number, *ends
        endpoints = self._endpoints.get(place)
        if endpoints is None:
            endpoints = np.ascontiguousarray(job.info.endpoints[list(ends)], np.int32)
            self._endpoints[place] = endpoints
        channel = post.operation.channel if part == MESSAGE_PART else 0
        traits = job.traits(post.iteration)
        flow.handle = self._desk.open_message(flow, endpoints, size, key, channel=channel, **traits)
        self._desk.start(flow.handle, 0, now, cause)

    def unmatched(self) -> Iterator[tuple[int, str]]:
        """The job's number and a line for each message of which only one end was ever posted."""
        for (job, sender, receiver, tag), channel in sorted(self._channels.items(), key=lambda item: item[0]):
            for message in channel.open:
                post = message.send or message.recv
                if post is None:
                    continue
                size = format_size(post.operation.size_bytes)
                what = f"op {post.op} {post.operation.name!r}, {size}, tag {tag}"
                if message.send:
                    yield job, f"rank {sender}: SEND {what}: rank {receiver} never posts the RECV"
                else:
                    yield job, f"rank {receiver}: RECV {what}: rank {sender} never posts the SEND"


def _check(send: Post, recv: Post) -> None:
    one, two = send.operation, recv.operation
    if one.size_bytes != two.size_bytes:
        raise MismatchError(
            f"rank {send.rank.number} SENDs {one.size_bytes} bytes to rank {recv.rank.number} "
            f"(op {send.op} {one.name!r}, tag {one.tag}), which RECVs {two.size_bytes} bytes "
            f"(op {recv.op} {two.name!r})"
        )
