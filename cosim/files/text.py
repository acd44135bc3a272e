"""Text files of others, line by line, with errors that say where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cosim.errors import Location, WorkloadError

MOST_RANKS = (1 << 19) - 1
"""Flow keys have 19 bits for a rank."""

_LONGEST = 1 << 20


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
        raise WorkloadError(
            "is not text",
            location=Location(str(path), number + 1),
            hint="binary or compressed files can't be read",
        ) from None
