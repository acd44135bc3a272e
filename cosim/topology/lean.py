"""Loads compiled functions that numba kept on disk without all that it compiles with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast

from numba import njit
from numba.core.runtime.nrt import rtsys


def load_without_compiler(cache: Any) -> None:
    """Have what is in a cache on disk loaded without all that numba compiles with, which it imports first
    (with scipy, where that is installed, for a linear algebra that no loop has): 0.25 s of a run of 1.5.

    And have what can't be kept there, on a disk that is full, compiled and used all the same.
    """
    cache._guard_against_spurious_io_errors = partial(suppress, OSError)

    def load_overload(signature: Any, context: Any) -> Any:
        # How an array is taken from Python; the rest comes when there is something to compile.
        rtsys.initialize(context)
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, context)

    cache.load_overload = load_overload


def kept(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function when it is first called, and keep it on disk. ``options``: of numba's ``njit``."""
    made = cast("Any", njit)(cache=True, **options)(function)
    load_without_compiler(made._cache)
    return made
