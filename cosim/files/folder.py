"""A folder of results: one writer at a time, and its files all of one run or not there at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cosim.errors import InputError, Location
from cosim.files.lock import try_lock


def make_folder(directory: str | Path) -> Path:
    """A folder that can be written to.

    Raises
    ------
    InputError
        It can't be.
    """
    target = Path(directory)
    if target.exists() and not target.is_dir():
        raise InputError("is a file; the run is written to a folder", location=Location(str(target)))
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target):
            pass
    except OSError as error:
        raise cannot_write(target, error) from error

    return target


def cannot_write(target: Path, error: OSError) -> InputError:
    """What a folder says that can't be written."""
    return InputError(f"can't write the run: {error.strerror or error}", location=Location(str(target)))


@contextmanager
def claimed(directory: str | Path) -> Iterator[Path]:
    """Hold a folder, made where there is none, so that nobody else writes to it meanwhile.

    Raises
    ------
    InputError
        It can't be written to, or another run writes to it.
    """
    target = make_folder(directory)
    handle = os.open(target, os.O_RDONLY)
    try:
        if not try_lock(handle):
            raise InputError("another run writes to this folder", location=Location(str(target)))
        yield target
    finally:
        os.close(handle)


PROGRESS_FILE = ".progress.json"
"""In a folder that somebody writes to: how far that is, ``{"done": 3, "total": 10, "text": "..."}``."""


def forget(target: Path, names: Iterable[str]) -> None:
    """Remove files of an earlier run."""
    for name in names:
        (target / name).unlink(missing_ok=True)


@contextmanager
def written_whole(target: Path, names: Iterable[str]) -> Iterator[Path]:
    """A new folder for files that come to ``target`` together when all are written.

    ``names``: which files there are of an earlier run, to be removed; the first of them says that all are
    there, so it goes first and comes last.

    Raises
    ------
    InputError
        They can't be written; nothing is left of them then.
    """
    owned, part = list(names), ""
    try:
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=target) as part:
            yield Path(part)
            forget(target, owned)
            for file in sorted(Path(part).iterdir(), key=lambda file: file.name == owned[0]):
                file.replace(target / file.name)
    except OSError as error:
        raise cannot_write(target, error) from error
    except InputError as error:
        if error.location is None or not part or not error.location.file.startswith(part):
            raise
        raise InputError(error.message, location=Location(str(target)), hint=error.hint) from error
