"""Whether what a plug-in gives is what its base asks for: values are held against the types of their fields.

What comes with cosim is held to them by mypy; a plug-in's author may not have it, and a value of another type
would be a traceback somewhere in the engine, far from the line that made it.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Literal, Union

import numpy as np

from cosim.errors import InputError

_NUMBERS: dict[object, type] = {int: Integral, float: Real}
"""What passes for one: numpy's numbers, too."""
_Misfit = Callable[[Any], str]
"""Nothing, or where in a value what is wrong, as in ``[3].kind is a module, no OpKind``."""


def is_foreign(kind: Any) -> bool:
    """Whether a class is somebody else's: a plug-in's."""
    return str(kind.__module__).partition(".")[0] != "cosim"


def check_answer(spec: object, method: str, answer: object, wanted: Any) -> None:
    """Refuse what a plug-in's method gave, if it or anything in it is not of the type that it should be.

    Raises
    ------
    InputError
        Says what it gave, and where in it what is wrong.
    """
    author: type[Any] = type(spec)
    name = f"{author.__name__}.{method}"
    if not isinstance(answer, _NUMBERS.get(wanted, typing.get_origin(wanted) or wanted)):
        raise InputError(f"{name} gave {_called(answer)}; it should give {_one(wanted.__name__)}")
    if is_foreign(author) and (wrong := misfit(answer, wanted)):
        raise InputError(f"{name} gave {_one(wanted.__name__)} whose {wrong.removeprefix('.')}")


def misfit(value: object, wanted: object) -> str:
    """What in ``value`` is not of the declared type, as a text; nothing, where all is."""
    return _of(wanted)(value)


@lru_cache(maxsize=1000)
def _of(wanted: Any) -> _Misfit:
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (Union, types.UnionType):
        return _union([_of(one) for one in inner], " or ".join(map(_shown, inner)))
    if origin is Literal:
        return lambda value: "" if value in inner else f" is {value!r}, none of {inner}"
    if origin is np.ndarray:
        return _array(np.dtype(typing.get_args(inner[1])[0]).kind)
    if origin is type:
        base = inner[0]
        return lambda value: (
            "" if isinstance(value, type) and issubclass(value, base) else _is_no(value, wanted)
        )
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(origin, _of(inner[0]), _of(inner[1]))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Sequence):
        return _sequence(origin, inner)
    if wanted is Any or not isinstance(wanted, type) or getattr(wanted, "_is_protocol", False):
        return lambda _: ""  # nothing that can be seen from outside
    if is_dataclass(wanted):
        return _dataclass(wanted)
    kind = _NUMBERS.get(wanted, wanted)
    return lambda value: "" if isinstance(value, kind) else _is_no(value, wanted)


def _union(arms: list[_Misfit], listed: str) -> _Misfit:
    def check(value: Any) -> str:
        found = [arm(value) for arm in arms]
        if "" in found:
            return ""
        # Where it is right in itself, what is wrong in it says more than what else it might be.
        return next((one for one in found if not one.startswith(" ")), f" is {_called(value)}, no {listed}")

    return check


def _array(kind: str) -> _Misfit:
    names = {"i": "whole numbers", "f": "numbers", "b": "truth values"}

    def check(value: Any) -> str:
        if not isinstance(value, np.ndarray):
            return f" is {_called(value)}, no numpy array"
        good = value.dtype.kind in {"f": "fiu", "i": "iu"}.get(kind, kind)
        return "" if good else f" is an array of {value.dtype}, not of {names.get(kind, kind)}"

    return check


def _mapping(kind: Any, key: _Misfit, item: _Misfit) -> _Misfit:
    def check(value: Any) -> str:
        if not isinstance(value, kind):
            return _is_no(value, kind)
        for name, one in value.items():
            if wrong := key(name):
                return f"'s key{wrong}"
            if wrong := item(one):
                return f"[{name!r}]{wrong}"
        return ""

    return check


def _sequence(kind: Any, inner: tuple[Any, ...]) -> _Misfit:
    fixed = [_of(one) for one in inner] if kind is tuple and inner[-1:] != (Ellipsis,) else None
    each = _of(inner[0]) if inner else _of(Any)

    def check(value: Any) -> str:
        if not isinstance(value, kind) or isinstance(value, str):
            return _is_no(value, kind)
        if is_dataclass(value):
            return ""  # makes its items when it is asked for them
        if fixed is not None and len(fixed) != len(value):
            return f" has {len(value)} items, not {len(fixed)}"
        for number, one in enumerate(value):
            if wrong := (fixed[number] if fixed is not None else each)(one):
                return f"[{number}]{wrong}"
        return ""

    return check


def _dataclass(kind: Any) -> _Misfit:
    declared: list[tuple[str, _Misfit]] | None = None

    def check(value: Any) -> str:
        nonlocal declared
        if not isinstance(value, kind):
            return _is_no(value, kind)
        if declared is None:  # only now: a type may be of itself
            declared = [(one.name, _of(_annotation(kind, one.name))) for one in fields(kind)]
        for name, of in declared:
            if wrong := of(getattr(value, name)):
                return f".{name}{wrong}"
        return ""

    return check


def _annotation(kind: type, name: str) -> object:
    """The type that a field is declared with; anything, where it can be told to type checkers only."""
    home = next(one for one in kind.__mro__ if name in vars(one).get("__annotations__", {}))
    declared = home.__annotations__[name]
    try:
        return eval(declared, vars(sys.modules[home.__module__])) if isinstance(declared, str) else declared
    except NameError:
        return Any


def _shown(kind: Any) -> str:
    return "None" if kind is type(None) else getattr(kind, "__name__", str(kind))


def _is_no(value: object, wanted: Any) -> str:
    return f" is {_called(value)}, no {_shown(wanted)}"


def _called(value: object) -> str:
    return "None" if value is None else _one(type(value).__name__)


def _one(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"
