"""Locks of files, which end with the process that has them."""

from __future__ import annotations

import fcntl


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
