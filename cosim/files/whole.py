"""One file, written whole or not at all: what was there before stays until the new one is complete."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cosim.errors import InputError, Location
from cosim.files.reads import ends_of, keep_read

_PART = ".cosim-part-"
_LEFT_S = 3600.0
"""A part that has not grown for so long is of a process that died."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place for the new content of a file, beside it, from where it comes in one step at the end.

    What is no file, as ``/dev/stdout``, is written to directly. Where a link leads, the file there is
    replaced. Raises OSError, and InputError where it is a file that this command has read.
    """
    target = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():  # of a pipe, `target` is no name
        yield path
        return
    keep_read(target)
    for left in target.parent.glob(f"{_PART}*"):
        if time.time() - left.stat().st_mtime > _LEFT_S:  # wall time: files have no other
            left.unlink(missing_ok=True)
    part = target.with_name(f"{_PART}{secrets.token_hex(4)}{target.suffix}")
    try:
        yield part
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def keep_others(path: Path, sign: str, what: str) -> None:
    """See that a file to be written replaces only what cosim wrote, with the ``sign`` at its head or end.

    Raises
    ------
    InputError
        There is another file; ``what`` names the kind that would be replaced.
    """
    try:
        if not path.is_file():
            return
        ends = ends_of(path, 1 << 16)
    except OSError:
        return  # who writes says so
    if ends and sign.encode() not in ends:
        raise InputError(
            f"is there already, and is no {what} that cosim wrote",
            location=Location(str(path)),
            hint="name another file, or remove it",
        )
