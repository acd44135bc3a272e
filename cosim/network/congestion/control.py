"""Asking a control: batches of connections as columns, and its answers checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic import ValidationError

from cosim.errors import NetworkError
from cosim.network.congestion.contract import Control
from cosim.network.congestion.state import CONTROL_ROW, HOP_SIGHT, MAX_STATE, CongestionState
from cosim.network.core import Records, read_only
from cosim.network.flows import F64

_SHOWN = dict.fromkeys(name for name in CONTROL_ROW.names or () if name != "begin")
_TELEMETRY = {"hop_queue": "queue", "hop_tx": "tx", "hop_rate": "capacity"}
LEAST_PACKETS, LEAST_SHARE = 1e-3, 1e-6
"""The least window, in packets, and rate, as a share of the port's; a sender with less would hardly send."""
_ANSWERS = ("window", "rate", "wait", "slow_start")


class ConnectionBatch:
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
            return rows[name] if name in _ANSWERS else read_only(rows[name])
        if name in _TELEMETRY:
            return read_only(telemetry[_TELEMETRY[name]])
        known = [*(n for n in _SHOWN if n not in ("conn", "first")), *_TELEMETRY, *state]
        raise NetworkError(f"{owner}: there is no column {name!r}; there are {', '.join(known)}")

    def __setattr__(self, name: str, value: Any) -> None:
        owner, rows, _, state = self.__dict__["_parts"]
        if name not in state and name not in _ANSWERS:
            can = ", ".join([*_ANSWERS, *state])
            raise NetworkError(f"{owner}: column {name!r} can't be set; a control sets {can}")
        try:
            if np.iscomplexobj(value):
                raise TypeError
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise NetworkError(f"{owner}: column {name!r} was given {value!r}, not numbers") from None
        if array.shape not in ((), (len(self),)):
            raise NetworkError(
                f"{owner}: column {name!r} was given shape {array.shape}, but there are {len(self)} rows"
            )
        target = state[name] if name in state else rows[name]
        target[...] = array


def ask_in_python(control: Control, fluid: CongestionState) -> None:
    """Have a control that is not compiled answer the batch under way.

    Raises
    ------
    NetworkError
        It raised, or gave what is not a number; names the class.
    """
    rows, state = _batch_of(fluid)
    telemetry = _telemetry_of(fluid, rows, known=control.telemetry)
    starting = rows["first"] != 0.0
    if not starting.any():  # as a rule
        _ask(control, rows, telemetry, state, "update")
        return
    for chosen, what in ((starting, "start"), (~starting, "update")):
        part = rows[chosen]
        if len(part):
            _ask(control, part, telemetry[chosen], state, what)
            rows[chosen] = part


def _batch_of(fluid: CongestionState) -> tuple[Records, F64]:
    """Rows of the batch, and the state of all connections."""
    return fluid.rows[: int(fluid.counts["num_waiting"][0])], fluid.state.reshape(-1, MAX_STATE)


def _telemetry_of(fluid: CongestionState, rows: Records, *, known: bool) -> Records:
    """Telemetry of a batch, [rows, hops]; where a control has none, new rows have the rates of links."""
    hops = np.where((rows["first"] != 0.0) | known, rows["hops"], 0.0).astype(np.int64)
    place = np.arange(max(int(hops.max(initial=0)), 1))
    found = np.zeros((len(rows), len(place)), HOP_SIGHT)
    inside = place < hops[:, None]
    found[inside] = fluid.telemetry[(rows["begin"][:, None] + place)[inside]]
    return found


def _ask(control: Control, rows: Records, telemetry: Records, state: F64, what: str) -> None:
    owner = f"{type(control).__name__}.{what}"
    conn = rows["conn"]
    own = state[conn]
    if what == "start":
        own[:, : len(control.state)] = list(control.state.values())
    c = ConnectionBatch(owner, rows, telemetry, {key: own[:, k] for k, key in enumerate(control.state)})
    try:
        (control.start if what == "start" else control.update)(c)
    except NetworkError:
        raise
    except ValidationError as error:  # its text is of several lines, and names a manual
        wrong = error.errors(include_url=False)[0]
        name = ".".join(map(str, wrong["loc"]))
        raise NetworkError(f"{owner} failed: {name}: {wrong['msg']}") from error
    except Exception as error:
        raise NetworkError(f"{owner} failed: {type(error).__name__}: {error}") from error
    state[conn] = own


def check_answers(control: Control, fluid: CongestionState, describe: Callable[[int], str]) -> None:
    """Refuse what no sender could follow.

    Raises
    ------
    NetworkError
        Names class, column, value and connection.
    """
    rows, state = _batch_of(fluid)
    given, wait = rows[control.gives], rows["wait"]
    least_given = LEAST_PACKETS * rows["mss"] if control.gives == "window" else LEAST_SHARE * rows["line"]
    total = given.sum() + wait.sum() + state[rows["conn"], : len(control.state)].sum()
    if (given >= least_given).all() and wait.min() >= 0.0 and np.isfinite(total):  # as a rule
        return
    name = type(control).__name__
    answers: dict[str, F64] = {control.gives: rows[control.gives], "wait": rows["wait"]}
    for k, key in enumerate(control.state):
        answers[key] = state[rows["conn"], k]
    for column, values in answers.items():
        bound = 0.0 if column in ("window", "rate", "wait") else -np.inf
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= bound)))
        if len(bad):
            k = int(bad[0])
            raise NetworkError(
                f"{name}: column {column!r} is {values[k]} for {describe(int(rows['conn'][k]))}; "
                "it has to be a finite number" + (", at least 0" if bound == 0.0 else "")
            )
    k = int(np.flatnonzero(given < least_given)[0])
    what = (
        f"{LEAST_PACKETS:g} packets" if control.gives == "window" else f"{LEAST_SHARE:g} of the port's rate"
    )
    raise NetworkError(
        f"{name}: column {control.gives!r} is {given[k]:g} for {describe(int(rows['conn'][k]))}; "
        f"with less than {what} ({least_given[k]:g}) its flow would hardly end"
    )


def marks_of(control: Control, rate_bps: float, mtu_bytes: int) -> tuple[float, float, float] | None:
    """What a control says of the marking at a port.

    Raises
    ------
    NetworkError
        It is no marking.
    """
    given: Any = control.marking(rate_bps, mtu_bytes)
    if given is None:
        return None
    try:
        low, high, most = map(float, given)
        good = 0 <= low <= high < np.inf and 0 <= most <= 1
    except (TypeError, ValueError):
        good = False
    if not good:
        raise NetworkError(
            f"{type(control).__name__}.marking gave {given!r}; it should give None, or (from, all, "
            "probability at all): bytes, the second not below the first, and a probability from 0 to 1"
        )
    return low, high, most
