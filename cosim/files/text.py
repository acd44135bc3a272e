"""Text files, whole or line by line, with errors that say where."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from cosim.errors import InputError, Location, WorkloadError

MOST_RANKS = (1 << 19) - 1
"""Flow keys have 19 bits for a rank."""
MAX_BYTES = 256 << 20
"""A file above this isn't read whole."""

PATIENCE_S = 5.0
"""How long a pipe may give nothing."""

_LONGEST = 1 << 20
_NOT_TEXT = "binary or compressed files can't be read"


def read_text(path: Path, error: type[InputError]) -> str:
    """The content of a UTF-8 file.

    Raises
    ------
    error
        The file can't be read, has more than 256 MiB, or is not text.
    """
    place = Location(str(path))
    try:
        mode = path.stat().st_mode
        content = read_pipe(path, error) if stat.S_ISFIFO(mode) else _read_regular(path, error)
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as problem:
        raise error(f"can't be read: {problem.strerror or problem}", location=place) from None
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise error("is not text", location=Location(str(path), line), hint=_NOT_TEXT) from None


def _read_regular(path: Path, error: type[InputError]) -> bytes:
    status = path.stat()
    check_regular(path, error)
    if status.st_size > MAX_BYTES:
        raise _too_large(path, error)
    return path.read_bytes()


def _too_large(path: Path, error: type[InputError]) -> InputError:
    return error(f"is larger than the {MAX_BYTES >> 20} MiB that are read", location=Location(str(path)))


def check_regular(path: Path, error: type[InputError]) -> None:
    """Refuse pipes and devices, which may give nothing for ever, or have no end.

    Raises
    ------
    error
        It is one.
    """
    _refuse_endless(path.stat().st_mode, path, error)


def open_regular(path: Path, error: type[InputError]) -> FileIO:
    """A file of which bytes are read as the system gives them; refuses what :func:`check_regular` does.

    Raises
    ------
    error
        It is a pipe or a device.
    OSError
        It can't be opened.
    """
    file = FileIO(path, opener=_without_waiting)
    try:
        _refuse_endless(os.fstat(file.fileno()).st_mode, path, error)
    except error:
        file.close()
        raise
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # until somebody opens the other end of a pipe


def _refuse_endless(mode: int, path: Path, error: type[InputError]) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # of a folder the system says so
        raise error("is a pipe or a device, not a file", location=Location(str(path)))


def read_pipe(path: Path, error: type[InputError]) -> bytes:
    """What is written to a pipe, such as the shell's ``<(...)``.

    Raises
    ------
    error
        Nobody writes for :data:`PATIENCE_S`, or more than 256 MiB.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # else it waits here until somebody opens the other end
    content = bytearray()
    try:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        while len(content) <= MAX_BYTES:
            if not poll.poll(PATIENCE_S * 1000):
                raise error("is a pipe that nobody writes to", location=Location(str(path)))
            if not (part := os.read(file, 1 << 20)):
                return bytes(content)
            content += part
    finally:
        os.close(file)
    raise _too_large(path, error)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and lines without their ends.

    Raises
    ------
    WorkloadError
        The file can't be read, is not text, or has a line of more than a megabyte.
    """
    number = 0
    try:
        check_regular(path, WorkloadError)
        with path.open(encoding="utf-8") as file:
            while line := file.readline(_LONGEST + 1):
                number += 1
                if len(line) > _LONGEST:
                    raise WorkloadError(
                        f"a line of more than {_LONGEST} characters",
                        location=Location(str(path), number),
                        hint="is it the right file?",
                    )
                yield number, line.rstrip("\n")
    except OSError as error:
        raise WorkloadError(
            f"can't be read: {error.strerror or error}", location=Location(str(path))
        ) from None
    except UnicodeDecodeError:
        raise WorkloadError("is not text", location=Location(str(path), number + 1), hint=_NOT_TEXT) from None


def write_text(path: Path, text: str) -> Path:
    """Write a file whole, in UTF-8.

    Raises
    ------
    InputError
        It can't be written.
    """
    try:
        from cosim.files.whole import whole_file

        with whole_file(path) as part:
            part.write_text(text, "utf-8", "backslashreplace")
    except OSError as problem:
        raise InputError(
            f"can't be written: {problem.strerror or problem}", location=Location(str(path))
        ) from None
    return path
