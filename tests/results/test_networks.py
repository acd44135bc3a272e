"""Several networks' answers: errors, the order of designs, and where they part."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cosim.results.networks import DesignResult, NetworkComparison, ranks, spearman


def answer(design: str, network: str, iteration_ps: int, collective_ps: int) -> DesignResult:
    collective: Any = SimpleNamespace(
        doubts=(),
        collective="all_reduce",
        algorithm="ring",
        group_size=4,
        size_bytes=1000,
        mean_ps=collective_ps,
    )
    job = SimpleNamespace(iteration_mean_ps=iteration_ps)
    summary: Any = SimpleNamespace(doubts=(), jobs=(job,), collectives=(collective,), end_ps=0)
    return DesignResult(design, network, summary)


ASKED = NetworkComparison(
    ("fast", "true"),
    (
        answer("one", "fast", 90, 45),
        answer("one", "true", 100, 50),
        answer("two", "fast", 130, 60),
        answer("two", "true", 120, 50),
        answer("three", "fast", 120, 70),
        answer("three", "true", 140, 70),
    ),
)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=12))
def test_spearman_is_scipys(pairs: list[tuple[int, int]]) -> None:
    a, b = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    assert ranks(a) == stats.rankdata(a).tolist()
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert spearman(a, b) is None
    else:
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)


def test_errors_are_against_the_last_network() -> None:
    [one, two, three] = ASKED.collectives()
    assert one.errors == pytest.approx((-0.1, 0))
    assert two.errors == pytest.approx((0.2, 0))
    assert three.errors == (0, 0)


def test_designs_in_another_order_are_named() -> None:
    assert ASKED.disagreements("fast") == [("two", "three")]
    assert ASKED.correlation("fast") == pytest.approx(0.5)
    page = str(ASKED)
    assert "true has two before three, fast the other way round" in page
    assert "fast and true part most in two: all_reduce (ring, 4 ranks), 1 kB, +20.0%" in page


def test_json_has_what_the_page_has() -> None:
    said = ASKED.to_json()
    assert said["designs"][0] == {"design": "one", "time_ps": {"fast": 90.0, "true": 100.0}}
    assert said["spearman"] == {"fast": pytest.approx(0.5)}
