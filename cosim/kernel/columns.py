"""What Python has of a container of the kernel's: its arrays by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cosim.kernel.layout import Field, header
from cosim.kernel.library import KernelLibrary, kernel, memory, move, pointer

_LEAST_ROWS = 16


class Columns:
    """A container of ``kernel.h``: ``class FlowStore(Columns)`` is its ``struct flow_store``.

    ``columns.name`` is, as the header has it

    - of a COLUMN or a GRID the numpy array that was put there, which is held;
    - of a GROWN column a view of the kernel's memory with all its room, stale after the kernel was called or
      room was reserved: it is to be taken again;
    - of a record an array of that one record, which stays where it is;
    - of a number an integer; of another container its object.

    What is not given is empty or zero. ``columns.name = value`` is ``put(name=value)``.
    """

    container: ClassVar[str] = ""
    _fields: ClassVar[dict[str, Field]] = {}
    _words_of: ClassVar[int] = 0
    _grown: ClassVar[tuple[int, ...]] = ()
    address: int
    """Where it is."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "container" not in vars(cls) and not cls.container:
            cls.container = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        try:
            known = header().container(cls.container)
        except KeyError:
            raise TypeError(f"{cls.__name__}: kernel.h has no container `struct {cls.container}`") from None
        cls._words_of, cls._fields = known.words, known.fields
        cls._grown = tuple(field.place for field in known.fields.values() if field.kind == "grown")
        for name, field in known.fields.items():
            if hasattr(Columns, name) or name in ("address", "pointer"):
                raise TypeError(f"struct {cls.container}: {name} is a name of Columns's own")
            if field.kind == "grown":
                setattr(cls, name, _Grown(field))
            elif field.kind == "number":
                setattr(cls, name, _Number(field))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **given: Any) -> None:
        held = vars(self)
        words = np.zeros(self._words_of, np.int64)
        held["address"] = address = words.ctypes.data
        held["pointer"] = pointer(address)
        held["_words"] = words
        raw: Any = words
        held["_numbers"] = memoryview(raw)
        held["_room"] = _Room(words, self._grown)
        held["_views"] = {}
        for name, field in self._fields.items():
            if field.kind == "record":
                end = field.place + field.dtype.itemsize // 8
                held[name] = words[field.place : end].view(field.dtype)
            elif field.kind == "column" and name not in given:
                held[name] = np.empty(0, field.dtype)
        self.put(**given)

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._fields.get(name)
        if field is None:
            super().__setattr__(name, value)
        elif field.kind == "number":
            self._words.view(field.dtype)[field.place] = value
        else:
            self.put(**{name: value})

    @classmethod
    def fields(cls) -> Mapping[str, Field]:
        """What the header says of the container, by name."""
        return cls._fields

    def put(self, **given: Any) -> None:
        """Have other arrays, numbers or parts in some places; records and GROWN columns are copied."""
        held, words = vars(self), self._words
        for name, value in given.items():
            field = self._fields[name]
            place = field.place
            if field.kind == "part":
                if value.container != field.of:
                    raise TypeError(f"{self.container}.{name} is a {field.of}, not a {value.container}")
                held[name] = value
                words[place] = value.address
            elif field.kind == "record":
                held[name][:] = value
            elif field.kind == "number":
                words.view(field.dtype)[place] = value
            elif field.kind == "grown":
                self._resize(field, len(value))
                if len(value):
                    getattr(self, name)[:] = value
            else:
                self._hold(field, value)

    def _hold(self, field: Field, array: NDArray[Any]) -> None:
        """Have an array as a COLUMN or a GRID."""
        dimensions = 2 if field.kind == "grid" else 1
        flags = array.flags
        if (
            array.dtype != field.dtype
            or array.ndim != dimensions
            or not (flags.c_contiguous and flags.aligned)
        ):
            raise TypeError(
                f"{self.container}.{field.name} is {field.dtype} in one piece, of {dimensions} dimensions, "
                f"not {array.dtype}, of {array.ndim}"
            )
        vars(self)[field.name] = array
        self._words[field.place] = array.ctypes.data
        self._words[field.place + 1 : field.place + 1 + dimensions] = array.shape

    def reserve(self, **rows: int) -> None:
        """Have room for so many rows of GROWN columns: exactly so many where there was none, else at least
        twice as many as before where it grows.
        """
        for name, need in rows.items():
            self._grow(self._fields[name], need)

    def lengthen(self, name: str, rows: int) -> NDArray[Any]:
        """Have at least so many rows in a COLUMN, or room for them in a GROWN one, and return it. Where it
        grows, it has at least twice as many as before.
        """
        field = self._fields[name]
        if field.kind == "grown":
            self._grow(field, max(rows, _LEAST_ROWS))
        elif rows > len(vars(self)[name]):
            self._hold(field, longer(vars(self)[name], rows))
        return getattr(self, name)  # type: ignore[no-any-return]

    def copy(self, rows: Mapping[str, int] | None = None, /, **other: Any) -> Self:
        """A copy with a life of its own: of records, and of GROWN columns the first so many ``rows``, by
        default all. Arrays and parts are shared, unless others are given.
        """
        copied = type(self)()
        words, held = copied._words, vars(copied)
        words[:] = self._words
        for place in self._grown:
            words[place : place + 2] = 0
        used = rows or {}
        for name, field in self._fields.items():
            if name in other:
                continue
            if field.kind == "grown":
                room = int(self._words[field.place + 1])
                copied._resize(field, min(used.get(name, room), room))
                source, place = int(self._words[field.place]), int(words[field.place])
                move(place, source, int(words[field.place + 1]) * field.dtype.itemsize)
            elif field.kind in ("column", "grid", "part") and name in vars(self):
                held[name] = vars(self)[name]
        copied.put(**other)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied, held = self.copy(), vars(self)
        for name, field in self._fields.items():
            if field.kind in ("column", "grid", "part") and name in held:
                copied.put(**{name: deepcopy(held[name], memo)})
        return copied

    def _grow(self, field: Field, need: int) -> None:
        room = int(self._words[field.place + 1])
        if need <= room:
            return
        if not self._resizes(field, max(need, 2 * room)):
            self._resize(field, need)

    def _resize(self, field: Field, rows: int) -> None:
        if not self._resizes(field, rows):
            raise MemoryError(f"no memory for {rows} rows of {self.container}.{field.name}")

    def _resizes(self, field: Field, rows: int) -> bool:
        return bool(kernel.resize(self.address + 8 * field.place, field.dtype.itemsize, rows))


class _Room:
    """What a container and its GROWN columns lie in. Views keep it, so that none outlives it."""

    __slots__ = ("grown", "words")

    def __init__(self, words: NDArray[np.int64], grown: tuple[int, ...]) -> None:
        self.words, self.grown = words, grown

    def __del__(self, kernel: KernelLibrary = kernel) -> None:
        for place in self.grown:
            if address := self.words.item(place):
                kernel.release_memory(address)


_NO_VIEW = None, 0, -1


class _Grown:
    def __init__(self, field: Field) -> None:
        self._name, self._place, self._dtype = field.name, field.place, field.dtype

    def __get__(self, owner: Columns | None, _: type) -> Any:
        if owner is None:
            return self
        numbers, place = owner._numbers, self._place
        address, rows = numbers[place], numbers[place + 1]
        made, last_address, last_rows = owner._views.get(self._name, _NO_VIEW)
        if address != last_address or rows != last_rows:
            made = memory(owner._room, address, self._dtype, rows)
            owner._views[self._name] = made, address, rows
        return made


class _Number:
    def __init__(self, field: Field) -> None:
        self._place, self._dtype, self._is_integer = field.place, field.dtype, field.dtype == np.int64

    def __get__(self, owner: Columns | None, _: type) -> Any:
        if owner is None:
            return self
        if self._is_integer:
            return owner._numbers[self._place]
        return owner._words.view(self._dtype)[self._place].item()


def longer(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """An array of numpy's with room for ``rows``, at least twice as much as before where it grows."""
    if rows <= len(array):
        return array
    new = np.zeros((max(rows, 2 * len(array), _LEAST_ROWS), *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new
