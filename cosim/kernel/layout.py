"""What ``src/kernel.h`` says: records, containers, functions, constants. So nothing is written twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

RENAMED = {"fresh": "begins_message"}
"""Fields of ``struct choice`` that plug-ins knew by another name."""

_TYPES = {
    "int8_t": "i1",
    "int16_t": "i2",
    "int32_t": "i4",
    "int64_t": "i8",
    "uint8_t": "u1",
    "uint64_t": "u8",
    "double": "f8",
}
_WORD = 8
"""Bytes: an address, or a number of rows."""

Kind = Literal["column", "grown", "grid", "record", "number", "part"]
_MACROS: dict[str, tuple[Kind, int]] = {"COLUMN": ("column", 2), "GROWN": ("grown", 2), "GRID": ("grid", 3)}

_COMMENT = re.compile(r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|//[^\n]*")
_BLOCK = re.compile(r"^(struct|enum)\s+(\w+)\s*\{([^}]*)\}\s*;", re.MULTILINE)
_POINTS = ("COLUMN(", "GROWN(", "GRID(", "*")
"""What no record has."""
_FUNCTION = re.compile(r"^(EXPORT|LOOP)\s+(\w+)\s+(\w+)\(([^)]*)\)\s*;", re.MULTILINE)
_MACRO = re.compile(r"(\w+)\(\s*(?:struct\s+)?(\w+)\s*,\s*(\w+)\s*\)")
_STRUCT = re.compile(r"struct\s+(\w+)\s*(\*?)\s*(\w+)")
_POINTER = re.compile(r"(const\s+)?(?:struct\s+)?(\w+)\s*\*\s*\w+")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a container: where it is, in words of 64 bits, and what its values are; a ``part`` is the
    address of another container, whose name is ``of``.
    """

    name: str
    kind: Kind
    place: int
    dtype: np.dtype[Any]
    of: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a function takes. ``of`` names a container; ``constant``: the array is only read."""

    kind: Literal["container", "array", "int", "double"]
    of: str = ""
    dtype: np.dtype[Any] | None = None
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """``returns`` is "int", "double" or "none". A ``loop`` is called by its address."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    loop: bool


@dataclass(frozen=True, slots=True)
class Container:
    """How many words it has, and what is in them."""

    words: int
    fields: dict[str, Field]


class Header:
    """A header that keeps to the part of C which its first comment describes.

    Most runs need few of its records: each is read when it is asked for.
    """

    def __init__(self, text: str) -> None:
        plain = _COMMENT.sub(" ", text)
        self.constants: dict[str, int] = {}
        self._structs: dict[str, str] = {}
        for what, name, body in _BLOCK.findall(plain):
            if what == "struct":
                self._structs[name] = body
            else:
                self._read_enum(body)
        self._functions = {
            name: (mark, returns, given) for mark, returns, name, given in _FUNCTION.findall(plain)
        }
        self._records: dict[str, np.dtype[Any]] = {}
        self._containers: dict[str, Container] = {}

    @property
    def records(self) -> dict[str, np.dtype[Any]]:
        """All of them."""
        return {name: self.record(name) for name in self._structs if not self._is_container(name)}

    @property
    def containers(self) -> dict[str, Container]:
        """All of them."""
        return {name: self.container(name) for name in self._structs if self._is_container(name)}

    @property
    def functions(self) -> dict[str, Function]:
        """All of them."""
        return {name: self.function(name) for name in self._functions}

    def record(self, name: str) -> np.dtype[Any]:
        """The numpy type of a record, the same object each time.

        Raises
        ------
        KeyError
            There is none of this name.
        """
        if name not in self._records:
            self._records[name] = _record(name, self._structs[name])
        return self._records[name]

    def container(self, name: str) -> Container:
        """A container's fields.

        Raises
        ------
        KeyError
            There is none of this name.
        """
        if name not in self._containers:
            self._containers[name] = self._read_container(name)
        return self._containers[name]

    def function(self, name: str) -> Function:
        """What a function takes and returns.

        Raises
        ------
        KeyError
            There is none of this name.
        """
        mark, returns, given = self._functions[name]
        kind = {"void": "none", "double": "double", "int64_t": "int"}[returns]
        listed = [one.strip() for one in given.split(",")]
        parameters = () if listed in ([""], ["void"]) else tuple(map(self._parameter, listed))
        return Function(name, parameters, kind, mark == "LOOP")

    def _is_container(self, name: str) -> bool:
        return any(mark in self._structs.get(name, "") for mark in _POINTS)

    def _read_enum(self, body: str) -> None:
        value = -1
        for one in _parts(body, ","):
            name, _, given = map(str.strip, one.partition("="))
            value = (
                value + 1
                if not given
                else self.constants[given]
                if given in self.constants
                else int(given, 0)
            )
            self.constants[name] = value

    def _read_container(self, name: str) -> Container:
        fields: dict[str, Field] = {}
        place = 0
        for line in _parts(self._structs[name], ";"):
            for field, words in self._read_fields(line, place):
                fields[field.name] = field
                place += words
        return Container(place, fields)

    def _read_fields(self, line: str, place: int) -> Iterator[tuple[Field, int]]:
        """The fields that a line declares, and how many words each has."""
        if found := _MACRO.fullmatch(line):
            macro, of, name = found.groups()
            kind, words = _MACROS[macro]
            yield Field(name, kind, place, self._type(of)), words
        elif found := _STRUCT.fullmatch(line):
            of, star, name = found.groups()
            if star:
                yield Field(name, "part", place, np.dtype(np.int64), of), 1
            else:
                dtype = self.record(of)
                if dtype.itemsize % _WORD:
                    raise ValueError(f"struct {of} in a container is no multiple of 8 bytes")
                yield Field(name, "record", place, dtype), dtype.itemsize // _WORD
        else:
            kind_of, names = line.split(None, 1)
            dtype = np.dtype(_TYPES[kind_of])
            if dtype.itemsize != _WORD:
                raise ValueError(f"{line}: a number in a container has 8 bytes")
            for k, name in enumerate(_parts(names, ",")):
                yield Field(name, "number", place + k, dtype), 1

    def _type(self, name: str) -> np.dtype[Any]:
        return np.dtype(_TYPES[name]) if name in _TYPES else self.record(name)

    def _parameter(self, text: str) -> Parameter:
        pointer = _POINTER.fullmatch(text)
        if pointer is None:
            return Parameter({"double": "double", "int64_t": "int"}[text.split()[0]])  # type: ignore[arg-type]
        constant, of = bool(pointer[1]), pointer[2]
        if self._is_container(of):
            return Parameter("container", of=of)
        return Parameter("array", dtype=self._type(of), constant=constant)


def _parts(text: str, by: str) -> Iterator[str]:
    return filter(None, map(str.strip, text.split(by)))


def _record(struct: str, body: str) -> np.dtype[Any]:
    """The numpy type of a record, which lies as the compiler has it: nothing is between fields or behind."""
    fields: list[Any] = []
    place, widest = 0, 1
    for line in _parts(body, ";"):
        kind, names = line.split(None, 1)
        code = _TYPES[kind]
        size = int(code[1])
        for name in _parts(names, ","):
            plain, _, length = name.partition("[")
            count = int(length.rstrip("]")) if length else 1
            fields.append((plain, code, (count,)) if length else (plain, code))
            if place % size:
                raise ValueError(f"struct {struct}: padding before {plain}")
            place, widest = place + size * count, max(widest, size)
    if place % widest:
        raise ValueError(f"struct {struct}: padding at its end")
    return np.dtype(fields)


@cache
def header() -> Header:
    """The kernel's."""
    from cosim.kernel.build import SOURCES

    return Header((SOURCES / "kernel.h").read_text(encoding="utf-8"))


def record(name: str) -> np.dtype[Any]:
    """The numpy type of a record of the header: of ``struct event``, for ``event``."""
    return header().record(name)
