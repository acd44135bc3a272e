"""``subprocess.run([sys.executable, "-m", ...])``: the script's own Python, which sees the same machine.

A library asks another Python what it does not want to import itself (vLLM: what a model class can do). That
one would have no GPU, so it is a fork of the rank, whose operators nobody records.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from typing import Any

from cosim.profiler.inside import processes

_UNDERSTOOD = frozenset({"input", "capture_output"})
"""Arguments of ``run`` that a fork can do justice to; any other, and it is a process as ever."""


def install() -> None:
    """Take such calls over."""
    plain = subprocess.run

    def run(*given: Any, **named: Any) -> Any:
        command: Any = given[0] if len(given) == 1 else None
        own = isinstance(command, list | tuple) and [*command[:2]] == [sys.executable, "-m"]
        if not own or len(command) < 3 or not named.keys() <= _UNDERSTOOD:
            return plain(*given, **named)
        text = named.get("input") or b""
        if not isinstance(text, bytes) or not named.get("capture_output"):
            return plain(*given, **named)
        return _in_a_fork([*command], text)

    subprocess.run = run  # type: ignore[assignment]


def _in_a_fork(command: list[str], text: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the module with ``text`` to read; what it wrote, and its code."""
    with tempfile.TemporaryFile() as read, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        read.write(text)
        read.seek(0)
        sys.stdout.flush()
        sys.stderr.flush()
        with processes.unnoted():
            child = os.fork()
        if not child:
            for number, file in enumerate((read, out, err)):
                os.dup2(file.fileno(), number)
            _run_module(command[2], command[3:])
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        wrote = []
        for file in (out, err):
            file.seek(0)
            wrote.append(file.read())
        return subprocess.CompletedProcess(command, code, *wrote)


def _run_module(module: str, arguments: list[str]) -> None:
    """As ``python -m`` does, and end the process."""
    code = 0
    try:
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = [module, *arguments]
        sys.modules.pop(module, None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
