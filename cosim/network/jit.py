"""How loops are compiled: cached on disk, without reference counting.

Compiled functions here work on arrays that Python keeps alive, and never allocate. So numba's reference
counts are switched off (``_nrt``); with them, the congestion-aware loop took 20 times as long. There is
no fastmath: results are the same on any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile a function that is called from Python, or seldom."""
    return cast("_F", cast("Any", njit)(cache=True, _nrt=False)(function))


def inlined(function: _F) -> _F:
    """Compile a small function into its callers."""
    return cast("_F", cast("Any", njit)(cache=True, forceinline=True, _nrt=False)(function))
