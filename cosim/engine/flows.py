"""Flow groups and their flows, compiled: opened and started for the network, let go of by both sides."""

from __future__ import annotations

from cosim.engine.state import HANDLE_FREE, HANDLE_TOP, NONE, OPENED_N, STARTS_N, State
from cosim.network.jit import internal


@internal
def open_flows(
    state: State, binding: int, key_high: int, key_low: int, kind: int, owner: int, iteration: int
) -> int:
    """Open a flow group; its handle."""
    meta = state.meta
    handle = meta[HANDLE_FREE]
    if handle == NONE:
        handle = meta[HANDLE_TOP]
        meta[HANDLE_TOP] += 1
    else:
        meta[HANDLE_FREE] = state.handles[handle].next
    bound = state.bindings[binding]
    one = state.handles[handle]
    one.key_high = key_high
    one.key_low = key_low
    one.left = bound.flows
    one.react_from = bound.react_from
    one.info = bound.info
    one.block = bound.block
    one.blocks = bound.blocks
    one.binding = binding
    one.kind = kind
    one.owner = owner
    # The network's, until its last flow is counted, and the owner's, until it was told of all it waits for:
    # either may be the last.
    one.holds = 2
    opened = state.opened[meta[OPENED_N]]
    opened.handle = handle
    opened.iteration = iteration
    meta[OPENED_N] += 1
    return int(handle)


@internal
def start_flow(state: State, handle: int, index: int, start: int, cause: int) -> None:
    """Start a given flow of a group: a rank's arrival, or a message."""
    meta = state.meta
    one = state.starts[meta[STARTS_N]]
    one.handle = handle
    one.index = index
    one.start = start
    one.cause = cause
    meta[STARTS_N] += 1


@internal
def let_go(state: State, handle: int) -> None:
    """The network reported every flow of a group, or the owner was told of all it waits for."""
    one = state.handles[handle]
    one.holds -= 1
    if one.holds == 0:
        one.next = state.meta[HANDLE_FREE]
        state.meta[HANDLE_FREE] = handle
