"""Asking a balancer: batches of connections as columns, and its answers checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cosim.errors import NetworkError
from cosim.kernel import Columns, kernel, record
from cosim.kernel.layout import RENAMED
from cosim.network.balancing.contract import Balancer
from cosim.network.core import read_only
from cosim.network.flows import F64

MAX_STATE: int = kernel.MOST_STATES
LEAST_AGAIN_PS: int = kernel.LEAST_AGAIN_PS
"""A balancer that asks again sooner would keep the clock from going on."""

PAIR = record("endpoint_pair")
CANDIDATE = record("candidate")
CHOICE = record("choice")
SEEN = record("seen_path")


class Balance(Columns):
    """``routes`` and ``state`` run beside a network's connections, ``crowd``, ``dead`` and ``spot`` beside
    its links.
    """


_SHOWN = [name for name in CHOICE.names or () if name not in ("conn", "begin")]
_PATHS = {f"path_{name}": name for name in SEEN.names or () if name != "part"} | {"parts": "part"}


class ChoiceColumns:
    """Rows of a batch, as attributes; assigning checks shape and type."""

    def __init__(self, balancer: Balancer, rows: Any, seen: Any, state: dict[str, F64]) -> None:
        self.__dict__["_of"] = (balancer, rows, seen, state)

    def __len__(self) -> int:
        return len(self.__dict__["_of"][1])

    def __getattr__(self, name: str) -> Any:
        balancer, rows, seen, state = self.__dict__["_of"]
        if name in state:
            return state[name]
        if name in _SHOWN:
            return rows[name] if name in ("path", "again") else read_only(rows[name])
        if name in _PATHS:
            return seen["part"] if _PATHS[name] == "part" else read_only(seen[_PATHS[name]])
        known = f"there are {', '.join([*_SHOWN, *_PATHS, *state])}"
        if name in RENAMED:
            known = f"it is {RENAMED[name]} now"
        raise NetworkError(f"{type(balancer).__name__}: there is no column {name!r}; {known}")

    def __setattr__(self, name: str, value: Any) -> None:
        balancer, rows, seen, state = self.__dict__["_of"]
        owner, answer = type(balancer).__name__, balancer.gives
        targets = state | {
            "again": rows["again"],
            answer: rows["path"] if answer == "path" else seen["part"],
        }
        if name not in targets:
            raise NetworkError(
                f"{owner}: column {name!r} can't be set; a balancer that gives {answer!r} "
                f"sets {', '.join(sorted(targets))}"
            )
        try:
            if np.iscomplexobj(value):
                raise TypeError
            array = np.asarray(value, np.float64)
            targets[name][...] = np.broadcast_to(array, targets[name].shape)
        except (TypeError, ValueError):
            shape = targets[name].shape
            raise NetworkError(
                f"{owner}: column {name!r} was given {value!r}, not numbers of shape {shape}"
            ) from None


def batch_of(balance: Balance) -> tuple[Any, Any]:
    """The batch under way: its rows, and what each sees of paths, [rows, paths]."""
    count, width = (int(balance.counts[name][0]) for name in ("num_rows", "most_paths"))
    return balance.rows[:count], balance.seen[: count * width].reshape(count, width)


def ask_in_python(balancer: Balancer, balance: Balance, describe: Callable[[int], str]) -> None:
    """Have a balancer that is not compiled answer the batch under way.

    Raises
    ------
    NetworkError
        It raised; names the class and whom it was asked for.
    """
    rows, seen = batch_of(balance)
    count = len(rows)
    try:
        _ask(balancer, balance, rows, seen)
    except NetworkError:
        raise
    except Exception as error:
        who = describe(int(rows["conn"][0])) + (f" and {count - 1:,} more" if count > 1 else "")
        raise NetworkError(
            f"{type(balancer).__name__}.choose failed for {who}: {type(error).__name__}: {error}"
        ) from error


def _ask(balancer: Balancer, balance: Balance, rows: Any, seen: Any) -> None:
    conn = rows["conn"]
    every = balance.state.reshape(-1, MAX_STATE)
    state = every[conn]
    state[rows["first"] != 0.0, : len(balancer.state)] = list(balancer.state.values())
    c = ChoiceColumns(balancer, rows, seen, {key: state[:, k] for k, key in enumerate(balancer.state)})
    balancer.choose(c)
    every[conn] = state


def wrong_answer(
    balancer: Balancer, balance: Balance, n: int, describe: Callable[[int], str]
) -> NetworkError:
    """The error for the ``n``-th row of the batch: class, column, value and connection."""
    row, seen = (of[n] for of in batch_of(balance))
    count, path, again = int(row["paths"]), float(row["path"]), float(row["again"])
    who, name = describe(int(row["conn"])), type(balancer).__name__
    if not (np.isfinite(again) and (again == 0.0 or again >= LEAST_AGAIN_PS)):
        return NetworkError(
            f"{name}: column 'again' is {again:g} for {who}; it is 0, or at least {LEAST_AGAIN_PS:g} ps"
        )
    own = balance.state.reshape(-1, MAX_STATE)[int(row["conn"]), : len(balancer.state)]
    for key, value in zip(balancer.state, own.tolist(), strict=True):
        if not np.isfinite(value):
            return NetworkError(f"{name}: column {key!r} is {value} for {who}; it has to be a finite number")
    if balancer.gives == "path":
        what = "a link of that path is down"
        if not (path == np.floor(path) and 0 <= path < count):
            what = f"it has {count} path{'s' if count > 1 else ''}, from 0"
        return NetworkError(f"{name}: column 'path' is {path:g} for {who}; {what}")
    parts = seen["part"]
    place = np.arange(len(parts))
    no_part = (place >= count) | (seen["alive"] == 0.0)
    for k in np.flatnonzero(~(np.isfinite(parts) & (parts >= 0.0)) | (no_part & (parts != 0.0)))[:1].tolist():
        why = "that path is down" if k < count else f"it has {count} paths"
        why = why if np.isfinite(parts[k]) and parts[k] >= 0.0 else "a part is a finite number, at least 0"
        return NetworkError(f"{name}: column 'parts' is {parts[k]:g} at path {k} for {who}; {why}")
    return NetworkError(f"{name}: column 'parts' adds up to {parts.sum():g} for {who}; it has to be 1")
