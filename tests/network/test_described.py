"""What one compiled call reads of arrays, beside what numpy says of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cosim.network import twins
from cosim.network.described import MOST_WORDS, PART, _describe, describe
from cosim.network.fluid import FLOW, LINK

KINDS: tuple[np.dtype[Any], ...] = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float64), FLOW, LINK)
SHAPES = st.one_of(st.tuples(st.integers(0, 5)), st.tuples(st.integers(0, 5), st.integers(0, 5)))


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Whole ones, and parts of others, that begin anywhere."""
    shape, skip = draw(SHAPES), draw(st.integers(0, 3))
    kind: np.dtype[Any] = draw(st.sampled_from(KINDS))
    whole: NDArray[Any] = np.zeros((shape[0] + skip, *shape[1:]), kind)
    return whole[skip:]


@given(st.lists(arrays(), max_size=8), st.booleans())
def test_addresses_and_shapes_are_what_numpy_says(given: list[NDArray[Any]], interpreted: bool) -> None:
    count = len(given)
    table, kinds = np.zeros(MOST_WORDS * count, np.int64), np.zeros(count, np.int64)
    objects = np.array([*map(id, given)], np.int64)
    if interpreted:
        twins.interpret(_describe, objects, id(np.ndarray), table, kinds)
    else:
        _describe(objects, id(np.ndarray), table, kinds)
    words = [word for one in given for word in (one.ctypes.data, *one.shape)]
    assert table[: len(words)].tolist() == words
    assert not table[len(words) :].any()
    alike = [(one.dtype, one.ndim) for one in given]
    for one, kind in zip(alike, kinds.tolist(), strict=True):
        assert [other == one for other in alike] == (kinds == kind).tolist()


def test_what_is_no_array_keeps_its_place() -> None:
    one, table = np.zeros(3), np.zeros(6, np.int64)
    assert np.frombuffer(describe([one, "no array", one], table), np.int64)[1] == PART
    assert table.tolist() == [one.ctypes.data, 3, 0, one.ctypes.data, 3, 0]


@pytest.mark.parametrize("wrong", [np.zeros((4, 4))[:, 1], np.zeros((2, 2, 2))])
def test_what_compiled_code_could_not_read_is_refused(wrong: NDArray[Any]) -> None:
    with pytest.raises(AssertionError, match="in one piece"):
        describe([wrong], np.zeros(9, np.int64))
