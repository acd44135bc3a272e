"""Arrays of loops: where they are, and that they begin with a cache line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cosim.engine.state import RANK
from cosim.network.growing import CACHE_LINE, ArrayLayout, GrowingArrays, address_of, zeros

ROWS = np.zeros(8, RANK)
CONSTANT = np.arange(3)
CONSTANT.flags.writeable = False


@pytest.mark.parametrize(
    "array",
    [np.zeros(5), np.zeros((3, 4), np.int32)[1], ROWS, ROWS[3:], CONSTANT, np.frombuffer(b"abcd", np.int8)],
)
def test_the_address_of_an_array_is_what_numpy_says(array: NDArray[Any]) -> None:
    assert address_of(array) == array.ctypes.data


@pytest.mark.parametrize("shape", [(0,), (7,), (3, 5)])
def test_arrays_begin_with_a_cache_line(shape: tuple[int, ...]) -> None:
    made = zeros(shape, RANK)
    assert made.ctypes.data % CACHE_LINE == 0
    assert made.shape == shape
    assert not made.tobytes().strip(b"\0")


def test_arrays_of_one_piece_begin_with_cache_lines_and_keep_apart() -> None:
    shapes = {
        "a": ((3,), RANK),
        "b": ((0,), RANK),
        "c": ((1 << 15, 2), np.dtype(np.int64)),
        "d": ((5,), RANK),
    }
    made = ArrayLayout(shapes).zeros()
    for name, one in made.items():
        assert one.ctypes.data % CACHE_LINE == 0
        assert (one.shape, one.dtype) == shapes[name]
        assert not one.tobytes().strip(b"\0")
        one.view(np.uint8).fill(255)
        others = [other for each, other in made.items() if each != name]
        assert not any(other.tobytes().strip(b"\0") for other in others)
        one.view(np.uint8).fill(0)


def test_what_grows_together_keeps_its_rows_and_what_is_long_enough_stays() -> None:
    arrays = GrowingArrays({"a": np.arange(3), "b": np.ones((40, 2)), "c": np.zeros(0, np.int32)})
    before = arrays["b"]
    assert arrays.reserve_all({"a": 50, "b": 40, "c": 1}) == ["a", "c"]
    assert arrays["b"] is before
    assert len(arrays["a"]) >= 50
    assert arrays["a"][:4].tolist() == [0, 1, 2, 0]
    assert len(arrays["c"]) >= 1
