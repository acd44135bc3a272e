"""Commands in processes of their own, and moments of theirs that a busy machine does not move."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

OWN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from cosim.cli import main
main()
"""
"""What runs the tests may have been told to ignore signals (``nohup``, ``&``), and its children with it."""
PATIENCE_S = 300.0
"""Longer than anything takes: who waits so long waits for what does not come."""
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def wait_for(what: str, condition: Callable[[], object]) -> None:
    """Wait for an event; ``what`` is said when it does not come."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """Processes that a process started, from whichever thread."""
    found: list[int] = []
    for of_thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, of_thread.read_text().split())
    return found


def descendants(pid: int) -> list[int]:
    """The same, and those that they started."""
    own = children(pid)
    return [*own, *(further for one in own for further in descendants(one))]


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    state = _stat(pid)
    return not state or state[0] == "Z"


def all_gone(pids: Iterable[int]) -> bool:
    """Whether all of them have ended."""
    return all(map(is_gone, pids))


def cpu_s(pid: int) -> float:
    """Seconds of CPU time that a process and those that it started have used."""
    own = (_stat(one) for one in (pid, *descendants(pid)))
    # utime, stime, and both of children that have ended: proc(5), counted from the third field on
    return sum(sum(map(int, state[11:15])) for state in own if state) / _TICKS_A_SECOND


def wait_until_it_worked(pid: int, seconds: float) -> None:
    """Wait until a command has used so much CPU time since it catches SIGTERM, or has ended."""
    wait_for("a handler of SIGTERM", lambda: is_gone(pid) or _catches(pid, signal.SIGTERM))
    enough = cpu_s(pid) + seconds
    wait_for(f"{enough:g} s of CPU time", lambda: is_gone(pid) or cpu_s(pid) >= enough)


def _catches(pid: int, number: signal.Signals) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


def _stat(pid: int) -> list[str]:
    """``/proc/PID/stat`` from the third field on: what stands before may have blanks; none of no process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
