"""The state of balancing, in columns, and what a balancer is shown."""

from __future__ import annotations

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.calendar import Records
from cosim.network.flows import F64, I32, I64

MAX_STATE = 8
WEIGHT_UNIT = 10**9
"""Connections on a link are counted in billionths, so that sums of parts are exact in any order."""
LEAST_AGAIN_PS = 1000.0
"""A balancer that asks again sooner would keep the clock from going on."""
NEAR_ONE = 1e-6
"""Parts add up to 1 within this."""

COUNTS = np.dtype(
    [
        ("on", "i8"),
        ("splits", "i8"),
        ("looks", "i8"),
        ("one_by_one", "i8"),
        ("kernel", "i8"),
        ("choose", "i8"),
        ("end", "i8"),
        ("num_choosing", "i8"),
        ("next", "i8"),
        ("num_rows", "i8"),
        ("asked", "i8"),
        ("taken", "i8"),
        ("wrong", "i8"),
        ("num_states", "i8"),
        ("least_pause", "i8"),
        ("num_choices", "i8"),
        ("num_changes", "i8"),
    ]
)
"""``on``: there is a balancer, which ``splits`` (gives parts) and ``looks``, and is asked ``one_by_one``;
where its compiled ``kernel`` is, and the network's functions that have a batch choose and that end a message.
Who is ``choosing`` at this instant, of whom the batch under way begins with the ``next`` and has so many
rows; whether the balancer was ``asked``, how many answers are ``taken``, and the row of one that can't be
followed (``wrong``). Who pauses for longer than ``least_pause`` in a message chooses again. In all so far:
choices, and those that changed a path.
"""
ROUTE = np.dtype(
    [
        ("idle_since", "i8"),
        ("pause", "i8"),
        ("due", "i8"),
        ("arrives", "i8"),
        ("latency", "i8"),
        ("sent", "i8"),
        ("part", "i8"),
        ("salt", "i8"),
        ("pair", "i4"),
        ("path", "i4"),
        ("choosing", "i4"),
        ("known", "i4"),
        ("job", "i4"),
        ("fresh", "i4"),
    ]
)
"""What a connection has chosen: ``path`` (of its pair; -1: several, or none yet), parts from ``part`` on. It
is asked again at ``due``, or because of a ``pause``, ps; ``latency``: of its slowest path. ``sent``: bytes of
the message that its links have counted; ``arrives``: when all that went by paths it has left is there.
"""
PAIR = np.dtype([("first", "i8"), ("count", "i8")])
PATH = np.dtype(
    [
        ("begin", "i8"),
        ("end", "i8"),
        ("own", "i8"),
        ("own_end", "i8"),
        ("latency", "i8"),
        ("rate", "f8"),
        ("minimal", "f8"),
        ("users", "i8"),
    ]
)
"""Its links lie from ``begin`` to ``end``; those from ``own`` to ``own_end`` are not links of every path of
the pair. ``users``: choices that took it, for the page.
"""
CHOICE = np.dtype(
    [
        ("conn", "i8"),
        ("first", "f8"),
        ("fresh", "f8"),
        ("idle", "f8"),
        ("size", "f8"),
        ("left", "f8"),
        ("rate", "f8"),
        ("line", "f8"),
        ("rtt", "f8"),
        ("base_rtt", "f8"),
        ("marked", "f8"),
        ("chance", "f8"),
        ("hash", "f8"),
        ("job", "f8"),
        ("priority", "f8"),
        ("paths", "f8"),
        ("path", "f8"),
        ("again", "f8"),
    ]
)
"""What a balancer is shown of a connection, and where it answers; see
:mod:`cosim.network.balancing.contract`.
"""
SEEN = np.dtype(
    [
        ("part", "f8"),
        ("alive", "f8"),
        ("minimal", "f8"),
        ("hops", "f8"),
        ("rate", "f8"),
        ("latency", "f8"),
        ("load", "f8"),
        ("flows", "f8"),
        ("queue", "f8"),
        ("marked", "f8"),
    ]
)
"""And of each of its paths."""


class Balance(Arrays):
    """``routes`` and ``state`` run beside a network's connections, ``crowd`` (connections, in billionths) and
    ``dead`` beside its links; ``parts`` are packed, one for each path of each connection.
    """

    counts: Records
    routes: Records
    pairs: Records
    paths: Records
    links: I32
    parts: F64
    state: F64
    rows: Records
    seen: Records
    choosing: I32
    crowd: I64
    dead: I32
    spot: I32
    parameters: F64
