"""What groups cost to open: ``python -m tests.lab.benchmarks.opening [ROW ...]``.

Rows are those of :mod:`tests.lab.benchmarks.unfolded`, by default ``1024`` and ``fsdp-512``. ``shapes`` are
the templates, and the flow tables made of them, ``groups`` those of ranks that did collectives, ``bound``
shapes on groups, whose paths are looked up once each; ``collectives`` and ``messages`` are those that were
run. ``shapes s``, ``groups s`` and ``paths s`` are CPU seconds of making the first two and of looking up
those paths, ``share`` all three by the simulation's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from cosim.engine.groups import Groups
from cosim.network.compiled import CompiledNetwork
from cosim.pattern.planner import Planner
from tests.lab.benchmarks.unfolded import ROWS, measure

TIMED = (
    ("shapes", Planner, "plan"),
    ("shapes", Groups, "_table"),
    ("groups", Groups, "look_up"),
    ("groups", Groups, "plan"),
    ("paths", CompiledNetwork, "bind"),
)


def timed(name: str, function: Callable[..., Any], seconds: dict[str, float], open_names: list[str]) -> Any:
    """The function, whose CPU seconds count under ``name`` and not under that of what calls it."""

    def call(*arguments: Any, **named: Any) -> Any:
        began = time.process_time()
        open_names.append(name)
        try:
            return function(*arguments, **named)
        finally:
            took = time.process_time() - began
            open_names.pop()
            seconds[name] += took
            if open_names:
                seconds[open_names[-1]] -= took

    return call


def opening(name: str) -> dict[str, Any]:
    """Run a row here, and say what opening took of it."""
    seconds: defaultdict[str, float] = defaultdict(float)
    open_names: list[str] = []
    made: list[Groups] = []
    for what, owner, method in TIMED:
        setattr(owner, method, timed(what, getattr(owner, method), seconds, open_names))
    begin = Groups.__init__

    def remember(self: Groups, *arguments: Any) -> None:
        begin(self, *arguments)
        made.append(self)
        seconds.clear()  # of the small job before

    Groups.__init__ = remember  # type: ignore[assignment, method-assign]
    (row,) = (row for row in ROWS if row.name == name)
    done = measure(row)
    groups = made[-1]
    counts = {
        "shapes": len(groups._flow_tables),
        "groups": len(groups.comms),
        "bound": len(groups.bindings),
        "collectives": done["collectives"],
        "messages": done["messages"],
        "replay_s": done["replay_s"],
    }
    return counts | {f"{what}_s": seconds[what] for what in ("shapes", "groups", "paths")}


def main(names: Sequence[str]) -> None:
    """Print a line for each row asked for."""
    columns = ("shapes", "groups", "bound", "collectives", "messages")
    print(f"{'':<16}" + "".join(f"{one:>12}" for one in columns) + "  shapes s  groups s  paths s  share")
    for name in names or ["1024", "fsdp-512"]:
        command = [sys.executable, "-m", "tests.lab.benchmarks.opening", "--here", name]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        one = json.loads(out.splitlines()[-1])
        parts = [float(one[f"{what}_s"]) for what in ("shapes", "groups", "paths")]
        print(
            f"{name:<16}"
            + "".join(f"{one[column]:>12,}" for column in columns)
            + "".join(f"{part:>{width}.2f}" for part, width in zip(parts, (10, 10, 9), strict=True))
            + f"{100 * sum(parts) / float(one['replay_s']):>6.1f}%",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(opening(sys.argv[2])))
    else:
        main(sys.argv[1:])
