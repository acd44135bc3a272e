"""A connection matrix of htsim: flows, and triggers that flows fire and that start flows.

::

    Nodes 4
    Connections 2
    Triggers 1
    0->1 id 1 start 0 size 65536 recv_done_trigger 1
    1->2 id 2 trigger 1 size 65536
    trigger id 1 oneshot

``msg``, maybe with a number, says that a flow is a message of the connection of its ``id``: a connection
sends its messages in order, one after the other (uet-htsim). ``start`` is in picoseconds. A flow starts at
a time or by a trigger; it fires at most one trigger when its sender is done (all of it acknowledged), and
one when its receiver has all of it. A ``oneshot`` trigger starts its flows when it is fired, a ``barrier``
of count n when it has been fired n times, a ``multishot`` one flow each time. As htsim's
``connection_matrix.cpp`` reads them (github.com/Broadcom/csg-htsim).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cosim.errors import Location, WorkloadError
from cosim.files.text import MOST_RANKS, lines_of
from cosim.units import NEVER

TriggerKind = Literal["oneshot", "barrier", "multishot"]
KINDS: tuple[TriggerKind, ...] = ("oneshot", "barrier", "multishot")


@dataclass(frozen=True, slots=True)
class HtsimConnection:
    """A flow; numbers of triggers and flows begin with 1, 0 is none."""

    src: int
    dst: int
    size_bytes: int
    flow_id: int = 0
    start_ps: int | None = None
    trigger: int = 0
    send_done: int = 0
    recv_done: int = 0
    priority: int | None = None
    message: int | None = None


@dataclass(frozen=True, slots=True)
class Trigger:
    """``count`` is how often a barrier must be fired."""

    number: int
    kind: TriggerKind
    count: int = 0


@dataclass(frozen=True)
class Matrix:
    """A whole file; ``failures`` are its lines about links that fail, as they stand."""

    nodes: int
    connections: tuple[HtsimConnection, ...]
    triggers: tuple[Trigger, ...]
    failures: tuple[str, ...] = ()


_FIELDS = {
    "size": "size_bytes",
    "id": "flow_id",
    "trigger": "trigger",
    "send_done_trigger": "send_done",
    "recv_done_trigger": "recv_done",
    "prio": "priority",
    "msg": "message",
    "start": "start_ps",
}
_HEADER = ("Nodes", "Connections", "Triggers", "Failures")


def read_matrix(path: Path) -> tuple[Matrix, list[int]]:
    """A matrix, and the line of each connection.

    Raises
    ------
    WorkloadError
        A file that can't be read or meant; names file and line.
    """
    return _MatrixReader(path).matrix()


class _MatrixReader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._line = 0
        self._said: dict[str, int] = {}

    def matrix(self) -> tuple[Matrix, list[int]]:
        connections: list[HtsimConnection] = []
        triggers: dict[int, Trigger] = {}
        failures: list[str] = []
        places: list[int] = []
        for tokens in self._tokens():
            if tokens[0] in _HEADER:
                self._header(tokens)
            elif "->" in tokens[0]:
                connections.append(self._connection(tokens))
                places.append(self._line)
            elif tokens[0] == "trigger":
                trigger = self._trigger(tokens)
                if trigger.number in triggers:
                    raise self._wrong(f"trigger {trigger.number} is there twice", "each number once")
                triggers[trigger.number] = trigger
            elif tokens[0] == "failure":
                failures.append(" ".join(tokens))
            else:
                raise self._wrong(f"{tokens[0][:60]!r}", "a connection 0->1 ..., trigger ..., or failure ...")
        if "Nodes" not in self._said:
            raise self._wrong("there is no line Nodes", "the file begins with: Nodes 16")
        found = {"Connections": len(connections), "Triggers": len(triggers), "Failures": len(failures)}
        for name, count in found.items():
            if self._said.get(name, 0) != count:
                raise self._wrong(
                    f"{name} says {self._said.get(name, 0)}, but there are {count}", f"{name} {count}"
                )
        every = tuple(triggers.values())
        return Matrix(self._said["Nodes"], tuple(connections), every, tuple(failures)), places

    def _tokens(self) -> Iterator[list[str]]:
        for number, text in lines_of(self._path):
            self._line = number
            tokens = text.split()
            if tokens and not tokens[0].startswith("#"):
                yield tokens

    def _header(self, tokens: list[str]) -> None:
        name = tokens[0]
        if name in self._said or len(tokens) != 2:
            raise self._wrong(f"{' '.join(tokens)[:60]!r}", f"one line {name} N")
        limit = MOST_RANKS if name == "Nodes" else NEVER
        self._said[name] = self._number(name, tokens[1], 1 if name == "Nodes" else 0, limit)

    def _connection(self, tokens: list[str]) -> HtsimConnection:
        nodes = self._said.get("Nodes")
        if nodes is None:
            raise self._wrong("a connection before Nodes", "the file begins with: Nodes 16")
        src, _, dst = tokens[0].partition("->")
        ends = {
            "src": self._number("source", src, 0, nodes - 1),
            "dst": self._number("destination", dst, 0, nodes - 1),
        }
        if ends["src"] == ends["dst"]:
            raise self._wrong(f"a flow from {src} to itself", "two different nodes")
        said: dict[str, int] = {}
        at = 1
        while at < len(tokens):
            word = tokens[at]
            if word == "addon":
                raise self._wrong("'addon' can't be simulated", "start or trigger")
            name = _FIELDS.get(word)
            if name is None or name in said:
                raise self._wrong(f"{word[:60]!r}", f"each of {', '.join(_FIELDS)} at most once")
            if word == "msg" and not "".join(tokens[at + 1 : at + 2]).isdigit():
                said[name] = 0  # a number may follow, or none
                at += 1
                continue
            if at + 1 == len(tokens):
                raise self._wrong(f"{word!r} is the last word", f"{word} NUMBER")
            least = 0 if word in ("size", "start", "prio") else 1
            said[name] = self._number(word, tokens[at + 1], least, NEVER)
            at += 2
        if "size_bytes" not in said:
            raise self._wrong("a connection without size", "size BYTES")
        if "message" in said and "flow_id" not in said:
            raise self._wrong("a message of no connection", "msg goes with id NUMBER")
        if ("start_ps" in said) == ("trigger" in said):
            raise self._wrong("a connection starts at a time or by a trigger", "start PS, or trigger NUMBER")
        return HtsimConnection(**ends, **said)

    def _trigger(self, tokens: list[str]) -> Trigger:
        number = count = 0
        kinds: list[TriggerKind] = []
        at = 1
        while at < len(tokens):
            word = tokens[at]
            kind = next((kind for kind in KINDS if kind == word), None)
            if kind is not None:
                kinds.append(kind)
                at += 1
            elif word in ("id", "count") and at + 1 < len(tokens):
                value = self._number(word, tokens[at + 1], 1 if word == "id" else 0, NEVER)
                number, count = (value, count) if word == "id" else (number, value)
                at += 2
            else:
                raise self._wrong(f"{word[:60]!r}", "trigger id 1 oneshot, or trigger id 1 barrier count 2")
        if len(kinds) != 1 or not number:
            raise self._wrong("a trigger needs an id and one kind", "trigger id 1 oneshot")
        return Trigger(number, kinds[0], count)

    def _number(self, what: str, text: str, least: int, most: int) -> int:
        value = -1
        if text.isascii() and text.isdigit() and len(text) < 20:
            value = int(text)
        elif what == "start":  # htsim reads a float
            try:
                start = float(text) if len(text) < 40 else -1.0
                value = int(start) if start == int(start) else -1
            except (ValueError, OverflowError):
                value = -1
        if not least <= value <= most:
            raise self._wrong(f"{what} is {text[:40]!r}", f"a whole number, {least} to {most}")
        return value

    def _wrong(self, message: str, right: str) -> WorkloadError:
        return WorkloadError(message, location=Location(str(self._path), self._line or None), hint=right)
