"""What is looked up of a workload, by whoever runs it, folds it or says what came of it: once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from cosim.workload.program import Workload

_T = TypeVar("_T")


def once(look: Callable[[Workload], _T]) -> Callable[[Workload], _T]:
    """A function whose answer is kept as long as the workload is; the answer may not hold the workload."""
    known: WeakKeyDictionary[Workload, _T] = WeakKeyDictionary()

    @wraps(look)
    def looked_up(workload: Workload) -> _T:
        found = known.get(workload)
        if found is None:
            found = known[workload] = look(workload)
        return found

    return looked_up
