"""Shipped scenarios with something changed, read."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from cosim.experiment.scenario import Scenario, from_document
from cosim.files.located_yaml import Document, parse
from tests.inputs import ROOT
from tests.lab.fuzz.damage import damaged
from tests.lab.fuzz.tally import Target, drawn

WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3, 7, 64, 10**9, 10**19, 10**400, 0.5, -0.5, 1e-9, 1e300, math.nan,
    math.inf, "", "x", "0", "0ns", "1ps", "-1us", "1.5ps", "1us", "53d", "4000000s", "1kbps", "100Tbps",
    "1e20bps", "1e30bps", "0B", "1B", "1MB", "1e18B", "2e18B", [], [[]], [0], [None], {}, {"kind": "ring"},
    {"plugin": "x.py:X"}, "ring", "dctcp", "../x", "a\nb", "\x1b[2J", "²", "x" * 5000, "fair_share",
    "congestion_aware", "congestion_unaware",
)  # fmt: skip


@cache
def shipped() -> dict[str, bytes]:
    """Every scenario that comes with cosim, and is one."""
    files = {path.name: path.read_bytes() for path in sorted((ROOT / "scenarios").glob("*.yaml"))}
    return {name: body for name, body in files.items() if "axes" not in parse(body.decode(), name).value}


@cache
def _values() -> dict[str, Any]:
    return {name: parse(body.decode(), name).value for name, body in shipped().items()}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of everything in a value but itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _places(inner, (*path, key))


@cache
def _by_key() -> dict[Any, list[Any]]:
    """What stands at a key anywhere."""
    found: dict[Any, list[Any]] = {}
    for value in _values().values():
        for path in _places(value):
            found.setdefault(path[-1], []).append(_at(value, path))
    return found


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def changed(name: str, edits: list[tuple[int, int, int]]) -> Any:
    """A scenario's value after some edits."""
    value = copy.deepcopy(_values()[name])
    for what, where, much in edits:
        places = list(_places(value))
        if not places:
            break
        path = places[where % len(places)]
        parent, key = _at(value, path[:-1]), path[-1]
        others = _by_key().get(key, WRONG)
        if what == 0:
            parent[key] = copy.deepcopy(WRONG[much % len(WRONG)])
        elif what in (1, 2):
            parent[key] = copy.deepcopy(others[much % len(others)])
        elif what == 3:
            del parent[key]
        elif what == 4 and isinstance(parent, dict):
            keys = sorted(map(str, _by_key()))
            parent[keys[much % len(keys)]] = copy.deepcopy(parent[key])
        elif isinstance(parent[key], int) and not isinstance(parent[key], bool):
            parent[key] = (2 * parent[key], parent[key] + 1, parent[key] - 1, parent[key] // 2)[much % 4]
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
    return value


def read(value: Any) -> Scenario:
    """A scenario, as if it had been read from a file."""
    return from_document(Document("x.yaml", value), ROOT / "scenarios", "x")


def read_text(body: bytes) -> None:
    """A damaged file, read."""
    text = body.decode("utf-8", "surrogateescape")
    from_document(parse(text, "x.yaml"), Path(), "x")


def mutant(draw: Random) -> Any:
    """A shipped scenario with one to four things changed."""
    edits = [
        (draw.randrange(6), draw.randrange(1 << 16), draw.randrange(1 << 16))
        for _ in range(draw.randint(1, 4))
    ]
    return changed(draw.choice(sorted(shipped())), edits)


def targets() -> list[Target]:
    """Values and text."""
    bodies = [*shipped().values()]
    return [
        Target("scenarios", drawn(mutant), read),
        Target("scenarios' text", drawn(lambda draw: damaged(draw, bodies)), read_text),
    ]
