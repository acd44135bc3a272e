"""Plug-ins that answer anything."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random

import cosim
from cosim.experiment.progress import RunProgress
from tests.fuzz.tally import Target, drawn

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


def answering(given: tuple[str, str, str]) -> None:
    """A scenario of which one thing is a plug-in that answers so."""
    kind, first, second = given
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "mine.py"
        file.write_text(HEAD + KINDS[kind].format(first, second))
        text = SCENARIO
        for word, value in (DEFAULT | {kind: f"{{plugin: '{file}:Mine'}}"}).items():
            text = text.replace(word, value)
        began = time.monotonic()

        def patience(_: RunProgress) -> None:
            if time.monotonic() - began > _PATIENCE_S:
                raise KeyboardInterrupt

        cosim.run(text, progress=patience)


def targets() -> list[Target]:
    """One of each kind; what they need is compiled before any is timed."""
    answering(("CONTROL", "c.window", "None"))

    def of(kind: str) -> Target:
        def make(draw: Random) -> tuple[str, str, str]:
            return kind, draw.choice(ANSWERS), draw.choice(("None", *ANSWERS))

        return Target(f"plug-in: {kind.lower()}", drawn(make), answering)

    return [of(kind) for kind in KINDS]
