"""Shipped scenarios with something changed: read; where small, built, run and held to invariants."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from cosim.experiment.build import Built, build
from cosim.experiment.progress import RunProgress
from cosim.experiment.scenario import Scenario, from_document
from cosim.experiment.simulate import simulate
from cosim.files.located_yaml import Document, parse
from cosim.protocol.remote import Remote
from tests.fuzz import worlds
from tests.fuzz.damage import damaged
from tests.fuzz.invariants import check
from tests.fuzz.tally import Target
from tests.inputs import ROOT

PATIENCE_S = 1.0
"""After so long a run is interrupted, and what there is of it looked at."""
_FEW = 20_000
"""Operations of a run, links of a topology, operations of a program, that are tried."""

WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3, 7, 64, 10**9, 10**19, 10**400, 0.5, -0.5, 1e-9, 1e300, math.nan,
    math.inf, "", "x", "0", "0ns", "1ps", "-1us", "1.5ps", "1us", "53d", "4000000s", "1kbps", "100Tbps",
    "1e20bps", "1e30bps", "0B", "1B", "1MB", "1e18B", "2e18B", [], [[]], [0], [None], {}, {"kind": "ring"},
    {"plugin": "x.py:X"}, "ring", "dctcp", "../x", "a\nb", "\x1b[2J", "²", "x" * 5000, "fair_share",
    "congestion_aware", "congestion_unaware",
)  # fmt: skip

_CONGESTION = {"model": "congestion", "control": "dctcp"}
_SMALL: dict[str, Any] = {
    "topology": {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "1us"},
    "jobs": [{"workload": {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4MB"}}],
}
_EDITS = st.tuples(st.integers(0, 5), st.integers(0, 1 << 16), st.integers(0, 1 << 16))


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


def tried(value: Any) -> None:
    """Read; build what is small; run what is short."""
    scenario = from_document(Document("x.yaml", value), ROOT / "scenarios", "x")
    if isinstance(scenario.network, Remote) or _is_large(scenario):
        return
    built = build(scenario)
    try:
        if _operations(built) > _FEW or len(built.topology.link_src) > _FEW:
            return
        began = time.monotonic()

        def patience(_: RunProgress) -> None:
            if time.monotonic() - began > PATIENCE_S:
                raise KeyboardInterrupt

        done = simulate(scenario, built, progress=patience, messages=True)
    finally:
        built.network.close()
    check(done.records)
    str(done)


def _is_large(scenario: Scenario) -> bool:
    sizes = [getattr(scenario.topology, "size_about", lambda: 0)()]
    sizes += [getattr(job.workload, "size_about", lambda: 0)() + job.count for job in scenario.jobs]
    return max(sizes) > _FEW and max(sizes) < 10**8  # beyond it, it has to be refused


def _operations(built: Built) -> int:
    return sum(
        job.iterations * len(job.workload.program(rank).operations)
        for job in built.jobs
        for rank in range(min(job.workload.world_size, _FEW))
    )


def read_text(body: bytes) -> None:
    """A damaged file, read."""
    text = body.decode("utf-8", "surrogateescape")
    from_document(parse(text, "x.yaml"), Path(), "x")


def targets() -> list[Target]:
    """Shipped ones, and random ones."""
    for network in ("congestion_aware", "congestion_unaware", "fair_share", _CONGESTION):
        tried({**_SMALL, "network": network})  # compiled before any is timed
    names = st.sampled_from(sorted(shipped()))
    mutants = st.builds(changed, names, st.lists(_EDITS, min_size=1, max_size=4))
    bodies = [*shipped().values()]
    return [
        Target("scenarios", mutants, tried),
        Target("scenarios' text", damaged(bodies), read_text),
        *worlds.targets(),
    ]
