"""Random programs of processes, most of them wrong, end with a line; wrong.py runs any number."""

from __future__ import annotations

from collections import Counter
from itertools import count, islice

import pytest

import cosim
from tests.processes.wrong import PATIENCE_S, RING, ends, patient


@pytest.mark.parametrize(
    "first", [0, *[pytest.param(k, marks=pytest.mark.slow) for k in range(60, 1000, 60)]]
)
def test_wrong_programs_end_with_a_line(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cosim.processes.simulation.MOST_IN_VAIN", 20_000)
    found: Counter[str] = Counter()
    for seed in islice(count(first), 60):
        with patient(PATIENCE_S):
            found[ends(seed)] += 1
    assert found["done"] < 40
    assert len(found) > 6


@pytest.mark.parametrize("value", [1e400, float("nan"), 10**30, -1, None, "5 parsec"])
def test_sizes_and_times_that_no_number_holds(value: object) -> None:
    with cosim.open({"topology": RING, "network": "fair_share"}) as sim:
        whole: object = sim
        for ask in ("transfer", "compute", "timeout"):
            given = (0, 1, value) if ask == "transfer" else (0, value) if ask == "compute" else (value,)
            with pytest.raises((cosim.WorkloadError, ValueError)):
                getattr(whole, ask)(*given)
