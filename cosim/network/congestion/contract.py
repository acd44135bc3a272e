"""Congestion controls: what a plug-in is.

A control is a class with ``update(c)``. It is called with the connections whose round trip has just ended, as
columns, one row each, and says what each may send next: ``c.window`` (bytes) or ``c.rate`` (bits/s), as the
class's
``gives`` has it. Its own fields are its parameters: a scenario sets them, with their units. ``state`` names
columns of its own, kept for each connection, with their first values::

    class Halve(Control):
        "Additive increase, halved by any mark"

        gives: ClassVar[str] = "window"
        state: ClassVar[dict[str, float]] = {"rounds": 0.0}
        packets: float = 1.0

        def update(self, c):
            c.rounds = c.rounds + 1
            c.window = np.where(c.marked > 0, c.window / 2, c.window + self.packets * c.mss)

Columns, float64 each:

====================  =================================================================================
``rtt, base_rtt``     round-trip time, with queues and without, ps
``elapsed``           since the last update, ps
``marked``            fraction of bytes that carried an ECN mark
``again``             1 where the path still marked in the second half of the round that ended
``lost``              whole packets lost (they are sent again)
``timeout``           1 where packets sent again were lost again, and the sender came back after its timeout
``acked``             bytes sent in the round, which its end acknowledges
``delivered``         the same, but where ports pause and ``wait`` was given: bytes that left the queues
``flight``            bytes on their way at its end: what was sent in the last round trip
``limited``           1 where the control's answer limited the sender, not its port or its message
``line``              rate of the sender's port, bits/s
``mss``               bytes of a full packet on the wire
``sent, size``        of the flow under way, bytes without headers
``coflow_sent``       bytes that the job has sent of its iteration, all flows together
``coflow_size``       and how many there are; 0 where nobody said
``job, priority``     numbers
``weight``            of the job
``hops``              links on the path
``window, rate``      the last answer, to be replaced: at least 0.001 packets, or a millionth of ``line``
``wait``              0; ps until the next update where a round trip is not meant
``chance``            a random number from 0 to 1, from the run's seed, the connection and the time
``granted``           bits/s that its receiver grants, where the class says ``credits = True``
``lost_inside``       of ``lost``, packets lost before the receiver's own port, where it does
``slow_start``        0; 1 says that a wrapper (MLTCP) must not scale this growth
``gain``              1; under MLTCP what growth is multiplied by (by the class, if ``scales_itself``)
====================  =================================================================================

and ``c.hop_queue, c.hop_tx, c.hop_rate``, each [rows, hops], where the class says ``telemetry = True``:
in-network telemetry, bytes queued, bits/s sent, and the link's bits/s (0 beyond the path's end).

On a wire, what a packet meets comes back later: ``marked`` is of the time from the middle of the round before
to the middle of the one that ended; ``rtt``, ``lost`` and telemetry are of the round before. (Where ``wait``
was given, marks are late by half a bare round trip, and all else is of the round that ended if that lasted
for two round trips.)

Bytes are those on the wire, unless said: each packet of a message has ``header_bytes``, ``telemetry_bytes``
and an Ethernet frame of its own. A scenario's ``mtu`` has headers and payload in it.

Rows must not look at each other: which connections come together depends on when their rounds end.
``start(c)`` sets the first answer of a connection, by default one bandwidth-delay product, or the line rate.

Compiled controls. A class with a ``kernel``, a function of C, is asked without Python in between: an update
then costs a fifth of a microsecond. It is called with ``(n, rows, telemetry, state, parameters)``:
``rows[i]`` has the columns above as fields; its hops are ``telemetry[rows[i].begin]`` and those that
follow, with ``queue``, ``tx`` and ``capacity``; its state is ``state[8 * rows[i].conn]`` and what follows;
``parameters`` are what the method of that name gives. A row whose ``first`` is 1 is of a connection that
begins: the kernel sets its first answer and its state. The records are ``struct control_row`` and ``struct
hop_sight`` of ``kernel.h``. What ``kernel`` can be is said in :mod:`cosim.network.plugged`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from cosim.network.plugged import numba_signature
from cosim.spec import Spec

TCP_HEADER_BYTES = 40
"""IPv4's 20 and TCP's 20 (RFC 9293), without options."""


class Control(Spec):
    """Base of every congestion control."""

    gives: ClassVar[Literal["window", "rate"]] = "window"
    paced: ClassVar[bool] = False
    """A window is spread over the round trip, never sent in a burst."""
    state: ClassVar[dict[str, float]] = {}
    telemetry: ClassVar[bool] = False
    settles: ClassVar[bool] = False
    """Where an update changed nothing and no link on the path queues, the next one would change nothing
    either, so that it may be left out: true of controls that look at no counters and no telemetry, and at
    ``acked`` and ``elapsed`` only where they were limited, marked, or lost something."""
    header_bytes: ClassVar[int] = 44
    """Bytes of a packet's ``mtu`` that are no payload: RoCEv2's IPv4 20, UDP 8, BTH 12 and ICRC 4."""
    telemetry_bytes: ClassVar[int] = 0
    """What switches write into a packet, beyond its ``mtu``."""
    lossless: ClassVar[bool] = False
    """Whether priority flow control is on where the scenario doesn't say."""
    trims: ClassVar[bool] = False
    """Whether switches cut packets that find no room down to their headers, where the scenario doesn't say:
    the sender hears of a loss a bare round trip later, and never waits for a timeout."""
    credits: ClassVar[bool] = False
    """Whether receivers say what may be sent: ``granted`` is the rate of the receiver's port, shared max-min
    among the connections that have something to send there. Ports to receivers don't mark, then, and a
    connection starts again after a silence."""
    acks_wait: ClassVar[bool] = False
    """Whether acknowledgements wait in the queues of data that goes the other way: TCP's do; those of RDMA
    have a class of their own."""
    reordering: ClassVar[Literal["none", "selective", "go-back-N"]] = "selective"
    """What its transport does where packets overtake each other, as they do where a balancer sprays them:
    nothing (every packet has its place); what is missing is sent again once later packets say so; or all from
    there on is. None of it is modelled: where it is the last, a run with such a balancer warns."""
    uses_weight: ClassVar[bool] = False
    grows: ClassVar[bool] = True
    """It adds to what it gave before, which MLTCP could scale."""
    scales_itself: ClassVar[bool] = False
    """MLTCP leaves its answers alone: it has multiplied by ``gain`` what it adds."""
    uses_marks: ClassVar[bool] = True
    """Whether it looks at ECN marks, and so where they begin matters."""
    uses_chance: ClassVar[bool] = False
    """Whether ``chance`` matters, and so the run's seed."""
    kernel: ClassVar[Any] = None
    """A function of C that answers; see the module's text."""

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float] | None:  # noqa: ARG002
        """(from, all, probability at ``all``) for RED on a port, bytes; None: no marks."""
        return None

    @classmethod
    def numba_signature(cls) -> Any:
        """What ``numba.cfunc`` has to be given for a kernel."""
        return numba_signature("control_row", "hop_sight")

    def parameters(self) -> list[float]:
        """What the kernel is given."""
        return []

    def inner(self) -> Control:
        """The control itself; of a wrapper, what is in it."""
        return self

    def scaling(self) -> tuple[float, float]:
        """(slope, intercept) by the share of the iteration sent, for growth."""
        return 0.0, 1.0

    def longest_rtt_ps(self, hops: int) -> float:  # noqa: ARG002 - for controls that aim at a delay
        """The longest round trip without queues on a path of so many links that it can work with, ps: with a
        longer one it would take the path itself for a queue, and send its least for ever.
        """
        return math.inf

    def uses_seed(self) -> bool:
        """Whether the run's seed matters: where ``chance`` does."""
        return self.inner().uses_chance

    @classmethod
    def lacks(cls) -> list[str]:
        """``update``, where there is no kernel and nothing within."""
        own = cls.kernel or cls.update is not Control.update or cls.inner is not Control.inner
        return [] if own else ["update(self, c)"]

    def start(self, c: Any) -> None:
        """The first answer."""
        c.window = c.line * c.base_rtt / 8e12
        c.rate = c.line

    def update(self, c: Any) -> None:
        """The next answer.

        Raises
        ------
        NotImplementedError
            A class without a kernel has to have it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no update(self, c)")
