"""The store after edits; ``python -m tests.lab.fuzz.edits`` tries more."""

from __future__ import annotations

import pytest

from tests.lab.fuzz.edits import sequence


@pytest.mark.parametrize(
    "numbers", [range(1), pytest.param(range(1, 30), marks=pytest.mark.slow)], ids=["1", "30"]
)
def test_no_answer_of_the_store_is_stale(numbers: range) -> None:
    found = [sequence(number) for number in numbers]
    assert [one for _, _, stale in found for one in stale] == []
    assert any(stored for _, stored, _ in found)
