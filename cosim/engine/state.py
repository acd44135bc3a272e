"""The engine's state in columns: what the compiled loop of :mod:`~cosim.engine.loop` works on.

Programs, ranks, collectives and messages are rows of structured arrays; nothing here is a Python object for
each rank, operation, collective or message. Tables that describe (operations, plans, bindings) are written in
Python, those that run (cells, rendezvous, handles) in compiled code. Arrays only grow in Python, between two
calls of the loop, which stops where one might be too short and goes on where it left off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cosim.network.arrays import Arrays
from cosim.network.calendar import Records
from cosim.network.core import Reported
from cosim.network.flows import I32, I64

U64 = NDArray[np.uint64]
NONE = -1

COMPUTE, COLLECTIVE, SEND, RECV, ACCESS, REMOTE = range(6)
"""Kinds of operations, as the loop tells them apart. REMOTE: an access that is a message."""
OF_MESSAGE, OF_REQUEST, OF_COLLECTIVE, OF_ACCESS = range(4)
"""Whose a flow group is; from OF_COLLECTIVE on the network starts flows that wait for others."""

(
    NOW,
    GRANTED,
    ROUND,
    AT_RANK,
    AT_LANE,
    AT_OP,
    WHICH,
    PLACE,
    AGENDA_N,
    ENDING_N,
    REACTIONS_N,
    TOUCHED_N,
    BEGIN_N,
    BEGIN_AT,
    PUMP_N,
    PUMP_AT,
    ENTER_N,
    ENTER_AT,
    DISPATCH_N,
    DISPATCH_AT,
    HANDLE_FREE,
    HANDLE_TOP,
    RENDEZVOUS_FREE,
    RENDEZVOUS_TOP,
    MESSAGE_FREE,
    MESSAGE_TOP,
    WORDS_TOP,
    OPENED_N,
    STARTS_N,
    LOG_N,
    COLLECTIVE_LOG_N,
    SERIAL,
    BURST,
    MOST_WORDS,
    OPS_DONE,
    OPENED_AT,
    STARTS_AT,
    NUM_ADVANCES,
    START_AT,
    ARRIVALS_N,
    NUM_SCALARS,
) = range(41)
"""Scalars in ``State.meta``. AT_RANK, AT_LANE, AT_OP: what is being started, NONE: nothing. WHICH: the
rendezvous or message that a stop is about, PLACE: the position in it. BURST: the most entries that one turn
of the loop adds to a list; MOST_WORDS: the most that a rendezvous needs. START_AT: when the rank
that is next to begin an iteration may, of a job that is directed; NONE: to be asked. Lists that are worked
off have an
end (N) and a place (AT)."""

OP = np.dtype(
    [
        ("duration", "i8"),
        ("size", "i8"),
        ("kind", "i4"),
        ("lane", "i4"),
        ("waits", "i4"),
        ("first", "i4"),
        ("last", "i4"),
        ("what", "i4"),
        ("ref", "i4"),
        ("occurrence", "i4"),
        ("slot", "i4"),
        ("number", "i4"),
        ("early", "i4"),
        ("pad", "i4"),
    ]
)
"""An operation of a program, once for each slot (see :mod:`~cosim.engine.slots`), of which it is ``number``;
such a row is what is called an operation here and below. Successors [first, last); it ``waits`` for so many,
of which ``early`` lie before the first iteration when that is new. ``lane``: its stream, the last of a
program has no limit. A collective's ``what`` numbers (collective, size, root), ``ref`` its group among the
program's, ``occurrence`` the collectives there before it; a SEND's or RECV's ``ref`` its port among the
program's."""
PROGRAM = np.dtype(
    [("op0", "i4"), ("ops", "i4"), ("lanes", "i4"), ("lane0", "i4"), ("roots", "i4"), ("root0", "i4")]
)
"""Its operations from ``op0`` on, ``ops`` in each slot; ``lane_base[lane0 + lane]``: where a lane's heap is
in a rank's cells."""
JOB = np.dtype(
    [
        ("rank0", "i8"),
        ("end0", "i8"),
        ("trait0", "i8"),
        ("ranks", "i4"),
        ("iterations", "i4"),
        ("rendezvous", "i4"),
        ("open", "i4"),
        ("directed", "i4"),
        ("pad", "i4"),
    ]
)
"""Ranks from ``rank0`` on, each with up to ``open`` iterations under way; ends of an iteration from
``iteration_ends[end0 + iteration * ranks]`` on. ``traits[trait0 + iteration]``: what an in-process network
calls its weight, priority and coflow. ``directed``: somebody is asked before each iteration of a rank, and
told after its last."""
RANK = np.dtype(
    [
        ("cell0", "i8"),
        ("pace0", "i8"),
        ("finish", "i8"),
        ("cause", "i8"),
        ("cause_round", "i8"),
        ("program", "i4"),
        ("job", "i4"),
        ("number", "i4"),
        ("iteration", "i4"),
        ("paced", "i4"),
        ("oldest", "i4"),
        ("origin", "i4"),
        ("slot0", "i4"),
        ("lane0", "i4"),
        ("ref0", "i4"),
        ("port0", "i4"),
        ("touched", "i4"),
        ("device", "i4"),
        ("pad", "i4"),
    ]
)
"""``cell0``: its operations' cells; ``pace0``: its durations where they are its own, for iteration ``paced``;
``oldest``, ``iteration``: the first and last iteration that has begun and not ended, in the slots from
``slot0`` on, the oldest one's operations from ``origin`` on; ``cause``: when that became certain which lets
operations start in round ``cause_round``; ``device``: the memory that serves it, NONE: no access waits for
another."""
SLOT = np.dtype([("iteration", "i4"), ("left", "i4")])
"""An iteration of a rank, and how many of its operations are to end."""
CELL = np.dtype([("started", "i8"), ("waits", "i4"), ("ready", "i4")])
"""An operation on a rank: when it started (NONE: not under way), how many it waits for. ``ready`` is not the
operation's: the cells of a lane hold the heap of its ready operations."""
LANE = np.dtype([("busy", "i4"), ("count", "i4")])
"""The operation that holds a rank's stream, or NONE; how many are ready for it."""
MEMBER = np.dtype([("comm", "i4"), ("position", "i4")])
"""A rank's place in a group that its program names; NONE: not looked up."""
PORT = np.dtype([("channel", "i4"), ("binding", "i4"), ("peer", "i4"), ("pad", "i4")])
"""One end of messages of a rank: the channel where they meet; what it sends (a RECV: its request), or the
flows of an access to a memory node, NONE: not looked up."""
COMM = np.dtype(
    [("rank0", "i8"), ("group", "i4"), ("op0", "i4"), ("ops", "i4"), ("open", "i4"), ("size", "i4")]
)
"""A group as its members name it. Ranks by position from ``rank0`` on; the numbers of its collectives in its
lowest rank's program from ``op0`` on; ``open``: its first rendezvous under way."""
GROUP = np.dtype([("turn", "i4"), ("iteration", "i4")])
"""Where the plan of a group's operation before stopped (see :class:`~cosim.pattern.plan.Turn`)."""
PLAN = np.dtype(
    [
        ("free", "i8"),
        ("words", "i8"),
        ("ranks", "i4"),
        ("chunks", "i4"),
        ("phases", "i4"),
        ("active", "i4"),
        ("queues", "i4"),
        ("part0", "i4"),
        ("instances", "i4"),
        ("turn", "i4"),
    ]
)
"""A plan on a group: parts (chunk by chunk, phase by phase) from ``part0`` on; ``free``: words given back."""
PART = np.dtype([("where0", "i8"), ("sub0", "i8"), ("queue", "i4"), ("instance0", "i4")])
"""A phase of a chunk: by position its sub-group and place, sub-groups from ``sub0`` on."""
WHERE = np.dtype([("sub", "i4"), ("place", "i4")])
SUB = np.dtype([("position0", "i8"), ("binding", "i4"), ("lowest", "i4"), ("size", "i4"), ("pad", "i4")])
"""A sub-group: its positions from ``position0`` on, its lowest rank, and the flows that carry it."""
BINDING = np.dtype(
    [
        ("flows", "i8"),
        ("react_from", "i8"),
        ("info", "i8"),
        ("block", "i4"),
        ("blocks", "i4"),
        ("table", "i4"),
        ("path", "i8"),
    ]
)
"""A flow table on endpoints: flows from ``react_from`` on are what the engine waits for; ``info``, ``block``:
its rows in the flow log; ``table``, ``path``: what an in-process network calls it."""
RENDEZVOUS = np.dtype(
    [
        ("words", "i8"),
        ("start", "i8"),
        ("ready", "i8"),
        ("serial", "i8"),
        ("comm", "i4"),
        ("occurrence", "i4"),
        ("iteration", "i4"),
        ("plan", "i4"),
        ("number", "i4"),
        ("what", "i4"),
        ("rank", "i4"),
        ("op", "i4"),
        ("arrived", "i4"),
        ("left", "i4"),
        ("next", "i4"),
        ("pad", "i4"),
    ]
)
"""A collective of a group under way; ``rank`` and ``op`` of who came first, ``number`` in flow keys. Its
words: see :mod:`~cosim.engine.chunks`."""
CHANNEL = np.dtype([("head", "i4"), ("tail", "i4")])
"""Messages of one (job, sender, receiver, tag) of which one end is posted; all lack the same one."""
MESSAGE = np.dtype(
    [
        ("send_rank", "i4"),
        ("send_op", "i4"),
        ("send_iteration", "i4"),
        ("recv_rank", "i4"),
        ("recv_op", "i4"),
        ("recv_iteration", "i4"),
        ("requested", "i4"),
        ("arrived", "i4"),
        ("next", "i4"),
        ("port", "i4"),
    ]
)
"""A SEND and its RECV, as far as they are posted; ranks NONE: not yet. ``port``: the receiver's."""
HANDLE = np.dtype(
    [
        ("key_high", "i8"),
        ("key_low", "i8"),
        ("left", "i8"),
        ("react_from", "i8"),
        ("info", "i8"),
        ("block", "i4"),
        ("blocks", "i4"),
        ("binding", "i4"),
        ("kind", "i4"),
        ("owner", "i4"),
        ("part", "i4"),
        ("sub", "i4"),
        ("exits", "i4"),
        ("holds", "i4"),
        ("next", "i4"),
    ]
)
"""A flow group in flight: ``left`` flows to complete, ``exits`` to tell the ``owner`` of. ``holds``: the
network and the owner, until they let go."""
EVENT = np.dtype([("time", "i8"), ("high", "i8"), ("low", "i8"), ("cause", "i8"), ("a", "i4"), ("b", "i4")])
"""An entry of a heap, by (time, high, low)."""
TASK = np.dtype([("cause", "i8"), ("owner", "i4"), ("part", "i4"), ("position", "i4"), ("pad", "i4")])
"""Something to do at once: see the lists ``pumps``, ``enters`` and ``dispatches`` of :class:`State`."""
OPENED = np.dtype([("handle", "i4"), ("iteration", "i4")])
START = np.dtype([("index", "i8"), ("start", "i8"), ("cause", "i8"), ("handle", "i4"), ("pad", "i4")])
LOG = np.dtype(
    [("start", "i8"), ("end", "i8"), ("rank", "i4"), ("op", "i4"), ("iteration", "i4"), ("pad", "i4")]
)
"""An operation that ended."""
COLLECTIVE_LOG = np.dtype(
    [
        ("start", "i8"),
        ("ready", "i8"),
        ("end", "i8"),
        ("comm", "i4"),
        ("iteration", "i4"),
        ("number", "i4"),
        ("plan", "i4"),
        ("rank", "i4"),
        ("op", "i4"),
    ]
)
"""A collective that ended; ``rank`` and ``op`` of who came first."""
ARRIVAL = np.dtype([("time", "i8"), ("row", "i8")])
"""A bound row, of ``info``, that arrived."""
BLOCK = np.dtype([("base", "i8"), ("row", "i8"), ("rows", "i8")])
"""A flow table's block: first flow, first row, rows in one repetition."""


class State(Arrays):
    """All of it. Heaps: ``agenda`` (operations that end, and when that is), ``ending`` (those that somebody
    has end at this instant: few, where an agenda may be long), ``reactions`` (completions that the engine
    waits for), ``touched`` (ranks that may start something, by round). Lists of what is to be done at once:
    ``pumps`` (queues of a rank to fill), ``enters`` (parts of a collective that a rank begins),
    ``dispatches`` (messages to send). ``opened`` and ``starts`` are for the network; ``log`` and
    ``collective_log`` are records. ``free_at``: when each memory device will have served all who came.
    """

    meta: I64
    ops: Records
    successors: I32
    programs: Records
    roots: I32
    lane_base: I32
    jobs: Records
    ranks: Records
    slots: Records
    cells: Records
    lanes: Records
    pace: I64
    iteration_ends: I64
    traits: I32
    free_at: I64
    members: Records
    ports: Records
    comms: Records
    comm_ranks: I32
    numbers: I32
    groups: Records
    plan_keys: I64
    plan_values: I32
    plans: Records
    parts: Records
    where: Records
    subs: Records
    positions: I32
    bindings: Records
    rendezvous: Records
    words: I32
    channels: Records
    messages: Records
    handles: Records
    agenda: Records
    ending: Records
    reactions: Records
    touched: Records
    begins: I32
    pumps: Records
    enters: Records
    dispatches: Records
    opened: Records
    starts: Records
    log: Records
    collective_log: Records
    digest: U64
    op_digest: U64
    counts: I64
    blocks: Records
    info: I64
    fct: I64
    arrivals: Records
    reported: Reported
