"""Sends and receives, compiled: they meet by (sender, receiver, tag), in the order in which they are posted.

A SEND's message leaves when the SEND starts, and ends it when it has arrived; a RECV ends at the arrival,
or at once if the message was there before it (ASTRA-sim's semantics). With rendezvous the RECV first sends
:data:`REQUEST_BYTES` to the sender, and the message waits for it.
"""

from __future__ import annotations

from cosim.engine.flows import open_flows, start_flow
from cosim.engine.heap import push
from cosim.engine.state import (
    DISPATCH_N,
    ENDING_N,
    MESSAGE_FREE,
    MESSAGE_TOP,
    NONE,
    OF_MESSAGE,
    OF_REQUEST,
    SEND,
    WHICH,
    State,
)
from cosim.network.jit import internal

REQUEST_BYTES = 8192
"""A rendezvous request, as ASTRA-sim sends it."""

MESSAGE_PART, REQUEST_PART = 4095, 4094
"""Parts in flow keys; those below are the chunks and phases of collectives, so that keys never meet."""


@internal
def ends_now(state: State, rank: int, op: int, now: int, cause: int) -> None:
    """An operation ends now, certain since ``cause``; applied with all else that ends now."""
    meta = state.meta
    meta[ENDING_N] = push(state.ending, meta[ENDING_N], now, rank, op, cause, rank, op)


@internal
def _dispatch(state: State, message: int, part: int, cause: int) -> None:
    task = state.dispatches[state.meta[DISPATCH_N]]
    task.owner = message
    task.part = part
    task.cause = cause
    state.meta[DISPATCH_N] += 1


@internal
def _new_message(state: State) -> int:
    meta = state.meta
    found = meta[MESSAGE_FREE]
    if found == NONE:
        found = meta[MESSAGE_TOP]
        meta[MESSAGE_TOP] += 1
    else:
        meta[MESSAGE_FREE] = state.messages[found].next
    one = state.messages[found]
    one.send_rank = NONE
    one.recv_rank = NONE
    one.requested = 0
    one.arrived = 0
    one.next = NONE
    return int(found)


@internal
def _match(state: State, channel_number: int, is_send: bool) -> int:
    """The first message of a channel that lacks this end, taken out of it, or a new one."""
    channel = state.channels[channel_number]
    # What waits in a channel waits for the same end: were there a message that lacks the other one, this end
    # would have met it. So the first tells for all, and first come is first served.
    first = int(channel.head)
    if first != NONE:
        one = state.messages[first]
        if (one.send_rank if is_send else one.recv_rank) == NONE:
            channel.head = one.next
            return first
    made = _new_message(state)
    if channel.head == NONE:
        channel.head = made
    else:
        state.messages[channel.tail].next = made
    channel.tail = made
    return made


@internal
def post(state: State, number: int, op: int, now: int) -> bool:
    """A SEND or RECV starts; False where its size is not that of the other end, message WHICH."""
    rank = state.ranks[number]
    one = state.ops[state.programs[rank.program].op0 + op]
    port = rank.port0 + one.ref
    is_send = one.kind == SEND
    iteration = state.slots[rank.slot0 + one.slot].iteration
    found = _match(state, state.ports[port].channel, is_send)
    message = state.messages[found]
    if is_send:
        message.send_rank = number
        message.send_op = op
        message.send_iteration = iteration
    else:
        message.recv_rank = number
        message.recv_op = op
        message.recv_iteration = iteration
        message.port = port
    # Either may have the wrong size: it is known when both are there.
    if message.send_rank != NONE and message.recv_rank != NONE:
        other = state.ranks[message.recv_rank if is_send else message.send_rank]
        its_op = message.recv_op if is_send else message.send_op
        if state.ops[state.programs[other.program].op0 + its_op].size != one.size:
            state.meta[WHICH] = found
            return False
    rendezvous = state.jobs[rank.job].rendezvous != 0
    # A message that waited for its request is certain since that came; any other since what let its SEND
    # start.
    if is_send:
        if not rendezvous:
            _dispatch(state, found, MESSAGE_PART, rank.cause)
        elif message.requested != 0:
            _dispatch(state, found, MESSAGE_PART, now)
    else:
        if rendezvous:
            _dispatch(state, found, REQUEST_PART, rank.cause)
        if message.arrived != 0:
            # It was here before it was asked for.
            ends_now(state, number, op, now, now)
            _forget(state, found)
    return True


@internal
def _forget(state: State, message: int) -> None:
    state.messages[message].next = state.meta[MESSAGE_FREE]
    state.meta[MESSAGE_FREE] = message


@internal
def send_out(state: State, found: int, part: int, now: int, cause: int) -> None:
    """Open a message's flow, or its request's, and start it."""
    message = state.messages[found]
    if part == MESSAGE_PART:
        number = int(message.send_rank)
        op = int(message.send_op)
        iteration = int(message.send_iteration)
        kind = OF_MESSAGE
        rank = state.ranks[number]
        one = state.ops[state.programs[rank.program].op0 + op]
        port = rank.port0 + one.ref
    else:
        number = int(message.recv_rank)
        op = int(message.recv_op)
        iteration = int(message.recv_iteration)
        kind = OF_REQUEST
        rank = state.ranks[number]
        one = state.ops[state.programs[rank.program].op0 + op]
        port = message.port
    # A flow is named by what it is, not by when it was made: digests don't depend on how a run was cut.
    key_high = (int(rank.job) << 51) | (iteration << 31) | int(one.number)
    key_low = (int(rank.number) << 44) | (part << 32)
    handle = open_flows(state, state.ports[port].binding, key_high, key_low, kind, found, iteration)
    start_flow(state, handle, 0, now, cause)


@internal
def reached(state: State, kind: int, found: int, now: int, cause: int) -> None:
    """A message has arrived, or a request for one."""
    message = state.messages[found]
    if kind == OF_REQUEST:
        message.requested = 1
        if message.send_rank != NONE:
            _dispatch(state, found, MESSAGE_PART, cause)
        return
    # The SEND ends where its message is; a RECV that is not posted yet finds it here.
    message.arrived = 1
    ends_now(state, message.send_rank, message.send_op, now, cause)
    if message.recv_rank != NONE:
        ends_now(state, message.recv_rank, message.recv_op, now, cause)
        _forget(state, found)
