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
``flight``            bytes on their way at its end: what was sent in the last round trip
``limited``           1 where the control's answer limited the sender, not its port or its message
``line``              rate of the sender's port, bits/s
``mss``               bytes in a packet
``sent, size``        of the flow under way, bytes
``coflow_sent``       bytes that the job has sent of its iteration, all flows together
``coflow_size``       and how many there are; 0 where nobody said
``job, priority``     numbers
``weight``            of the job
``hops``              links on the path
``window, rate``      the last answer, to be replaced
``wait``              0; ps until the next update where a round trip is not meant
``chance``            a random number from 0 to 1, from the run's seed, the connection and the time
``slow_start``        0; 1 says that a wrapper (MLTCP) must not scale this growth
``gain``              1; under MLTCP what growth is multiplied by (by the class, if ``scales_itself``)
====================  =================================================================================

and ``c.hop_queue, c.hop_tx, c.hop_rate``, each [rows, hops], where the class says ``telemetry = True``:
in-network telemetry, bytes queued, bits/s sent, and the link's bits/s (0 beyond the path's end).

On a wire, what a packet meets comes back later: ``marked`` is of the time from the middle of the round before
to the middle of the one that ended; ``rtt``, ``lost`` and telemetry are of the round before. (All are of the
one that ended where ``wait`` made it last for two round trips.)

Rows must not look at each other: which connections come together depends on when their rounds end.
``start(c)`` sets the first answer of a connection, by default one bandwidth-delay product, or the line rate.

Compiled controls. A class with a ``kernel``, a function that numba can compile and that takes ``(n, rows,
telemetry, state, parameters)``, is called from the compiled loop: an update then costs a fifth of a
microsecond. ``parameters()`` is what it is given; ``rows`` has the columns above as fields,
``state[rows[i].conn]`` the state. It is compiled when a network is opened (a second).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from cosim.errors import NetworkError
from cosim.network.calendar import Records
from cosim.network.congestion.columns import MAX_STATE, ROW
from cosim.network.flows import F64
from cosim.spec import Spec


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
    lossless: ClassVar[bool] = False
    """Whether priority flow control is on where the scenario doesn't say."""
    acks_wait: ClassVar[bool] = False
    """Whether acknowledgements wait in the queues of data that goes the other way: TCP's do; those of RDMA
    have a class of their own."""
    uses_weight: ClassVar[bool] = False
    grows: ClassVar[bool] = True
    """It adds to what it gave before, which MLTCP could scale."""
    scales_itself: ClassVar[bool] = False
    """MLTCP leaves its answers alone: it has multiplied by ``gain`` what it adds."""
    uses_chance: ClassVar[bool] = False
    """Whether ``chance`` matters, and so the run's seed."""
    kernel: ClassVar[Callable[..., None] | None] = None

    def marking(self, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float] | None:  # noqa: ARG002
        """(from, all, probability at ``all``) for RED on a port, bytes; None: no marks."""
        return None

    def parameters(self) -> list[float]:
        """What the kernel is given."""
        return []

    def inner(self) -> Control:
        """The control itself; of a wrapper, what is in it."""
        return self

    def scaling(self) -> tuple[float, float]:
        """(slope, intercept) by the share of the iteration sent, for growth."""
        return 0.0, 1.0

    def load(self, base: Path) -> Control:  # noqa: ARG002 - a plug-in's file is looked for there
        """The control itself."""
        return self

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


_SHOWN = dict.fromkeys(ROW.names or ())
_TELEMETRY = {"hop_queue": "queue", "hop_tx": "tx", "hop_rate": "capacity"}
_ANSWERS = ("window", "rate", "wait", "slow_start")


class Columns:
    """Rows of a batch, as attributes; assigning checks shape and type."""

    def __init__(self, owner: str, rows: Records, telemetry: Records, state: dict[str, F64]) -> None:
        self.__dict__["_parts"] = (owner, rows, telemetry, state)

    def __len__(self) -> int:
        return len(self.__dict__["_parts"][1])

    def __getattr__(self, name: str) -> Any:
        owner, rows, telemetry, state = self.__dict__["_parts"]
        if name in state:
            return state[name]
        if name in _SHOWN:
            return rows[name]
        if name in _TELEMETRY:
            return telemetry[_TELEMETRY[name]]
        known = [*(n for n in _SHOWN if n not in ("conn", "first")), *_TELEMETRY, *state]
        raise NetworkError(f"{owner}: there is no column {name!r}; there are {', '.join(known)}")

    def __setattr__(self, name: str, value: Any) -> None:
        owner, rows, _, state = self.__dict__["_parts"]
        if name not in state and name not in _ANSWERS:
            can = ", ".join([*_ANSWERS, *state])
            raise NetworkError(f"{owner}: column {name!r} can't be set; a control sets {can}")
        try:
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise NetworkError(f"{owner}: column {name!r} was given {value!r}, not numbers") from None
        if array.shape not in ((), (len(self),)):
            raise NetworkError(
                f"{owner}: column {name!r} was given shape {array.shape}, but there are {len(self)} rows"
            )
        target = state[name] if name in state else rows[name]
        target[...] = array


def ask_in_python(control: Control, count: int, rows: Records, telemetry: Records, state: F64) -> None:
    """Have a control that is not compiled answer a batch.

    Raises
    ------
    NetworkError
        It raised, or gave what is not a number; names the class.
    """
    kernel = type(control).kernel
    if kernel is not None:
        getattr(kernel, "py_func", kernel)(
            count,
            rows.view(np.recarray),
            telemetry.view(np.recarray),
            state,
            np.array(control.parameters(), np.float64),
        )
        return
    fresh = rows["first"][:count] != 0.0
    if not fresh.any():  # as a rule
        _ask(control, rows[:count], telemetry[:count], state, "update")
        return
    for chosen, what in ((fresh, "start"), (~fresh, "update")):
        part = rows[:count][chosen]
        if len(part):
            _ask(control, part, telemetry[:count][chosen], state, what)
            rows[:count][chosen] = part


def _ask(control: Control, rows: Records, telemetry: Records, state: F64, what: str) -> None:
    owner = f"{type(control).__name__}.{what}"
    conn = rows["conn"]
    own = state[conn]
    if what == "start":
        own[:, : len(control.state)] = list(control.state.values())
    c = Columns(owner, rows, telemetry, {key: own[:, k] for k, key in enumerate(control.state)})
    try:
        (control.start if what == "start" else control.update)(c)
    except NetworkError:
        raise
    except Exception as error:
        raise NetworkError(f"{owner} failed: {type(error).__name__}: {error}") from error
    state[conn] = own


def check_answers(control: Control, rows: Records, state: F64, describe: Callable[[int], str]) -> None:
    """Refuse what no sender could follow.

    Raises
    ------
    NetworkError
        Names class, column, value and connection.
    """
    given, wait = rows[control.gives], rows["wait"]
    total = given.sum() + wait.sum() + state[rows["conn"], : len(control.state)].sum()
    if min(given.min(), wait.min()) >= 0.0 and np.isfinite(total):  # as a rule
        return
    name = type(control).__name__
    answers: dict[str, F64] = {control.gives: rows[control.gives], "wait": rows["wait"]}
    for k, key in enumerate(control.state):
        answers[key] = state[rows["conn"], k]
    for column, values in answers.items():
        least = 0.0 if column in ("window", "rate", "wait") else -np.inf
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= least)))
        if len(bad):
            k = int(bad[0])
            raise NetworkError(
                f"{name}: column {column!r} is {values[k]} for {describe(int(rows['conn'][k]))}; "
                "it has to be a finite number" + (", at least 0" if least == 0.0 else "")
            )


def state_width(control: Control) -> int:
    """How many state columns a control has.

    Raises
    ------
    NetworkError
        More than there is room for.
    """
    if len(control.state) > MAX_STATE:
        raise NetworkError(
            f"{type(control).__name__} has {len(control.state)} state columns, at most {MAX_STATE} fit"
        )
    return len(control.state)
