"""Text files, whole or line by line, with errors that say where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cosim.errors import InputError, Location, WorkloadError

MOST_RANKS = (1 << 19) - 1
"""Flow keys have 19 bits for a rank."""
MAX_BYTES = 256 << 20
"""A file above this isn't read whole."""

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
        if path.stat().st_size > MAX_BYTES:
            raise error(f"is larger than the {MAX_BYTES >> 20} MiB that are read", location=place)
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise error(f"can't be read: {problem.strerror or problem}", location=place) from None
    except UnicodeDecodeError as problem:
        line = problem.object.count(b"\n", 0, problem.start) + 1
        raise error("is not text", location=Location(str(path), line), hint=_NOT_TEXT) from None


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and lines without their ends.

    Raises
    ------
    WorkloadError
        The file can't be read, is not text, or has a line of more than a megabyte.
    """
    number = 0
    try:
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
