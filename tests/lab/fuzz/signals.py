"""Commands that are killed, interrupted, frozen, or have no room: what they leave is whole or not there."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import cosim
from cosim.errors import InputError
from tests.cli.processes import OWN, PATIENCE_S, all_gone, descendants, wait_for, wait_until_it_worked
from tests.lab.fuzz.tally import Target, drawn
from tests.protocol.small_run import GOOD

COSIM = (sys.executable, "-c", OWN)
SCENARIO = """
topology: {kind: ring, endpoints: 8, rate: 80Gbps, latency: 1us}
network: NETWORK
record: {messages: npz}
jobs:
  - workload: {kind: collective, collective: all_to_all, ranks: 8, size: 4MB}
    iterations: 300
"""
SERVED = f"{{command: {[*GOOD]!r}, answer_timeout: 20s}}"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP)
CLOSED = (("HOME",), ("TMPDIR",), ("HOME", "XDG_CACHE_HOME"))


def ended(given: tuple[bool, signal.Signals, float]) -> None:
    """A run that gets a signal when it has worked for some time: its folder is a run or none, and nobody is
    left."""
    served, number, worked = given
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "x.yaml").write_text(SCENARIO.replace("NETWORK", SERVED if served else "fair_share"))
        process = subprocess.Popen(
            [*COSIM, "run", "x.yaml", "--out", "out", "-q"], cwd=folder, stderr=subprocess.PIPE, text=True
        )
        wait_until_it_worked(process.pid, worked)
        below = descendants(process.pid)
        process.send_signal(number)
        try:
            _, said = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
        assert "Traceback" not in said, said
        wait_for("the end of what the run started", lambda: all_gone(below))
        assert whole_or_none(folder / "out") or number is signal.SIGKILL, "half a run"


def whole_or_none(folder: Path) -> bool:
    """Whether a folder is of a whole run, or of none."""
    try:
        run = cosim.load_run(folder)
    except InputError:
        return not (folder / "summary.json").exists()
    return len(run.operations.end_ps) >= 0 and not [*folder.glob(".writing*")]


_EACH_LOGGED = (
    "from cosim.cli import main; from cosim.protocol import replay_log; replay_log.BLOCK_BYTES = 1; main()"
)


def frozen(log_bytes: int) -> None:
    """A server that freezes, once the log of its session is so long, is replaced; the result is the same."""
    scenario = SCENARIO.replace("iterations: 300", "iterations: 20").replace("record: {messages: npz}\n", "")
    right = cosim.run(scenario.replace("NETWORK", "congestion_aware")).digest
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "x.yaml").write_text(scenario.replace("NETWORK", SERVED))
        command = [sys.executable, "-c", _EACH_LOGGED, "run", "x.yaml", "--out", "out", "-q"]
        process = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True)
        log = Path(place) / "out" / "injections.log"

        def is_so_far() -> bool:
            return process.poll() is not None or (log.exists() and log.stat().st_size >= log_bytes)

        wait_for("a log", is_so_far)
        for pid in descendants(process.pid):
            os.kill(pid, signal.SIGSTOP)
        try:
            _, said = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
        assert process.returncode == 0, said
        assert cosim.load_run(Path(place) / "out").digest == right


def no_room(most_bytes: int) -> None:
    """Files may have so many bytes, and no more: said in a line, and nothing is left half."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    with tempfile.TemporaryDirectory() as place:
        text = SCENARIO.replace("NETWORK", "fair_share").replace("iterations: 300", "iterations: 9")
        (Path(place) / "x.yaml").write_text(text)
        done = subprocess.run(
            [*COSIM, "run", "x.yaml", "--out", "out", "-q"],
            cwd=place, capture_output=True, text=True, preexec_fn=limited, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        assert whole_or_none(Path(place) / "out"), "half a run"
        is_there = (Path(place) / "out" / "summary.json").exists()
        assert (done.returncode == 0) == is_there, (
            done.stderr
        )  # 1 or 2: a cache, or the run, can't be written


def unwritable(names: tuple[str, ...]) -> None:
    """Home, cache and folder for temporary files that can't be written to."""
    with tempfile.TemporaryDirectory() as place:
        closed = Path(place) / "closed"
        closed.write_text("no folder")  # root may write to any folder, and to none below a file
        (Path(place) / "x.yaml").write_text(
            SCENARIO.replace("NETWORK", "fair_share").replace("iterations: 300", "iterations: 2")
        )
        environment = {**os.environ, **{name: str(closed / "x") for name in names}}
        done = subprocess.run(
            [*COSIM, "run", "x.yaml", "--out", "out", "-q"],
            cwd=place, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        assert whole_or_none(Path(place) / "out"), "half a run"


ROOMS = (0, 1, 100, 4096, 20_000, 65_536, 1 << 20, 1 << 24)


def targets() -> list[Target]:
    """What happens to a command."""
    found: list[tuple[str, Callable[[Random], Any], Callable[[Any], object]]] = [
        (
            "a signal",
            lambda draw: (draw.random() < 0.5, draw.choice(SIGNALS), draw.uniform(0.05, 6.0)),
            ended,
        ),
        ("a frozen server", lambda draw: draw.randint(1_000, 60_000), frozen),
        ("a full disk", lambda draw: draw.choice(ROOMS), no_room),
        ("nowhere to write", lambda draw: draw.choice(CLOSED), unwritable),
    ]
    return [Target(name, drawn(make), attempt) for name, make, attempt in found]
