"""Ends of messages of ranks, compiled: who is at the other end, where both meet, and what is sent."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosim.engine.messages import REQUEST_BYTES
from cosim.engine.program_columns import TableColumns, room_to_hash, step
from cosim.engine.state import NONE, SEND, State
from cosim.network.arrays import Arrays
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled, internal
from cosim.workload.operation import Operation
from cosim.workload.program import DeviceMesh, Workload


class Meetings(Arrays):
    """What is found of a job's ends of messages.

    Of ranks ``program_of``; of prototypes ``stride``, ``size`` and ``offset`` of the axis along which the
    other end is, size 0: it says a rank, or nobody. Found are channels, ``sender``, ``receiver`` and ``tag``
    of each, and flows: ``source`` and ``target`` (ranks), ``size_bytes`` and ``channel`` of what goes out at
    each ``port``.
    """

    program_of: I32
    stride: I64
    size: I64
    offset: I64
    sender: I32
    receiver: I32
    tag: I64
    hashes: I32
    port: I32
    source: I32
    target: I32
    size_bytes: I64
    channel: I32
    channel_of: I32


def meetings_of(workload: Workload, ports: int) -> Meetings:
    """Room for what is found of so many ends."""
    prototypes = workload.table.prototypes
    channel_of = np.array([one.channel for one in prototypes], np.int64).astype(np.int32)
    sender, receiver, port, source, target, channel = np.empty((6, ports), np.int32)
    tag, size_bytes = np.empty((2, ports), np.int64)
    return Meetings(
        np.ascontiguousarray(workload.program_of, np.int32),
        *_places(prototypes, workload.mesh),
        sender,
        receiver,
        tag,
        room_to_hash(ports),
        port,
        source,
        target,
        size_bytes,
        channel,
        channel_of,
    )


def _places(prototypes: Sequence[Operation], mesh: DeviceMesh) -> NDArray[np.int64]:
    """int64[3, prototypes]: stride, size and offset of :class:`Meetings`."""
    found, axes = np.zeros((3, len(prototypes)), np.int64), list(mesh.axes)
    for k, one in enumerate(prototypes):
        axis = None if one.peer is None else one.peer.axis
        if one.peer is not None and axis is not None and axis in mesh.axes:
            stride = math.prod(mesh.axes[name] for name in axes[axes.index(axis) + 1 :])
            found[:, k] = stride, mesh.axes[axis], one.peer.offset
    return found


@internal
def _peer(source: TableColumns, found: Meetings, row: int, rank: int) -> int:
    """Who is at the other end of a rank's operation; NONE: nobody."""
    peer = source.peer[row]
    like = source.like[row]
    if peer < 0 and found.size[like] > 0:
        place = rank // found.stride[like] % found.size[like] + found.offset[like]
        if 0 <= place < found.size[like]:
            peer = rank + found.offset[like] * found.stride[like]
    return int(peer) if 0 <= peer < len(found.program_of) and peer != rank else NONE


@internal
def _channel(found: Meetings, sender: int, receiver: int, tag: int, used: int) -> int:
    """The number of where messages meet, of ``used`` that are known; that is the number of a new one."""
    mask = len(found.hashes) - 1
    hashed = step(step(step(np.uint64(0), sender), receiver), tag)
    place = np.int64(hashed >> np.uint64(32)) & mask
    while found.hashes[place] != NONE:
        one = found.hashes[place]
        if found.tag[one] == tag and found.sender[one] == sender and found.receiver[one] == receiver:
            return int(one)
        place = (place + 1) & mask
    found.hashes[place] = used
    found.sender[used] = sender
    found.receiver[used] = receiver
    found.tag[used] = tag
    return used


@compiled
def write_ports(
    state: State, source: TableColumns, found: Meetings, rank0: int, channel0: int, rendezvous: bool
) -> tuple[int, int]:
    """Write a job's ports, of ranks from ``rank0`` on; (how many channels it has, from ``channel0`` on, how
    many flows go out).
    """
    channels = 0
    flows = 0
    for rank in range(len(found.program_of)):
        program = found.program_of[rank]
        port0 = state.ranks[rank0 + rank].port0
        begin = source.end_first[program]
        for end in range(begin, source.end_first[program + 1]):
            port = port0 + end - begin
            row = source.end_row[end]
            peer = _peer(source, found, row, rank)
            one = state.ports[port]
            one.peer = peer
            one.binding = NONE
            one.channel = NONE
            # Without a peer it stays without a channel: a rank that reaches it is told so then, if it ever
            # does.
            if peer == NONE:
                continue
            sends = source.kind[source.like[row]] == SEND
            number = _channel(
                found, rank if sends else peer, peer if sends else rank, source.tag[row], channels
            )
            channels = max(channels, number + 1)
            one.channel = channel0 + number
            if sends or rendezvous:
                found.port[flows] = port
                found.source[flows] = rank
                found.target[flows] = peer
                found.size_bytes[flows] = source.size[row] if sends else REQUEST_BYTES
                found.channel[flows] = found.channel_of[source.like[row]] if sends else 0
                flows += 1
    for number in range(channels):
        state.channels[channel0 + number].head = NONE
        state.channels[channel0 + number].tail = NONE
    return channels, flows
