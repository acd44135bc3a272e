from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cosim.engine.collective_records import kinds

ROW = st.tuples(st.integers(0, 2), st.integers(0, 2**50), st.sampled_from([0, 7, 2**20]))


@given(st.lists(ROW, max_size=40))
def test_rows_are_of_a_kind_where_they_are_equal(rows: list[tuple[int, int, int]]) -> None:
    first, kind = kinds(*np.array(rows, np.int64).reshape(-1, 3).T)
    numbers: dict[tuple[int, int, int], int] = {}
    assert kind.tolist() == [numbers.setdefault(row, len(numbers)) for row in rows]
    assert [rows[at] for at in first] == list(numbers)
    assert first.tolist() == [rows.index(row) for row in numbers]
