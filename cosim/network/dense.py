"""The state of filling all links from zero, over lists that lie in one piece.

:mod:`cosim.network.filling` looks at what differs from the filling before, by lists of flows that are linked.
Where nearly all flows differ each time, as in an all-to-all on a star, whose every link is full, that spares
little, and each flow that it looks at costs some twenty cache lines. So there, and while flows only leave,
all links are filled from zero each time, in the order in which they were full before: the same rates, bit by
bit, for a fraction of the time. The columns here are made of the network's records when that begins
(:mod:`cosim.network.dense_turns`), and given up when a flow comes or a link changes.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cosim.network.arrays import Arrays
from cosim.network.calendar import Records
from cosim.network.flows import F64, I32, I64

GONE = np.inf
"""``fresh`` of a flow that has left, or of a row that none has."""
RISING = -1.0
"""``fresh`` of a flow that is not frozen yet."""

PATH = np.dtype([("weight", "i8"), ("at", "i4"), ("count", "i4")])
"""Of a flow: what it weighs, and its links: ``count`` of ``on``, from ``at``."""
HELD = np.dtype([("weight", "i8"), ("at", "i4"), ("count", "i4"), ("num", "i4"), ("pad", "i4")])
"""Of a link: its flows, ``count`` of ``flows`` from ``at``, of which ``num`` have not left, and what those
weigh."""


class Dense(Arrays):
    """Beside the network's flows: ``fresh``, the level at which a filling freezes each, ``level``, that in
    force, when it drains (``due``, ps), and ``paths``. Beside its links: ``held``. ``order``: links in the
    order in which the last filling had them full.
    """

    fresh: F64
    level: F64
    due: I64
    paths: Records
    held: Records
    on: I32
    flows: I32
    order: I32


@cache
def no_rows() -> Dense:
    """Columns of nothing: as long as they are not needed, and so those of every network."""
    return rows_for(0, 0, 0)


def rows_for(num_flows: int, num_links: int, num_members: int) -> Dense:
    """Columns for so many flows, links and memberships."""
    return Dense(
        fresh=np.zeros(num_flows),
        level=np.zeros(num_flows),
        due=np.zeros(num_flows, np.int64),
        paths=np.zeros(num_flows, PATH),
        held=np.zeros(num_links, HELD),
        on=np.zeros(num_members, np.int32),
        flows=np.zeros(num_members, np.int32),
        order=np.zeros(num_links, np.int32),
    )


def copied(dense: Dense) -> Dense:
    """The same in arrays of its own."""
    return Dense(**{name: getattr(dense, name).copy() for name in Dense._names})
