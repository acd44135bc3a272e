"""Locks of files, which end with the process that has them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK_FILE = ".cosim-lock"
"""In a folder that is held; a process that died leaves it to the next one."""


def try_lock(file: int) -> bool:
    """Lock an open file unless another process has; whether it is. A file system without locks counts as
    locked.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def held_folder(folder: Path) -> Iterator[bool]:
    """Lock a folder while this is entered, unless another process has; whether it is.

    Linux keeps the lock of a folder to the machine, also over NFS. So a byte of :data:`LOCK_FILE` is locked
    as well, which NFS tells other machines of, where it is mounted with locks.

    Raises
    ------
    OSError
        The folder can't be read.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not try_lock(handle):
            yield False
            return
        with _held_between_machines(folder / LOCK_FILE) as held:
            yield held
    finally:
        os.close(handle)


@contextmanager
def _held_between_machines(path: Path) -> Iterator[bool]:
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:  # nobody can write here
            yield True
            return
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except (BlockingIOError, PermissionError):
            os.close(file)
            yield False
            return
        except OSError:  # no locks here
            break
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), path.stat()):
                break
        os.close(file)  # whoever had it has taken it away since it was opened
    try:
        yield True
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(file)
