"""One process answers a question at a time: who comes second waits, and finds what the first has stored."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cosim.experiment.store.question import Question

_FILE = "claims"
_BITS = 60


@contextmanager
def claim(address: str, question: Question) -> Iterator[None]:
    """Hold a store's question. A claim is a lock of one byte of a file, and ends with its process.

    Where a store lies elsewhere (``s3://``), or its file system has no locks, both run it, as the same.
    """
    file = _opened(address)
    if file is None:
        yield
        return
    try:
        with suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, int(question.key, 16) >> (4 * len(question.key) - _BITS))
        yield
    finally:
        os.close(file)


def _opened(address: str) -> int | None:
    if "://" in address:
        return None
    try:
        return os.open(Path(address) / _FILE, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        return None
