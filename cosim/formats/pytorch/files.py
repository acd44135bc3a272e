"""Trace files wherever they are: one file, a folder, a pattern, a .tar(.gz) of them; each plain or .gz.

Nothing is unpacked to disk. An archive is read once, in its own order.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, TextIO, cast

from cosim.errors import Location, WorkloadError

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_MOST_TIMES = 200
"""Larger than its file no trace is: gzip packs profilers' to a thirtieth, xz to a fortieth."""
_ALWAYS_BYTES = 16 << 20
"""A file may unpack to so much, however far it is packed."""
_NUMBER = re.compile(r"\d+(?![a-zA-Z\d])")
_NAMED = re.compile(r"(?:rank|worker|node|gpu)[-_.]?(\d+)", re.IGNORECASE)


def open_traces(path: Path) -> Generator[tuple[str, TextIO], None, None]:
    """(name, text) of each JSON file, to be read before the next is asked for; to be closed.

    Raises
    ------
    WorkloadError
        Nothing there, no trace in it, or it can't be read.
    """
    if path.is_file() and path.name.endswith(_ARCHIVES):
        yield from _archive(path)
        return
    found = 0
    for file in _listed(path):
        found += 1
        try:
            with file.open("rb") as binary:
                yield str(file), _text(binary, file.name, _Left(file))
        except OSError as error:
            raise _unreadable(str(file), error) from None
    if not found:
        raise WorkloadError(
            "there is no trace here",
            location=Location(str(path)),
            hint="give a .json or .json.gz file, a folder or .tar.gz of them, or a pattern: runs/et_*.json",
        )


def ranks_in_names(names: Sequence[str], said: Sequence[int | None]) -> list[int | None]:
    """Ranks of files: those that are ``said``; else the number after ``rank`` or ``worker``; else the last
    number of each name, where these are 0, 1, 2 ...: any other number may be of anything.
    """
    last = [_last_number(name) for name in names]
    if sorted(-1 if number is None else number for number in last) == [*range(len(names))]:
        guessed = last
    else:
        guessed = [rank_in_name(name) for name in names]
    return [guess if rank is None else rank for rank, guess in zip(said, guessed, strict=True)]


def rank_in_name(name: str) -> int | None:
    """The rank that a file's name gives, after ``rank`` or ``worker``."""
    named = _NAMED.search(_stem(name))
    return int(named[1]) if named and len(named[1]) < 8 else None


def _last_number(name: str) -> int | None:
    numbers = _NUMBER.findall(_stem(name))
    return int(numbers[-1]) if numbers and len(numbers[-1]) < 8 else None


def _stem(name: str) -> str:
    return re.sub(r"(\.pt)?(\.trace)?\.json(\.gz)?$", "", name.replace("\\", "/").rsplit("/", 1)[-1])


def _listed(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if _is_trace(file.name) and file.is_file())
    if path.is_file():
        return [path]
    parent = path.parent
    if not parent.is_dir() or not any(sign in path.name for sign in "*?["):
        return []
    return sorted(file for file in parent.glob(path.name) if file.is_file())


def _is_trace(name: str) -> bool:
    return name.endswith((".json", ".json.gz"))


def _archive(path: Path) -> Iterator[tuple[str, TextIO]]:
    found, left = 0, _Left(path)
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                left.check(member.offset_data + member.size)
                if not member.isfile() or not _is_trace(member.name):
                    continue
                binary = archive.extractfile(member)
                if binary is not None:
                    found += 1
                    yield f"{path}!{member.name}", _text(binary, member.name, left)
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise _unreadable(str(path), error) from None
    if not found:
        raise WorkloadError("no .json or .json.gz in the archive", location=Location(str(path)))


class _Left:
    """How much may still come out of a file."""

    def __init__(self, file: Path) -> None:
        self._bytes = max(_ALWAYS_BYTES, _MOST_TIMES * file.stat().st_size)

    def check(self, count: int) -> None:
        """So many bytes are to come."""
        if count > self._bytes:
            raise OSError(f"unpacks to more than {_MOST_TIMES} times its size")

    def take(self, count: int) -> None:
        """So many characters came."""
        self.check(count)
        self._bytes -= count


class _Text(io.TextIOWrapper):
    """UTF-8, as much as may come."""

    def __init__(self, binary: IO[bytes], left: _Left) -> None:
        super().__init__(binary, encoding="utf-8")
        self._left = left

    def read(self, size: int | None = -1) -> str:
        found = super().read(size)
        self._left.take(len(found))
        return found


def _text(binary: IO[bytes], name: str, left: _Left) -> TextIO:
    if name.endswith(".gz"):
        binary = cast("IO[bytes]", gzip.GzipFile(fileobj=binary))
    return _Text(binary, left)


def _unreadable(file: str, error: Exception) -> WorkloadError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return WorkloadError(f"can't be read: {reason}", location=Location(file))
