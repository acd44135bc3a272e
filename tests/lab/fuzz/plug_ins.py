"""Plug-ins that answer anything: five that are nothing but an answer, and the handbook's, damaged."""

from __future__ import annotations

import ast
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import cosim
from cosim.experiment.progress import RunProgress
from tests.inputs import ROOT
from tests.lab.fuzz.tally import Target, drawn

ANSWERS = (
    "c.window", "[0, 0]", "np.arange(2, dtype=np.int32)", "wanted.free[:2]",
    "None", "True", "0", "1", "-1", "1e-9", "1e300", "10**30", "float('nan')", "float('inf')", "1j", "''",
    "'x'", "[]", "[1, 2]", "{}", "object()", "sys.exit(0)", "1 / 0", "np.zeros(0)", "np.zeros(3)",
    "np.array([1j])", "np.array(['x'])", "np.full(4, np.nan)", "np.arange(4, dtype=np.int32)",
    "np.array([-1, 0, 1, 2], np.int32)", "np.array([0, 0, 0, 0], np.int32)", "lambda: 0", "self", "cosim",
    "(1.0, 2.0, 0.5)", "(2, 1, 0.5)", "(None,) * 3", "(float('nan'), 1, 1)", "[0, 1, 2, 3]", "[-1, 0]",
    "[10**30, 0]", "['1us', 0]", "[float('nan'), 0]",
)  # fmt: skip
HEAD = (
    "import sys\nimport numpy as np\nimport cosim\nfrom typing import ClassVar\nfrom cosim.plugins import *\n"
)
SCENARIO = """
topology: TOPOLOGY
network: {model: congestion, control: CONTROL}
jobs:
  - workload: WORKLOAD
    count: COUNT
    placement: PLACEMENT
    arrival: ARRIVAL
"""
DEFAULT = {
    "TOPOLOGY": "{kind: switch, endpoints: 4, rate: 10Gbps, latency: 1us}",
    "CONTROL": "dctcp",
    "WORKLOAD": "{kind: collective, collective: all_reduce, ranks: 2, size: 100kB}",
    "COUNT": "2",
    "PLACEMENT": "packed",
    "ARRIVAL": "{kind: regular, every: 1us}",
}
KINDS = {
    "CONTROL": (
        "class Mine(Control):\n"
        "    def update(self, c):\n        c.window = {0}\n"
        "    def marking(self, rate, mtu):\n        return {1}\n"
    ),
    "TOPOLOGY": "class Mine(TopologySpec):\n    def build(self, context):\n        return {0}\n",
    "WORKLOAD": "class Mine(WorkloadSpec):\n    def build(self, context):\n        return {0}\n",
    "PLACEMENT": "class Mine(Placement):\n    def choose(self, wanted):\n        return {0}\n",
    "ARRIVAL": "class Mine(Arrival):\n    def times(self, count, context):\n        return {0}\n",
}
_PATIENCE_S = 1.0


HANDBOOK = ROOT / "docs" / "howto" / "files"
WRITTEN = (
    "arrival", "balancer", "collective", "control", "framework", "gpu", "memory", "model", "network",
    "placement", "routing", "scheduler", "topology", "workload",
)  # fmt: skip
"""Kinds of which the handbook has a plug-in, and a scenario that runs in this process."""


def _patiently(scenario: str | Path) -> None:
    began = time.monotonic()

    def patience(_: RunProgress) -> None:
        if time.monotonic() - began > _PATIENCE_S:
            raise KeyboardInterrupt

    cosim.run(scenario, progress=patience)


def answering(given: tuple[str, str, str]) -> None:
    """A scenario of which one thing is a plug-in that answers so."""
    kind, first, second = given
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "mine.py"
        file.write_text(HEAD + KINDS[kind].format(first, second))
        text = SCENARIO
        for word, value in (DEFAULT | {kind: f"{{plugin: '{file}:Mine'}}"}).items():
            text = text.replace(word, value)
        _patiently(text)


@cache
def source(kind: str) -> str:
    """The handbook's plug-in of a kind."""
    return (HANDBOOK / f"my_{kind}.py").read_text()


def _expressions(tree: ast.Module) -> Iterator[ast.expr]:
    """What stands in methods; bounds of loops excepted: a plug-in's own endless loop is its own."""
    bounds = {
        id(one) for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "range" for one in ast.walk(call)
    }  # fmt: skip
    for method in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)):
        for statement in method.body:
            for one in ast.walk(statement):
                if isinstance(one, ast.expr) and isinstance(getattr(one, "ctx", ast.Load()), ast.Load):
                    yield from () if id(one) in bounds else (one,)


def damaged_source(text: str, edits: list[tuple[int, int]]) -> str:
    """Python with some of its methods' expressions replaced: by an answer, or by another of its own."""
    for where, what in edits:
        found = list(_expressions(ast.parse(text)))
        replaced, own = found[where % len(found)], [ast.unparse(one) for one in found]
        lines = text.encode().splitlines(keepends=True)
        first = sum(map(len, lines[: replaced.lineno - 1])) + replaced.col_offset
        last = sum(map(len, lines[: (replaced.end_lineno or 0) - 1])) + (replaced.end_col_offset or 0)
        answer = (ANSWERS if what % 2 else own)[(what // 2) % len(ANSWERS if what % 2 else own)]
        changed = (text.encode()[:first] + f"({answer})".encode() + text.encode()[last:]).decode()
        with suppress(SyntaxError):  # parts of an f-string are in no place of their own
            ast.parse(changed)
            text = changed
    return text


def written(given: tuple[str, str]) -> None:
    """The handbook's scenario of a kind with this text as its plug-in."""
    kind, text = given
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / f"my_{kind}.py").write_text(text)
        shutil.copy(HANDBOOK / f"my-{kind}.yaml", place)
        _patiently(Path(place) / f"my-{kind}.yaml")


def targets() -> list[Target]:
    """One of each kind; what they need is compiled before any is timed."""
    answering(("CONTROL", "c.window", "None"))

    def of(kind: str) -> Target:
        def make(draw: Random) -> tuple[str, str, str]:
            return kind, draw.choice(ANSWERS), draw.choice(("None", *ANSWERS))

        return Target(f"plug-in: {kind.lower()}", drawn(make), answering)

    def handbook(kind: str) -> Target:
        def make(draw: Random) -> tuple[str, str]:
            edits = [(draw.randrange(1 << 16), draw.randrange(1 << 16)) for _ in range(draw.randint(1, 2))]
            return kind, damaged_source(source(kind), edits)

        written((kind, source(kind)))
        return Target(f"handbook's {kind}", drawn(make), written)

    return [*(of(kind) for kind in KINDS), *(handbook(kind) for kind in WRITTEN)]
