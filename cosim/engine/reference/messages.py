"""Sends and receives: they meet by (sender, receiver, tag), in the order in which they are posted.

A SEND's message leaves when the SEND starts, and ends it when it has arrived; a RECV ends at the arrival,
or at once if the message was there before it (as in ASTRA-sim). With rendezvous the RECV first sends a
request of 8 KiB to the sender, and the message waits for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cosim.engine.accesses import computation_table
from cosim.engine.reference.flows import FlowCallback
from cosim.engine.reference.ranks import Rank, RankStep
from cosim.errors import MismatchError, WorkloadError
from cosim.network.flows import FlowTable, flat_table, pack_key
from cosim.workload.operation import Operation, OpKind

if TYPE_CHECKING:
    from cosim.engine.reference.replay import ReferenceReplay

_REQUEST_BYTES = 8192
_MESSAGE_PART, _REQUEST_PART = 4095, 4094  # of flow keys; collectives have those below

Channel = tuple[int, int, int, int]
"""Job, sender, receiver, tag."""


@dataclass(eq=False, slots=True)
class RankMessage:
    """A SEND and its RECV, as far as they are posted."""

    send: tuple[Rank, RankStep] | None = None
    recv: tuple[Rank, RankStep] | None = None
    requested: bool = False
    arrived: bool = False


class PostedMessages:
    """All messages of a run that are under way, or of which one end is posted."""

    def __init__(self, run: ReferenceReplay) -> None:
        self._run = run
        self._tables: dict[tuple[int, int], FlowTable] = {}
        self.posted: dict[Channel, deque[RankMessage]] = {}
        """Those that lack an end: of one channel all lack the same one."""

    def post(self, rank: Rank, step: RankStep) -> None:
        """A SEND or a RECV starts.

        Raises
        ------
        WorkloadError
            There is nobody at the other end.
        MismatchError
            The other end has another size.
        """
        one = rank.operation(step)
        sends = one.kind is OpKind.SEND
        message = self._match(rank, one, sends)
        if sends:
            message.send = rank, step
        else:
            message.recv = rank, step
        if message.send and message.recv:
            _check_sizes(*message.send, *message.recv)
        rendezvous = rank.job.info.workload.rendezvous
        if sends and (message.requested or not rendezvous):
            # It is certain since its request came, or since what let its SEND start.
            self._leave(message, rank.clock.now_ps if message.requested else rank.cause_ps)
        elif not sends and rendezvous:
            self._request(message, rank.cause_ps)
        if not sends and message.arrived:  # it was here before it was asked for
            rank.end_at(rank.clock.now_ps, step, rank.clock.now_ps)

    def _match(self, rank: Rank, one: Operation, sends: bool) -> RankMessage:
        """The first message of a channel that lacks this end, or a new one."""
        peer = peer_of(rank, one)
        sender, receiver = (rank.number, peer) if sends else (peer, rank.number)
        waiting = self.posted.setdefault((rank.job.number, sender, receiver, one.tag), deque())
        if waiting and (waiting[0].send if sends else waiting[0].recv) is None:
            return waiting.popleft()
        waiting.append(RankMessage())
        return waiting[-1]

    def _leave(self, message: RankMessage, cause_ps: int) -> None:
        """A message is sent."""
        assert message.send is not None
        rank, step = message.send
        one, told = rank.operation(step), partial(self._arrived, message)
        self._send(rank, step, _MESSAGE_PART, self._flow(one.size_bytes, one.channel), cause_ps, told)

    def _request(self, message: RankMessage, cause_ps: int) -> None:
        """A message is asked for."""
        assert message.recv is not None
        told = partial(self._requested, message)
        self._send(*message.recv, _REQUEST_PART, self._flow(_REQUEST_BYTES, 0), cause_ps, told)

    def _send(
        self, rank: Rank, step: RankStep, part: int, table: FlowTable, cause_ps: int, told: FlowCallback
    ) -> None:
        """Start a flow from a rank to its peer."""
        job, flows = rank.job, self._run.flows
        endpoints = job.info.endpoints[[rank.number, peer_of(rank, rank.operation(step))]]
        # A flow is named by what it is, not by when it was made: digests don't depend on how a run was cut.
        key = pack_key(job.number, step.iteration, step.op, rank.number, part)
        group = flows.open(table, endpoints, key, job, step.iteration, told, release="caller")
        flows.start(group, 0, cause_ps)

    def _flow(self, size_bytes: int, channel: int) -> FlowTable:
        """A table of one flow."""
        if (size_bytes, channel) not in self._tables:
            self._tables[size_bytes, channel] = flat_table([0], [1], [size_bytes], channel=[channel])
        return self._tables[size_bytes, channel]

    def _requested(self, message: RankMessage, _: int, cause_ps: int) -> None:
        message.requested = True
        if message.send is not None:
            self._leave(message, cause_ps)

    def _arrived(self, message: RankMessage, _: int, cause_ps: int) -> None:
        """A SEND ends where its message is; a RECV that is not posted yet finds it there."""
        message.arrived = True
        for end in filter(None, (message.send, message.recv)):
            rank, step = end
            rank.end_at(rank.clock.now_ps, step, cause_ps)

    def transfer(self, rank: Rank, step: RankStep, dst: int) -> None:
        """A rank sends to an endpoint, where nobody has to ask for it; the step ends when it is there."""
        one = rank.operation(step)
        self._carry(rank, step, self._flow(one.size_bytes, one.channel), [rank.endpoint, dst])

    def compute(self, rank: Rank, step: RankStep) -> None:
        """A computation where the network takes these."""
        table = computation_table(rank.operation(step).duration_ps)
        self._carry(rank, step, table, [rank.endpoint])

    def _carry(self, rank: Rank, step: RankStep, table: FlowTable, ends: list[int]) -> None:
        """Start the one flow of a step, which ends with it."""
        key = pack_key(rank.job.number, step.iteration, step.op, rank.number, _MESSAGE_PART)

        def told(_: int, cause_ps: int) -> None:
            rank.end_at(rank.clock.now_ps, step, cause_ps)

        endpoints, traits = np.array(ends, np.int32), rank.traits(step)
        flows = self._run.flows.open(table, endpoints, key, rank.job, traits, told, release="caller")
        self._run.flows.start(flows, 0, rank.cause_ps)

    def ask_node(self, rank: Rank, step: RankStep) -> None:
        """An access to remote memory at a node: a message there, and one back."""
        info, one = rank.job.info, rank.operation(step)
        assert info.memory_nodes is not None
        table = self._run.access_table(one.access, one.size_bytes, info.memory_nodes)
        endpoints = np.array([rank.endpoint, info.memory_nodes.node[rank.endpoint]], np.int32)
        key = pack_key(rank.job.number, step.iteration, step.op, rank.number, _MESSAGE_PART)

        def told(_: int, cause_ps: int) -> None:
            rank.end_at(rank.clock.now_ps, step, cause_ps)

        flows = self._run.flows.open(table, endpoints, key, rank.job, step.iteration, told, told_from=1)
        self._run.flows.start(flows, 0, rank.cause_ps)

    def unmatched(self) -> Iterator[tuple[Channel, RankMessage]]:
        """Those of which only one end was ever posted."""
        for channel in sorted(self.posted):
            for message in self.posted[channel]:
                yield channel, message


def peer_of(rank: Rank, one: Operation) -> int:
    """Who is at the other end of a rank's operation.

    Raises
    ------
    WorkloadError
        Nobody.
    """
    peer, mesh, world = one.peer, rank.job.info.workload.mesh, rank.job.info.workload.world_size
    found = -1
    if peer is not None and peer.rank is not None and peer.rank >= 0:
        found = peer.rank
    elif peer is not None and peer.axis is not None and peer.axis in mesh.axes:
        there = mesh.coordinates(rank.number)
        there[peer.axis] += peer.offset
        if 0 <= there[peer.axis] < mesh.axes[peer.axis]:
            found = mesh.rank(there)
    if not 0 <= found < world or found == rank.number:
        raise WorkloadError(
            f"rank {rank.number}: {one.kind.value} {one.name!r} has no peer ({one.peer}) "
            f"among the {world} ranks"
        )
    return found


def _check_sizes(sender: Rank, send: RankStep, receiver: Rank, recv: RankStep) -> None:
    one, two = sender.operation(send), receiver.operation(recv)
    if one.size_bytes != two.size_bytes:
        raise MismatchError(
            f"rank {sender.number} SENDs {one.size_bytes} bytes to rank {receiver.number} "
            f"(op {send.op} {one.name!r}, tag {one.tag}), which RECVs {two.size_bytes} bytes "
            f"(op {recv.op} {two.name!r})"
        )
