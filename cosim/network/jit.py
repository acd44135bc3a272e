"""How the inner loops are compiled: numba, cached on disk, without reference counting.

The arrays belong to Python for as long as a compiled function runs, and nothing is allocated inside; so
numba's runtime (``_nrt``) is off: counting references to arrays inside the loops made them 20 times slower.
No fastmath: results are the same on any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}
_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """Compile a function at its first call."""
    made: _F = njit(**_OPTIONS)(function)
    return made


def inlined(function: _F) -> _F:
    """Compile a small function into its callers."""
    made: _F = njit(forceinline=True, **_OPTIONS)(function)
    return made
