"""Arrays of loops: where they are, and that they begin with a cache line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cosim.engine.state import RANK
from cosim.network.growing import CACHE_LINE, address_of, zeros

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
