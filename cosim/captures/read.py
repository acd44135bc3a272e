"""Which reader a file or folder needs, told by what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cosim.captures.traffic import Capture
from cosim.errors import InputError, Location

_KNOWN = "counters of ports (.npz or CSV)"


def read_capture(path: Path) -> Capture:
    """Read a capture.

    Raises
    ------
    InputError
        It isn't there, is none of those that are known, or is damaged.
    """
    if path.is_dir():
        raise InputError("a folder that is no run", location=Location(str(path)), hint=f"give {_KNOWN}")
    try:
        with path.open("rb") as file:
            begin = file.read(4096)
    except OSError as error:
        raise InputError(error.strerror or str(error), location=Location(str(path))) from error
    if not begin:
        raise InputError("the file is empty", location=Location(str(path)), hint=f"give {_KNOWN}")
    if begin.startswith(b"PK"):
        from cosim.captures.counters import read_npz

        return read_npz(path)
    return _read_text(path, begin)


def _read_text(path: Path, begin: bytes) -> Capture:
    head = begin.partition(b"\n")[0].decode("utf-8", "replace")
    names = {name.strip() for name in head.split(",")}
    if "port" in names:
        from cosim.captures.counters import read_csv

        return read_csv(path, _lines(path))
    raise InputError(
        "none of the captures that are known", location=Location(str(path)), hint=f"give {_KNOWN}"
    )


def _lines(path: Path) -> Iterator[str]:
    """Lines of a text.

    Raises
    ------
    InputError
        It is no UTF-8.
    """
    with path.open(encoding="utf-8", errors="strict", newline="") as file:
        number = 0
        try:
            for number, line in enumerate(file, 1):
                yield line
        except UnicodeDecodeError as error:
            raise InputError(
                f"not UTF-8: {error}", location=Location(str(path), number + 1), hint="copy it again"
            ) from error
