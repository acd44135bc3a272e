"""Starting a server: a command in a process group of its own, which never outlives this process.

The command is given ``--address`` and says ``LISTENING address`` on standard output when it takes calls.
What it writes to standard error is kept, and its end shown in errors. On Linux the kernel ends the server
when the thread that started it dies, whatever the reason; elsewhere, at exit.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

from cosim.errors import LaunchError, ServerDiedError

_TAIL_BYTES = 4096  # of what a server wrote to stderr, shown with an error
_DIE_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() != int(sys.argv[1]):  # it died in between
    sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Run in a small Python of its own: a function to be run between fork and exec would make Python fork,
and not vfork, and gRPC's threads don't bear that."""
_started: weakref.WeakSet[ServerProcess] = weakref.WeakSet()


class ServerProcess:
    """A server process. ``address`` is where it listens.

    Parameters
    ----------
    command
        Program and arguments; ``--address`` and one are appended.
    address
        Where to listen; None: a unix socket in a folder of its own.
    timeout_s
        How long it may take until it listens.

    Raises
    ------
    LaunchError
        No such program, or it ended by itself. With the end of its standard error.
    ServerDiedError
        It was killed, or froze: it did not listen in time. Another may do better.
    """

    def __init__(
        self, command: Sequence[str], *, address: str | None = None, timeout_s: float = 30.0
    ) -> None:
        self.command = list(command)
        self._folder = Path(tempfile.mkdtemp(prefix="cosim-"))
        self._log = self._folder / "stderr"
        wanted = address or f"unix:{self._folder / 'socket'}"
        whole = [*self.command, "--address", wanted]
        if sys.platform == "linux" and shutil.which(self.command[0]):
            # A client that is killed runs no clean-up: the kernel ends its server.
            whole = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *whole]
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    whole,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise LaunchError(f"can't start {self.command[0]!r}: {error.strerror or error}") from error
        _started.add(self)
        try:
            self.address = self._wait(timeout_s)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The number of the process, which is its group's, too."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def stderr_tail(self, lines: int = 12) -> str:
        """The end of what it wrote to standard error."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                text = log.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join(text.strip().splitlines()[-lines:])

    def how_it_ended(self, wait_s: float = 1.0) -> str:
        """``killed by SIGKILL``, ``ended with 3``, or that it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(wait_s)
        code = self._process.returncode
        if code is None:
            return "still runs"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def stop(self, grace_s: float = 2.0) -> None:
        """End the whole group: SIGTERM, and after ``grace_s`` SIGKILL. May be called twice."""
        _started.discard(self)
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        # Of its group others may be left, which did not end with it.
        self._signal(signal.SIGKILL)
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _wait(self, timeout_s: float) -> str:
        """Read standard output up to the line that says the address."""
        out = self._process.stdout
        assert out is not None
        # It may say half a line and hang: a read that waits would outlast the time limit.
        os.set_blocking(out.fileno(), False)
        deadline = time.monotonic() + timeout_s
        text = b""
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                if not selector.select(left):
                    continue
                piece = os.read(out.fileno(), 65536)
                if not piece:
                    said = f"{self.command[0]} {self.how_it_ended()} before it listened"
                    # Killed, it may be started again; one that ends by itself would do so again.
                    killed = (self._process.returncode or 0) < 0
                    raise (ServerDiedError if killed else LaunchError)(said, server_log=self.stderr_tail())
                text += piece
                for line in text.splitlines(keepends=True):
                    if line.startswith(b"LISTENING ") and line.endswith(b"\n"):
                        return line.split(None, 1)[1].strip().decode()
        raise ServerDiedError(
            f"{self.command[0]} did not say LISTENING within {timeout_s:g} s", server_log=self.stderr_tail()
        )


@atexit.register
def _stop_all() -> None:
    for one in list(_started):
        one.stop(grace_s=0.5)
