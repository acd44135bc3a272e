"""What is looked up of a workload or its table by whoever runs it, folds it or says what came of it: once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

_K = TypeVar("_K")
_T = TypeVar("_T")


def once(look: Callable[[_K], _T]) -> Callable[[_K], _T]:
    """A function whose answer is kept as long as what it is of, which the answer may not hold."""
    known: WeakKeyDictionary[_K, _T] = WeakKeyDictionary()

    @wraps(look)
    def looked_up(one: _K) -> _T:
        found = known.get(one)
        if found is None:
            found = known[one] = look(one)
        return found

    return looked_up
