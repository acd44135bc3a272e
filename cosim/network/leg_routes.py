"""Messages under way whose routes change: which of them go another way, and from where on."""

from __future__ import annotations

from cosim.network.calendar import push
from cosim.network.core import Core
from cosim.network.jit import compiled, internal
from cosim.network.legs import NONE, Legs, begin, count, left_at, set_rate


@internal
def _is_avoided_ahead(core: Core, legs: Legs, m: int) -> bool:
    """Whether routing knows a link to be dead that a message still has to pass."""
    one = legs.messages[m]
    for k in range(core.path_ptr[one.path] + one.hop, core.path_ptr[one.path + 1]):
        if legs.lanes[core.path_link[k]].avoided != 0:
            return True
    return False


@internal
def follow(core: Core, legs: Legs, m: int) -> None:
    """Have a message that is whole at its hop go the way that its row goes now, from the last node that both
    ways share; where it is past that, only if a link ahead of it is known to be dead.
    """
    one = legs.messages[m]
    path = legs.path_now[core.store.groups[one.handle].path + one.row]
    if path == one.path:
        return
    old = core.path_ptr[one.path]
    new = core.path_ptr[path]
    hops = min(int(one.hop), int(core.path_ptr[path + 1] - new))
    shared = 0
    while shared < hops and core.path_link[old + shared] == core.path_link[new + shared]:
        shared += 1
    if shared < one.hop and not _is_avoided_ahead(core, legs, m):
        return
    one.path = path
    one.hop = shared


@internal
def _leave(core: Core, legs: Legs, link: int, now: int) -> None:
    """Have those at a link that go another way now leave it; the others stay, in their order."""
    lane = legs.lanes[link]
    first = lane.head
    m = first
    lane.head = NONE
    while m != NONE:
        one = legs.messages[m]
        after = one.next
        path = one.path
        hop = one.hop
        # What is on the wire of a link that works goes on there, and looks around at the next node.
        if one.sending == 0 or one.rate == 0.0:
            follow(core, legs, m)
        if core.path_link[core.path_ptr[one.path] + one.hop] == link:
            if lane.head == NONE:
                lane.head = m
            else:
                legs.messages[lane.tail].next = m
            lane.tail = m
            one.next = NONE
        else:
            if one.sending != 0:
                # Its new way is known, but what was sent counts on the old one.
                path, one.path = one.path, path
                hop, one.hop = one.hop, hop
                count(core, legs, m, left_at(legs, m, now), now)
                one.path = path
                one.hop = hop
                one.sending = 0
            push(core.calendar, now, now, one.origin, one.handle, one.rep, one.row, m + 1)
        m = after
    if lane.head != NONE and lane.head != first:
        begin(core, legs, lane.head, now)


@compiled
def move(core: Core, legs: Legs) -> None:
    """Routes have changed: those that go another way now do; the calendar has room for all of them."""
    now = core.state[0].instant
    if legs.counts[0].in_turn != 0:
        for link in range(len(legs.lanes)):
            _leave(core, legs, link, now)
        return
    for m in range(legs.counts[0].used):
        one = legs.messages[m]
        if one.sending == 0:
            continue
        path = legs.path_now[core.store.groups[one.handle].path + one.row]
        if path != one.path:
            count(core, legs, m, left_at(legs, m, now), now)
            one.path = path
            set_rate(core, legs, m, now)
