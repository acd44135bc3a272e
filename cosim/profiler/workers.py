"""Processes that run one rank of a script each, as many at a time as this machine has cores.

Importing torch takes longer than most small scripts: one process does it once (``inside --serve``), and each
rank is a fork of it. It is kept for as long as the environment is the same. Where there is no fork, or the
script is to print, each rank is a process of its own from the start.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import IO

from cosim.same_python import same_python

_RANKS = "import runpy; runpy.run_module('cosim.profiler.inside', run_name='__main__')"
_PASSING = frozenset({"PYTEST_CURRENT_TEST", "COLUMNS", "LINES", "PWD", "OLDPWD", "_"})
"""Environment variables that change from call to call and mean nothing to torch."""


def cores() -> int:
    """How many processes run at a time."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def submit(
    order: Path, environment: Mapping[str, str], folder: str, show_output: bool
) -> Future[tuple[int, str]]:
    """Carry out an order in a folder, an answer beside it; exit code and what was said.

    Orders are begun in the order in which they come, so one may wait for what an earlier one does.
    """
    return _pool.submit(_run, order, environment, folder, show_output)


def _run(order: Path, environment: Mapping[str, str], folder: str, show_output: bool) -> tuple[int, str]:
    if show_output or not sys.platform.startswith("linux"):
        outlet = None if show_output else subprocess.PIPE
        done = subprocess.run(
            same_python(_RANKS, str(order)), env=environment, check=False, cwd=folder,
            stdout=sys.stderr if show_output else outlet, stderr=outlet,
        )  # fmt: skip
        return done.returncode, (done.stderr or b"").decode(errors="replace")
    return _server(environment).run(order, folder)


class _ForkServer:
    """The process that has imported torch, and the forks that it makes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            same_python(_RANKS, "--serve"), env=self.environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
        )  # fmt: skip
        self._lock = threading.Lock()
        self._numbers = count()
        self._waiting: dict[int, tuple[threading.Event, list[int]]] = {}
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def run(self, order: Path, folder: str) -> tuple[int, str]:
        """One fork, in a folder."""
        done, code = threading.Event(), [1]
        log = order.with_suffix(".log")
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = done, code
            if not self._ended:
                job = {"number": number, "order": str(order), "log": str(log), "folder": folder}
                assert self._process.stdin is not None
                try:
                    self._process.stdin.write(json.dumps(job) + "\n")
                    self._process.stdin.flush()
                except OSError:  # it has ended: the reader will say so
                    pass
            else:
                done.set()
        done.wait()
        if log.exists():
            return code[0], log.read_text(errors="replace")
        if self._said.closed:
            return code[0], "stopped"
        self._said.seek(0)
        return code[0], self._said.read().decode(errors="replace")

    @property
    def alive(self) -> bool:
        """Whether it can be asked for another fork."""
        return not self._ended

    def close(self) -> None:
        """End it, and what it has under way."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._said.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, code = map(int, line.split())
            done, place = self._waiting.pop(number)
            place[0] = code
            done.set()
        with self._lock:
            self._ended = True
            for done, _ in self._waiting.values():
                done.set()
            self._waiting.clear()


_pool = ThreadPoolExecutor(cores())
_guard = threading.Lock()
_kept: list[_ForkServer] = []
_MOST_KEPT = 2


def _server(environment: Mapping[str, str]) -> _ForkServer:
    wanted = {key: value for key, value in environment.items() if key not in _PASSING}
    with _guard:
        for server in _kept:
            if server.alive and server.environment == wanted:
                return server
        if len(_kept) >= _MOST_KEPT:
            _kept.pop(0).close()
        _kept.append(_ForkServer(wanted))
        return _kept[-1]


@atexit.register
def stop() -> None:
    """End what is under way, and what is kept for later."""
    while _kept:
        _kept.pop().close()
