"""A process beside this one that runs one call after another, and ends with this one, by whatever death.

It is started by a command and not by :mod:`multiprocessing`, whose processes may not be started from those
that Dask starts. Both ends of a socket pair are all that they share: where the other end is closed, it is
over.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
import traceback
import weakref
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.spawn import get_preparation_data, prepare
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from cosim.errors import InputError
from cosim.experiment.store.version import version
from cosim.same_python import same_python

_START = "from cosim.experiment.executors.worker import serve; serve(int(sys.argv[1]))"
_MAIN = ("init_main_from_path", "init_main_from_name")
_of_thread = threading.local()


class Setup(NamedTuple):
    """What a worker needs to be like the process that asks: its folder, its paths, its main module."""

    folder: str
    paths: tuple[str, ...]
    main: tuple[tuple[str, str], ...]
    version: str
    memory_bytes: int | None = None


class WorkerAnswer(NamedTuple):
    """``kind``: value, raised, memory, timeout, or died, of which ``value`` says how."""

    kind: str
    value: Any = None


def current_setup() -> Setup:
    """That of this process."""
    return _setup(str(Path.cwd()), tuple(sys.path))


@cache
def _setup(folder: str, paths: tuple[str, ...]) -> Setup:
    known = get_preparation_data("worker")
    main = tuple((key, known[key]) for key in _MAIN if known.get(key))
    return Setup(folder, paths, main, version())


def worker(setup: Setup) -> WorkerProcess:
    """That of the thread; another where it ended, or where the setup is another."""
    mine: WorkerProcess | None = getattr(_of_thread, "worker", None)
    if mine is None or not mine.is_alive or mine.setup != setup:
        if mine is not None:
            mine.end()
        mine = _of_thread.worker = WorkerProcess(setup)
        if (group := getattr(_of_thread, "group", None)) is not None:
            group.add(mine)
    return mine


class WorkerGroup:
    """The workers of threads that join, to be ended together."""

    def __init__(self) -> None:
        self._workers: weakref.WeakSet[WorkerProcess] = weakref.WeakSet()
        self._ended = False

    def join(self) -> None:
        """Have this thread's workers be of the group."""
        _of_thread.group = self

    def add(self, one: WorkerProcess) -> None:
        """One more; too late, it ends."""
        self._workers.add(one)
        if self._ended:
            one.end()

    def end(self) -> None:
        """End them, whatever they are doing."""
        self._ended = True
        for one in list(self._workers):
            one.end()


class WorkerProcess:
    """The process, from outside."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        ours, theirs = socket.socketpair()
        with theirs:
            command = same_python(_START, str(theirs.fileno()))
            # A session of its own: Ctrl-C reaches all of a terminal's processes, and this one acts for them.
            # What a run has started is of it, and ends with it: a job of Slurm lasts until all of its have.
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )
        self._connection = Connection(ours.detach())
        self._is_ready = False
        self._end = weakref.finalize(self, _end, self._process, self._connection)
        with contextlib.suppress(OSError):  # it died; asked, it says so
            self._connection.send(setup)

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._end.alive and self._process.poll() is None

    def ask(self, packed: bytes, timeout_s: float | None) -> WorkerAnswer:
        """Run a call, which is pickled as (function, argument). Its time begins when the worker is ready."""
        try:
            if not self._is_ready:
                self._connection.recv_bytes()
                self._is_ready = True
            self._connection.send_bytes(packed)
            if not self._connection.poll(timeout_s):
                self.end()
                return WorkerAnswer("timeout")
            answer: WorkerAnswer = self._connection.recv()
        except (OSError, EOFError):
            return WorkerAnswer("died", self._how())
        return answer

    def end(self) -> None:
        """End it now."""
        self._end()

    def _how(self) -> str:
        """How it ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self.end()
        code = self._process.returncode
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _end(process: subprocess.Popen[bytes], connection: Connection) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it is over, with all that it started
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    connection.close()


def serve(descriptor: int) -> None:
    """Run what is asked for: the main function of a worker."""
    connection = Connection(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked: SimpleQueue[bytes] = SimpleQueue()
    try:
        setup: Setup = connection.recv()
    except EOFError:
        return
    threading.Thread(target=_receive, args=(connection, asked), daemon=True).start()
    wrong = _prepare(setup)
    connection.send_bytes(b"ready")
    while True:
        packed = asked.get()
        answer = WorkerAnswer("raised", wrong) if wrong is not None else _run(packed)
        try:
            connection.send(answer)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            connection.send(WorkerAnswer("raised", RuntimeError(f"{answer.value!r} can't be sent: {error}")))
        except OSError:
            os.killpg(0, signal.SIGKILL)


def _receive(connection: Connection, asked: SimpleQueue[bytes]) -> None:
    """Whoever asks is gone when the other end is closed: so is this process, whatever it is doing, and what
    it has started.
    """
    try:
        while True:
            asked.put(connection.recv_bytes())
    except (OSError, EOFError):
        os.killpg(0, signal.SIGKILL)


def _prepare(setup: Setup) -> Exception | None:
    if setup.version != version():
        return InputError(
            f"cosim is {version()} at a worker on {socket.gethostname()}, {setup.version} where it was asked",
            hint="results of two versions may differ: install the same on both",
        )
    if Path(setup.folder).is_dir():
        os.chdir(setup.folder)
    sys.path += [path for path in setup.paths if path not in sys.path and Path(path).exists()]
    with contextlib.suppress(ImportError, OSError):  # elsewhere it may not be; what needs it says so
        prepare(dict(setup.main))
    importlib.import_module("cosim.experiment.store.trials")  # before memory is counted
    if setup.memory_bytes is not None:
        limit_memory(setup.memory_bytes)
    return None


def limit_memory(more_bytes: int) -> None:
    """Let this process, and those that it starts, have no more than so much beyond what it has now."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + more_bytes, hard))


def _data_bytes() -> int:
    """What counts against RLIMIT_DATA now."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmData:")[2].split()[0]) * 1024


def _run(packed: bytes) -> WorkerAnswer:
    try:
        function, argument = pickle.loads(packed)
        return WorkerAnswer("value", function(argument))
    except Exception as error:
        if _is_of_memory(error):
            return WorkerAnswer("memory")
        error.add_note("in a worker:\n" + "".join(traceback.format_exception(error)))
        return WorkerAnswer("raised", error)


def _is_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out: as it is, or as code of a plug-in and its place made it another error."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None
