"""The state of filling links that may be full from zero, over lists that lie in one piece.

:mod:`cosim.network.filling` looks at what differs from the filling before, by lists of flows that are linked.
Where many flows differ each time, as in an all-to-all, that spares little, and each flow that it looks at
costs some twenty cache lines. So there, and while flows only leave, links are filled in the order in which
they were full before, over columns: the same rates, bit by bit, for a fraction of the time.

Columns are of *bundles*: flows that cross the same of the links that may be full, weigh the same and have had
the same rate since the same instant. As long as flows only leave, those of a bundle have one level, and the
one that has least left drains next: it *leads*. What is left of the others only loses what they have sent, by
one subtraction each. Links with room (:mod:`cosim.network.slack`) are *aside*: they are in no bundle's path,
and only count what their flows take.

The columns are made of the network's records when that begins (:mod:`cosim.network.dense_columns`), and given
up when a flow comes or a link changes (:mod:`cosim.network.dense_turns`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.network.arrays import Arrays
from cosim.network.calendar import Records
from cosim.network.flows import F64, I32, I64

GONE = np.inf
"""``fresh``, ``level`` and ``rate`` of a bundle all of whose flows have left."""
RISING = -1.0
"""``fresh`` of a bundle that is not frozen yet."""
MOST_SAVED = 16
"""Places of the order at which a filling saves where it is, at most."""

STATE = np.dtype(
    [
        ("priority", "i8"),
        ("num_bundles", "i8"),
        ("num_left", "i8"),
        ("num_flows", "i8"),
        ("num_links", "i8"),
        ("num_aside", "i8"),
        ("num_frozen", "i8"),
        ("num_same", "i8"),
        ("num_saved", "i8"),
        ("step", "i8"),
        ("rows", "i8"),
        ("mask", "i8"),
        ("num_several", "i8"),
    ]
)
"""The flows' class; bundles, of which some have flows ``left``; flows in them; links that may be full, and
those aside; of the last filling: bundles that it froze, of which so many are the ``same`` as before, and
places saved, one for each ``step`` links. ``rows``: links of all bundles' paths; the last place of ``hashed``
that is in use; how many bundles had several flows.
"""
BUNDLE = np.dtype([("weight", "f8"), ("at", "i4"), ("count", "i4"), ("next", "i4"), ("end", "i4")])
"""What its flows weigh together; its links: ``count`` of ``on``, from ``at``; its flows: places of ``flow``
from ``next``, which leads, up to ``end``."""
HELD = np.dtype([("weight", "f8"), ("number", "i4"), ("at", "i4"), ("count", "i4"), ("differs", "i4")])
"""A link that may be full: its number in the network, its bundles, ``count`` of ``holds`` from ``at``, what
those weigh, and whether what it carries may be another part of it since the last filling."""
HOLD = np.dtype([("bundle", "i4"), ("other", "i4")])
"""A bundle on a link, and the only other link of its path that may be full, or :data:`SEVERAL`: where there
is one, as on a switch, nothing else need be read to find it. :data:`~cosim.network.fluid.NONE`: none is.
"""
SEVERAL = -2
LINK_NOW = np.dtype([(name, "f8") for name in ("left", "level", "gone", "weight", "capacity")])
"""A link in a filling: see :data:`cosim.network.fluid.LINK`."""
WORDS, WEIGHT = 5, 3
"""Of such a record, and the one that has the weight."""
HEAVIEST = 2**53
"""Sums of weights, which are whole, are exact as floats up to this."""
BLOCK = 256
"""Bundles whose rates are worked out together: their ten columns fit into the nearest cache."""


class Dense(Arrays):
    """``state`` is one record.

    By bundle: ``fresh``, the level at which a filling freezes it, ``level``, that in force, its flows'
    ``rate`` (bytes per ps) since ``touched``, and the one to come (``coming``), what a flow weighs
    (``weight``), how many flows there are (``num``), the rate of a flow that meets no other (``alone``, else
    0); ``remaining`` bytes of the one that leads, and when it drains (``due``, ps). By block of bundles: when
    the next one drains (``soonest``; 0: to be found out).

    By place: ``flow``, a flow's number, and ``left``, its bytes. ``column``: the bundle, by a flow's number.
    Links aside of the flow at a place: of ``off``, from ``off_at`` of the place up to that of the next one.

    By link that may be full: ``held``, ``now``; ``order``, in which the last filling had them full, at
    ``reached`` or below; ``frozen``: bundles in the order in which it froze them. ``saved`` holds
    ``now``, as ``words``, for each place saved, and ``saved_frozen`` how many bundles were frozen by then.

    ``local``: by a link's number, that among those that may be full; ``aside``: numbers of the others.
    ``hashed``: for making the columns.
    """

    state: Records
    fresh: F64
    level: F64
    rate: F64
    coming: F64
    weight: F64
    alone: F64
    remaining: F64
    touched: I64
    due: I64
    num: I64
    soonest: I64
    bundles: Records
    flow: I32
    left: F64
    column: I32
    off: I32
    off_at: I32
    held: Records
    now: Records
    on: I32
    holds: Records
    order: I32
    reached: F64
    frozen: I32
    words: F64
    saved: F64
    saved_frozen: I32
    local: I32
    aside: I32
    hashed: I32


@cache
def no_rows() -> Dense:
    """Columns of nothing: as long as they are not needed, and so those of every network."""
    return rows_for(0, 0, 0)


def rows_for(num_flows: int, num_links: int, num_members: int) -> Dense:
    """Columns for so many flows, links and memberships."""
    by_flow = {
        name: np.zeros(num_flows, kind)
        for kind, names in {
            np.float64: ("fresh", "level", "rate", "coming", "weight", "alone", "remaining", "left"),
            np.int64: ("touched", "due", "num"),
            np.int32: ("flow", "column", "frozen"),
        }.items()
        for name in names
    }
    now = np.zeros(num_links, LINK_NOW)
    return Dense(
        **by_flow,
        state=np.zeros(1, STATE),
        bundles=np.zeros(num_flows, BUNDLE),
        off=np.zeros(num_members, np.int32),
        off_at=np.zeros(num_flows + 1, np.int32),
        held=np.zeros(num_links, HELD),
        now=now,
        words=now.view(np.float64),
        on=np.zeros(num_members, np.int32),
        holds=np.zeros(num_members, HOLD),
        order=np.zeros(num_links, np.int32),
        reached=np.zeros(num_links),
        saved=np.zeros(MOST_SAVED * num_links * WORDS),
        saved_frozen=np.zeros(MOST_SAVED, np.int32),
        local=np.zeros(num_links, np.int32),
        aside=np.zeros(num_links, np.int32),
        soonest=np.zeros(num_flows // BLOCK + 1, np.int64),
        hashed=np.zeros(4 << num_flows.bit_length(), np.int32),
    )


def copied(dense: Dense) -> Dense:
    """The same in arrays of its own."""
    made = {name: getattr(dense, name).copy() for name in Dense._names}
    return Dense(**made | {"words": made["now"].view(np.float64)})


def rates_now(fluid: Mapping[str, NDArray[Any]], dense: Dense, flows: I32) -> F64:
    """Rates of flows in force, bytes per ps: those in columns have them there."""
    counts, rates = fluid["counts"][0], fluid["flows"]["rate"][flows]
    if counts["dense"]:
        column = np.full(len(fluid["flows"]), -1)
        known = int(counts["num_columns"])
        column[:known] = dense.column[:known]
        inside = column[flows] != -1
        rates[inside] = dense.rate[column[flows[inside]]]
    return rates
