"""``--isolate``: a command in a process beside this one, with limits, which must say that it is through.

Code of a plug-in can end its process in ways that nothing in it can catch: ``os._exit(0)``, a fault in a
library of C, memory without end. The process beside this one says its exit code over a socket as its last
word. Where that does not come, it did not end by itself.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer
from pydantic import Field, ValidationError

from cosim.cli.say import say
from cosim.errors import SimulationError
from cosim.experiment.executors.worker import limit_memory
from cosim.experiment.mistakes import scenario_error
from cosim.files.located_yaml import Document, parse_value
from cosim.same_python import same_python
from cosim.spec import LongPs, SizeBytes, Spec
from cosim.units import PS_PER_S, format_time

_CHILD = "from cosim.cli.isolate import serve; serve()"
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


_inside = False


class IsolationLimits(Spec):
    """What ``--isolate`` takes"""

    timeout: LongPs | None = Field(None, gt=0, description="how long, by the wall's clock; omitted: any time")
    memory: SizeBytes | None = Field(None, gt=0, description="beyond what cosim itself has; omitted: any")


def isolate(given: str) -> None:
    """Run this very command in a process beside this one, and end as it did; there, do nothing.

    Raises
    ------
    InputError
        The limits have a mistake.
    SimulationError
        It took too long, or ended without having come to its end: says how.
    typer.Exit
        It came to its end.
    """
    if _inside:
        return
    limits = _read(given)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = same_python(_CHILD, str(theirs.fileno()), str(limits.memory or 0), *sys.argv[1:])
        # A session of its own: what it has started ends with it.
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        try:
            with _forwarding(process):
                process.wait(None if limits.timeout is None else limits.timeout / PS_PER_S)
        except subprocess.TimeoutExpired:
            assert limits.timeout is not None
            raise SimulationError(f"takes longer than the {format_time(limits.timeout)} it may") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        ours.setblocking(False)
        with suppress(BlockingIOError):
            if said := ours.recv(1):
                raise typer.Exit(said[0])
    raise SimulationError(f"its process {_how(process.returncode)} before it came to its end")


def _read(given: str) -> IsolationLimits:
    document = Document("--isolate", parse_value(given) or {})
    try:
        return IsolationLimits.model_validate(document.value)
    except ValidationError as error:
        raise scenario_error(error, IsolationLimits, document) from None


def _how(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}, as by os._exit({code}) in a plug-in or a library"


@contextmanager
def _forwarding(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Signals that would end this process go to the other one, which keeps what was computed."""
    before = {
        number: signal.signal(number, lambda number, _: process.send_signal(number)) for number in _FORWARDED
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def serve() -> None:
    """What the other process does: the command, and its exit code as the last word."""
    global _inside
    from cosim.cli import main

    _inside = True
    line = socket.socket(fileno=int(sys.argv[1]))
    line.set_inheritable(False)
    memory = int(sys.argv[2])
    sys.argv[1:] = sys.argv[3:]
    threading.Thread(target=_end_with, args=(line,), daemon=True).start()
    if memory:
        limit_memory(memory)
    code: int | str | None = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    except MemoryError:
        say("error: needs more memory than it may have")
        code = 1
    line.sendall(bytes([code if isinstance(code, int) else bool(code)]))
    sys.exit(code)


def _end_with(line: socket.socket) -> None:
    """Whoever started this is gone when the other end is closed."""
    line.recv(1)
    os.killpg(0, signal.SIGKILL)
