"""Columns come back from what the browser is given, by a reader that shares nothing with the writer."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cosim.results.report.packing import packed


def unpacked(text: str) -> tuple[dict[str, object], dict[str, list[int]]]:
    """As ``data.js`` reads it, number by number."""
    body = zlib.decompress(base64.b64decode(text))
    length = int.from_bytes(body[:4], "little")
    head = json.loads(body[4 : 4 + length])
    columns = {}
    for name, (kind, rows, width, at) in head["columns"].items():
        assert kind == "int"
        data, sum_, out = body[4 + length + at :], 0, []
        for row in range(rows):
            folded = sum(data[k * rows + row] << (8 * k) for k in range(width))
            sum_ += -(folded + 1) // 2 if folded % 2 else folded // 2
            out.append(sum_)
        columns[name] = out
    return head, columns


numbers = st.lists(st.integers(-(2**52), 2**52), max_size=30)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(min_size=1), numbers, max_size=4))
def test_whole_numbers_come_back(columns: dict[str, list[int]]) -> None:
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    head, found = unpacked(packed({"name": "</script> ä"}, arrays))
    assert head["name"] == "</script> ä"
    assert found == columns


def test_times_of_an_iteration_take_a_few_bits_each() -> None:
    rng = np.random.default_rng(0)
    starts = np.cumsum(rng.choice([1_000_000, 2_500_000], 50_000))
    assert len(packed({}, {"start": starts})) < 50_000
