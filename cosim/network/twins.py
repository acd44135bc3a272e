"""Compiled functions as the plain Python that they are: what a small run needs no compiler for.

A compiled function's *twin* has the same code, in a module where each name that compiled code gives another
meaning has the meaning that it has there: a compiled function is its own twin, numpy's signed integers and
floats are Python's. Records of structured arrays are read and written in place, by ctypes, which has a field
in a third of the time that numpy takes; so interpreted and compiled code take turns on the same arrays.

The results are the same, bit by bit: floats are IEEE doubles in either, no loop relies on a signed integer
that overflows (one that leaves a field of 64 bits is an error here), hashes are uint64, which wrap round.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Mapping
from ctypes import addressof, memmove
from functools import cache
from types import CellType, FunctionType, SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

_WORD = 2**64 - 1


class _InterpretedRecords(dict[Any, Any]):
    """A structured array: records by place, made when they are first asked for."""

    __slots__ = ("_address", "_array", "_kind", "_size", "shape")

    def __init__(self, array: NDArray[Any]) -> None:
        super().__init__()
        self._array = array  # held while its address is used
        self._address = array.ctypes.data
        self._kind = _record_type(array.dtype)
        self._size = array.dtype.itemsize
        self.shape = array.shape

    def __missing__(self, place: Any) -> Any:
        number = place if not isinstance(place, tuple) else place[0] * self.shape[1] + place[1]
        if not 0 <= number < self._array.size:
            raise IndexError(f"record {place} of {self.shape}")
        made = self._kind.from_address(self._address + number * self._size)
        super().__setitem__(place, made)
        return made

    def __setitem__(self, place: Any, record: Any) -> None:
        memmove(addressof(self[place]), addressof(record), self._size)

    def __len__(self) -> int:
        return len(self._array)


class _Shown:
    """How a debugger shows a record."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr({name: getattr(self, name) for name, *_ in cast("Any", self)._fields_})


@cache
def _record_type(dtype: np.dtype[Any]) -> Any:
    with warnings.catch_warnings():  # of Python 3.14: numpy asks for packed fields, and not for a layout
        warnings.simplefilter("ignore", DeprecationWarning)
        return type("Record", (_Shown, np.ctypeslib.as_ctypes_type(dtype)), {})


class View(SimpleNamespace):
    """What a twin sees of an :class:`~cosim.network.arrays.Arrays`, which says what is put there."""

    def put(self, arrays: Mapping[str, Any]) -> None:
        """See other arrays in some places."""
        vars(self).update({name: _view(one) for name, one in arrays.items()})


def _view(value: Any) -> Any:
    """An argument as a twin takes it: Python's own numbers come out of it, but for uint64."""
    if not isinstance(value, np.ndarray):
        return value._view_() if hasattr(value, "_view_") else value
    if value.dtype.names:
        return _InterpretedRecords(value)
    return value if value.dtype.kind == "u" else memoryview(cast("Any", value))


def _uint64(value: Any) -> np.uint64:
    return np.uint64(value & _WORD)


_NUMPY = SimpleNamespace(int64=int, int32=int, float64=float, uint64=_uint64, inf=np.inf)
"""What compiled functions use of numpy."""

_numbered: list[Callable[..., Any]] = []
_numbers: dict[Any, int] = {}


def number_of(function: Any) -> int:
    """What stands for a function's address where loops are interpreted: below 0."""
    plain = getattr(function, "py_func", function)
    if plain not in _numbers:
        _numbered.append(twin_of(function))
        _numbers[plain] = -len(_numbered)
    return _numbers[plain]


def _call_by_number(number: int, arguments: tuple[Any, ...]) -> Any:
    return _numbered[-1 - number](*arguments)


_instead: dict[int, Any] = {id(np): _NUMPY}
_spaces: dict[str, dict[str, Any]] = {}
_twins: dict[Any, Any] = {}


def means(compiled_only: Any, interpreted: Any = _call_by_number) -> None:
    """Say what stands for something that only compiled code can call; without a word, what calls a function
    by its address.
    """
    _instead[id(compiled_only)] = interpreted


def twin_of(function: Any) -> Callable[..., Any]:
    """The twin of a function: a compiled one, or one that compiled ones call."""
    plain = getattr(function, "py_func", function)
    if plain not in _twins:
        names = plain.__globals__
        space = _spaces.setdefault(plain.__module__, {"__builtins__": builtins, "__name__": plain.__module__})
        cells = tuple(CellType(_meaning(one.cell_contents)) for one in plain.__closure__ or ())
        _twins[plain] = FunctionType(plain.__code__, space, plain.__name__, plain.__defaults__, cells)
        for name in plain.__code__.co_names:
            if name in names and name not in space:
                space[name] = _meaning(names[name])
    return cast("Callable[..., Any]", _twins[plain])


def _meaning(value: Any) -> Any:
    if id(value) in _instead:
        return _instead[id(value)]
    ours = isinstance(value, FunctionType) and value.__module__.startswith("cosim.")
    return twin_of(value) if ours or hasattr(value, "py_func") else value


def interpret(function: Any, *arguments: Any) -> Any:
    """What a compiled function does, done by its twin."""
    with np.errstate(over="ignore"):  # hashes wrap round
        return twin_of(function)(*map(_view, arguments))
