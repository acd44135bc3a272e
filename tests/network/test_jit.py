"""How loops are compiled: what they compute is what Python computes, and nothing is compiled twice."""

from __future__ import annotations

import errno
import gc
from typing import Any, cast

import numpy as np
import pytest
from numba import njit
from numba.core.caching import IndexDataCacheFile

from cosim.network import jit
from cosim.network.flows import I32, I64

LARGEST = 2**64 - 2


@jit.internal
def _half(value: int) -> int:
    return value >> 1


@jit.internal
def _exceeds_one(value: int) -> bool:
    return value > 1


@jit.inlined
def _least(a: int, b: int) -> int:
    return min(a, b)


@jit.once
def _count_up(numbers: I64, most: int) -> int:
    total = 0
    for number in numbers:
        if number > most:
            break
        total += number
    return total


@jit.once
def _both(numbers: I64, most: int) -> int:
    return _count_up(numbers, most) + _least(len(numbers), most)


@jit.compiled
def _mixed(narrow: I32, wide: I64, large: Any) -> int:
    found = _half(narrow[0]) + _half(wide[0]) + _half(7)
    if not _exceeds_one(large[0]) or _exceeds_one(narrow[0]):
        return -1
    return found + _both(wide, 10) + _both(wide, 20)


def test_a_compiled_loop_computes_what_python_does() -> None:
    """Written into its caller once, twice, nested, inlined or called: the same answer."""
    narrow, wide = np.array([-9], np.int32), np.array([5, 6, 30, 1], np.int64)
    expected = (-9 >> 1) + (5 >> 1) + 3 + (11 + 4) + (11 + 4)
    assert _mixed(narrow, wide, np.array([LARGEST], np.uint64)) == expected


def test_integers_of_any_width_share_one_function() -> None:
    """Signed widths and literals are one; an unsigned integer, whose highest bit is no sign, has its own."""
    _mixed(np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.uint64))
    cast("Any", _mixed).recompile()  # what was taken from the cache on disk has no signatures to look at
    assert sorted(str(one.args[0]) for one in cast("Any", _exceeds_one).nopython_signatures) == [
        "int64",
        "uint64",
    ]


def test_on_a_full_disk_what_is_compiled_is_used_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    @jit.compiled
    def doubled(value: int) -> int:
        return 2 * value

    tried = []

    def full(*_: object) -> None:
        tried.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cast("Any", doubled)._cache, "load_overload", lambda *_: None)
    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", full)
    assert doubled(21) == 42
    assert tried


def test_compiling_leaves_garbage_collection_as_it_was() -> None:
    """Also where a function can't be compiled."""

    @jit.compiled
    def impossible(values: I64) -> int:
        return int(cast("Any", values).no_such_thing)

    assert gc.isenabled()
    with pytest.raises(Exception, match="no_such_thing"):
        impossible(np.zeros(1, np.int64))
    assert gc.isenabled()


def test_numba_itself_stays_as_it_is() -> None:
    """What others compile in this process goes numba's own way."""

    def others(values: Any) -> Any:
        return values[values > 2].sum() + len([one for one in values])  # noqa: C416, our way has no closures

    assert njit(others)(np.array([3, 4, 1])) == 10
