"""JSON files of gigabytes: the long lists of the outermost object one element at a time."""

from __future__ import annotations

import json
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, TextIO

from cosim.errors import Location, WorkloadError

_CHUNK = 1 << 20
_LONGEST = 1 << 26
"""Characters that a single element may have; a file that needs more is no trace."""
_DECODER = json.JSONDecoder(parse_float=Decimal)  # a double can't hold nanoseconds since 1970
_SPACE = " \t\r\n"


class _Buffer:
    """The part of a text that is being looked at."""

    def __init__(self, text: TextIO, file: str) -> None:
        self.source, self.file = text, file
        self.text, self.at, self.before, self.ended = "", 0, 0, False

    def more(self) -> bool:
        """Read on; False at the end."""
        if self.ended:
            return False
        try:
            left = len(self.text) - self.at
            chunk = self.source.read(max(_CHUNK, min(left, _LONGEST - left)))
        except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error, lzma.LZMAError) as error:
            raise self.error(f"can't be read on: {error}") from None
        self.before += self.at
        self.text, self.at = self.text[self.at :] + chunk, 0
        self.ended = not chunk
        return bool(chunk)

    def peek(self) -> str:
        """The next character that isn't space; "" at the end."""
        while True:
            while self.at < len(self.text):
                if self.text[self.at] not in _SPACE:
                    return self.text[self.at]
                self.at += 1
            if not self.more():
                return ""

    def take(self, wanted: str, what: str) -> None:
        """Go past a character that must be there."""
        found = self.peek()
        if found != wanted:
            raise self.error(f"{_shown(found)} where {what} should be")
        self.at += 1

    def value(self, what: str) -> Any:
        """The JSON value that begins here."""
        self.peek()
        while True:
            try:
                found, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                left = len(self.text) - self.at
                # An error well before the end is the file's; one near it may be the buffer's.
                if (error.pos < len(self.text) - 64 and "Unterminated" not in error.msg) or left > _LONGEST:
                    raise self.error(f"{what} is not JSON: {error.msg}", error.pos) from None
                if not self.more():
                    raise self.error(f"the file ends inside {what}, or {error.msg}") from None
                continue
            except InvalidOperation:
                raise self.error(f"{what} has a number with too large an exponent") from None
            except (RecursionError, ValueError) as error:  # nested too deep; a number of too many digits
                raise self.error(f"{what} can't be taken: {error}") from None
            if end == len(self.text) and not isinstance(found, (dict, list, str)) and self.more():
                continue  # a number may go on in the next chunk
            self.at = end
            return found

    def error(self, message: str, at: int | None = None) -> WorkloadError:
        place = self.before + (self.at if at is None else at)
        return WorkloadError(
            f"character {place}: {message}",
            location=Location(self.file),
            hint="is it a whole PyTorch trace (JSON), as the profiler wrote it?",
        )


def read_object(text: TextIO, file: str, lists: frozenset[str]) -> Iterator[tuple[str, int, Any]]:
    """The outermost object's (key, -1, value); of keys in ``lists`` (key, index, element), one at a time.

    Raises
    ------
    WorkloadError
        Not JSON, no object, or the file ends early; says at which character, and in which element.
    """
    buffer = _Buffer(text, file)
    buffer.take("{", "the beginning of a JSON object")
    if buffer.peek() == "}":
        return
    while True:
        key = buffer.value("a key")
        if not isinstance(key, str):
            raise buffer.error(f"{_shown(str(key))} where a key should be")
        buffer.take(":", f"the colon after {key[:40]!r}")
        if key in lists and buffer.peek() == "[":
            buffer.at += 1
            yield from _elements(buffer, key)
        elif key in lists:
            raise buffer.error(f"{key} is {_shown(buffer.peek())}...; it should be a list")
        else:
            yield key, -1, buffer.value(key[:40])
        if buffer.peek() == "}":
            return
        buffer.take(",", "a comma or the object's end")


def _elements(buffer: _Buffer, key: str) -> Iterator[tuple[str, int, Any]]:
    if buffer.peek() == "]":
        buffer.at += 1
        return
    index = 0
    while True:
        yield key, index, buffer.value(f"{key}[{index}]")
        index += 1
        if buffer.peek() == "]":
            buffer.at += 1
            return
        buffer.take(",", f"a comma after {key}[{index - 1}]")


def _shown(found: str) -> str:
    return repr(found[:40]) if found else "the file's end"
