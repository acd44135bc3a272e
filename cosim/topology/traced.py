"""Settings of a topology that are to vary: it is built once, and says what its links have at any value.

A :class:`TracedNumber` stands in for a setting while the topology is built. What is computed of it is
remembered as a function; what is compared is a guard, which another value has to pass, too. Anything else
that is done with it ends the trace: then the topology has to be built again for each value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = Sequence[NDArray[Any]]
"""The settings of a trace, in their order: float64 or int64 [cases] each."""
_Of = Callable[[Values], Any]


class UntraceableError(Exception):
    """Something was done with a traced number that is not remembered."""


class Trace:
    """What was computed of the settings of one topology.

    Parameters
    ----------
    values
        Of the settings, for which it is built: int or float.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self._guards: list[tuple[_Of, bool]] = []
        self._columns: dict[str, tuple[list[Any], list[int]]] = {}
        self.numbers = [TracedNumber(self, value, _item(k)) for k, value in enumerate(values)]

    def guard(self, of: _Of, passed: bool) -> bool:
        """Remember what a comparison said."""
        self._guards.append((of, passed))
        return passed

    def keep(self, column: str, entries: Sequence[Any], counts: Sequence[int]) -> None:
        """Remember what the links of a column have: so many of each entry."""
        self._columns[column] = [*entries], [*counts]

    def passes(self, values: Values) -> NDArray[np.bool_]:
        """Cases in which all comparisons come out as they did: bool[cases]."""
        found = np.ones(len(values[0]), np.bool_)
        for of, passed in self._guards:
            found &= np.asarray(of(values), np.bool_) == passed
        return found

    def links(self, column: str, values: Values) -> NDArray[Any] | None:
        """What links have in each case: of ``link_rate_bps`` float64, of ``link_latency_ps`` int64 [cases,
        links]; None: it depends on none of the settings.
        """
        if column not in self._columns:
            return None
        entries, counts = self._columns[column]
        found = np.empty((len(values[0]), len(entries)), DTYPES[column])
        for k, one in enumerate(entries):
            found[:, k] = one.of(values) if isinstance(one, TracedNumber) else one
        return np.repeat(found, counts, axis=1)


DTYPES = {"link_rate_bps": np.float64, "link_latency_ps": np.int64}
"""Columns of links that may be traced."""


def _item(number: int) -> _Of:
    return lambda values: values[number]


class TracedNumber:
    """A number that knows how it was computed: ``of`` gives it at other values of the trace."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, value: Any, of: _Of) -> None:
        self._trace, self._value, self.of = trace, value, of

    def _worked_out(self, by: Callable[[Any, Any], Any], one: Any, other: Any) -> TracedNumber:
        (a, of_a), (b, of_b) = _known(one), _known(other)
        return TracedNumber(self._trace, by(a, b), lambda values: by(of_a(values), of_b(values)))

    def _compared(self, by: Callable[[Any, Any], bool], other: Any) -> bool:
        b, of_b = _known(other)
        return self._trace.guard(lambda values: by(self.of(values), of_b(values)), by(self._value, b))

    def __bool__(self) -> bool:
        return self._trace.guard(self.of, bool(self._value))

    def __getattr__(self, name: str) -> Any:
        raise UntraceableError(name)

    def __float__(self) -> float:
        raise UntraceableError("float")

    def __int__(self) -> int:
        raise UntraceableError("int")

    def __index__(self) -> int:
        raise UntraceableError("index")

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise UntraceableError("array")

    def __format__(self, _: str) -> str:
        raise UntraceableError("format")

    def __str__(self) -> str:
        raise UntraceableError("str")


def _known(one: Any) -> tuple[Any, _Of]:
    if isinstance(one, TracedNumber):
        return one._value, one.of
    if type(one) not in (int, float):
        raise UntraceableError(type(one).__name__)
    return one, lambda _: one


def _arithmetic(name: str) -> None:
    by = getattr(operator, name)
    setattr(TracedNumber, f"__{name}__", lambda self, other: self._worked_out(by, self, other))
    setattr(TracedNumber, f"__r{name}__", lambda self, other: self._worked_out(by, other, self))


def _comparison(name: str) -> None:
    by = getattr(operator, name)
    setattr(TracedNumber, f"__{name}__", lambda self, other: self._compared(by, other))


for _name in ("add", "sub", "mul", "truediv"):
    _arithmetic(_name)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _comparison(_name)


def link_column(column: str, entries: Sequence[Any], counts: Sequence[int]) -> NDArray[Any]:
    """What links have, so many of each entry; where entries are traced, that is remembered, too."""
    traced = [one for one in entries if isinstance(one, TracedNumber)]
    if traced:
        traced[0]._trace.keep(column, entries, counts)
        entries = [one._value if isinstance(one, TracedNumber) else one for one in entries]
    return np.repeat(np.array(entries, DTYPES[column]), counts)
