"""What is made once and kept for later runs, in the user's cache: one process makes it, others wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cosim.errors import InputError, Location
from cosim.files.lock import try_lock

PATIENCE_S = 3600.0
"""Nothing that is made here takes so long."""
_GLANCE_S = 0.05


def cache_folder(part: str) -> Path:
    """``XDG_CACHE_HOME/cosim/PART``, by default in ``~/.cache``; it may not be there yet.

    Raises
    ------
    InputError
        Nobody knows where the home is.
    """
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError as error:
        raise InputError(f"no cache: {error}", hint="set XDG_CACHE_HOME to a folder") from error
    return base / "cosim" / part


@contextmanager
def making(lock: Path, what: str, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Be the only process that makes ``what``; ``lock`` is a file, whose folder is made. Who comes meanwhile
    waits, and then looks whether it is there. A lock ends with its process.

    Raises
    ------
    InputError
        The folder can't be written to; or another process has had the lock for :data:`PATIENCE_S`.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"can't keep {what}: {error.strerror or error}",
            location=Location(str(lock.parent)),
            hint="set XDG_CACHE_HOME to a folder that can be written to",
        ) from error
    try:
        _wait(file, lock, what, say or (lambda _: None))
        yield
    finally:
        os.close(file)


def _wait(file: int, lock: Path, what: str, say: Callable[[str], None]) -> None:
    if try_lock(file):
        return
    say(f"another process makes {what}; waiting for it")
    until = time.monotonic() + PATIENCE_S
    while not try_lock(file):
        if time.monotonic() > until:
            raise InputError(
                f"another process makes {what} and hasn't ended in {PATIENCE_S:.0f} s",
                location=Location(str(lock)),
                hint="end it: its lock ends with it",
            )
        time.sleep(_GLANCE_S)
