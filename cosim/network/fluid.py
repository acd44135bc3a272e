"""The state of ``fair_share``: flows that have started and not drained, on links that share by max-min."""

from __future__ import annotations

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.balancing.state import Balance
from cosim.network.calendar import Records
from cosim.network.dense import Dense
from cosim.network.flows import I32, I64
from cosim.network.jit import inlined

NONE = -1
NO_CLASS = 2**31 - 1
"""After all classes of priority."""

COUNTS = np.dtype(
    [
        ("num_dirty", "i8"),
        ("num_drains", "i8"),
        ("visit", "i8"),
        ("begin", "i8"),
        ("free_flow", "i8"),
        ("flows_used", "i8"),
        ("free_member", "i8"),
        ("members_used", "i8"),
        ("num_members", "i8"),
        ("num_found", "i8"),
        ("num_rising", "i8"),
        ("num_ahead", "i8"),
        ("num_looked", "i8"),
        ("num_changed", "i8"),
        ("change", "i8"),
        ("num_changes", "i8"),
        ("more_changes", "i8"),
        ("in_vain", "i8"),
        ("progress", "i8"),
        ("num_kept", "i8"),
        ("dense", "i8"),
        ("num_columns", "i8"),
        ("again", "i8"),
        ("in_a_row", "i8"),
        ("lasted", "i8"),
        ("put_off", "i8"),
        ("num_uses", "i8"),
        ("has_put", "i8"),
        ("sharing", "i8"),
        ("first_level", "f8"),
        ("first_priority", "i8"),
    ]
)
"""``begin``: the flow that transfers next in its channel, plus one; 0: none. Flows and memberships are taken
from free lists, then from the untouched rest that starts at ``_used``. Of the filling number ``visit``: how
many flows are ``rising``, and moments ``ahead``. Of a sharing, whose first filling is number ``sharing``:
flows ``found``, and links ``kept`` in mind, as what they carry may have changed. ``num_looked``: flows, or
bundles of them, found in all fillings so far. Of the table of changes ``num_changes`` are here, the next is
number ``change``; ``more_changes``: there are others. ``in_vain``: changes since the events numbered
``progress``, the last. Whether links are filled over columns (``dense``), which know of ``num_columns``
flows; how often a filling was done ``again``; for how many fillings ``in_a_row`` that is worth it (below 0:
it is ``put_off`` for so many), and for how many it ``lasted``. ``num_uses`` are listed; ``has_put``: bins
hold some already. The first moment at which a flow that has left since the last filling was frozen:
``first_level`` of ``first_priority`` (:data:`NO_CLASS`: none has)."""
FLOW = np.dtype(
    [
        ("visit", "i8"),
        ("level", "f8"),
        ("fresh", "f8"),
        ("weight", "i8"),
        ("rate", "f8"),
        ("touched", "i8"),
        ("priority", "i4"),
        ("member", "i4"),
        ("by", "i4"),
        ("chain", "i4"),
        ("remaining", "f8"),
        ("origin", "i8"),
        ("handle", "i4"),
        ("rep", "i4"),
        ("row", "i4"),
        ("channel", "i4"),
        ("next", "i4"),
        ("pad", "i4"),
    ]
)
"""A flow that has started and not drained. ``remaining`` bytes at ``touched``, at ``rate`` (bytes per ps)
since; ``level`` at which it was frozen (below 0: never yet) ``by`` a link, ``fresh`` in this filling (below
0: it rises); ``chain``: the next flow found that this link froze; ``member``: its first membership; ``next``
in its channel."""
MEMBER = np.dtype(
    [
        ("weight", "i8"),
        ("flow", "i4"),
        ("link", "i4"),
        ("before", "i4"),
        ("after", "i4"),
        ("sibling", "i4"),
        ("pad", "i4"),
    ]
)
"""A flow on a link: ``before`` and ``after`` among the link's flows, ``sibling`` on the flow's next link.
``weight`` is the flow's, or the part of it that goes this way. Between fillings, a link's flows are in the
order in which they were frozen.
"""
LINK = np.dtype(
    [
        ("visit", "i8"),
        ("full_level", "f8"),
        ("load", "i8"),
        ("capacity", "f8"),
        ("level", "f8"),
        ("gone", "i8"),
        ("full_priority", "i4"),
        ("rising", "i4"),
        ("dirty", "i2"),
        ("wary", "i2"),
        ("kept", "i2"),
        ("room", "i2"),
        ("left", "f8"),
        ("weight", "i8"),
        ("used", "f8"),
        ("since", "i8"),
        ("latency", "i8"),
        ("chained", "i8"),
        ("first", "i4"),
        ("last", "i4"),
        ("chain", "i4"),
        ("priority", "i4"),
    ]
)
"""``capacity`` in bytes per ps, of which ``used`` since ``since``; when it was first full: at ``full_level``
of ``full_priority`` (:data:`NO_CLASS`: it was not). In a filling: flows that are ``rising``, the lowest
class among them (``priority``) and what that weighs (``weight``); what is ``left`` of it but for ``gone``,
the weight frozen at ``level``, the last moment of its class so far; and the ``chain`` of flows found that it
froze before (if it is ``chained`` in that filling). ``load``, ``wary``, ``kept``, ``room``: see
:mod:`cosim.network.slack`; ``dirty``: :data:`LEFT`, :data:`FITS`, :data:`CAME` or 0."""
LEFT, FITS, CAME = 1, 2, 3
"""What happened to a link since the last filling: flows only left it; or came, too, of which each seems to
fit with room to spare, at the level at which another link will hold it back; or came, and that is not known.
"""
CLASS = np.dtype([("weight", "i8"), ("priority", "i8")])
"""What a group's flows weigh, in billionths, and their class."""
MOMENT = np.dtype([("level", "f8"), ("priority", "i8"), ("what", "i8")])
"""``what``: a link that froze flows there before, or -1 - a link that is full there at the earliest."""

USE = np.dtype([("start", "i8"), ("end", "i8"), ("fraction", "f8"), ("link", "i8")])
"""What part of a link was in use, from when to when."""

BPS_PER_BYTE_PS = 8e12
"""Bits per second of a byte in a picosecond."""


class Fluid(Arrays):
    """The model's state; ``counts`` is one record. ``channel_of`` runs beside ``path_ptr``, and so does
    ``path_now``: where the links of a path are now; ``classes`` beside the groups. ``ahead`` is a heap of
    moments.
    """

    balance: Balance
    dense: Dense
    counts: Records
    flows: Records
    members: Records
    links: Records
    drains: Records
    ahead: Records
    channels: Records
    classes: Records
    changes: Records
    uses: Records
    path_now: I64
    channel_of: I32
    dirty: I32
    found: I32
    kept: I32
    instant: I32
    spare: I32
    other: I32


@inlined
def mark(fluid: Fluid, link: int, what: int) -> None:
    """A flow :data:`CAME` to this link, where perhaps it :data:`FITS`, or :data:`LEFT` it."""
    counts = fluid.counts[0]
    if fluid.links[link].dirty == 0:
        fluid.dirty[counts.num_dirty] = link
        counts.num_dirty += 1
    if fluid.links[link].dirty < what:
        fluid.links[link].dirty = what


@inlined
def only_left(fluid: Fluid) -> bool:
    """Whether flows only left links since the last filling: none came, and no link changed."""
    for d in range(fluid.counts[0].num_dirty):  # noqa: SIM110 - compiled
        if fluid.links[fluid.dirty[d]].dirty != LEFT:
            return False
    return True


@inlined
def forget_who_left(fluid: Fluid) -> None:
    """What flows that have left had is in the filling now."""
    fluid.counts[0].first_priority = NO_CLASS
    fluid.counts[0].first_level = np.inf
