"""Lengths and acceptances as they are asked for: what is refused, and what is drawn."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.errors import InputError
from cosim.profiler.distributions import ACCEPTANCE, LENGTHS, Distribution, check


@pytest.mark.parametrize(
    ("lengths", "acceptance", "said"),
    [
        ("0", "", "0 is not 1 or more"),
        ("few", "", "neither a file nor a distribution"),
        ("zipf", "", "neither"),
        ("uniform:4", "", "neither"),
        ("uniform:9:2", "", "9 is more than 2"),
        ("geometric:0.5", "", "0.5 is not 1 or more"),
        ("lognormal:200:-1", "", "-1 is not 0 or more"),
        ("lognormal:0:1", "", "0 is not 1 or more"),
        ("zipf:-1", "", "-1 is not 0 or more"),
        ("nan", "", "finite"),
        ("", "1.2", "1.2 is not 0 to 1"),
        ("", "uniform:0.5:2", "2 is not 0 to 1"),
        ("", "geometric:2", "neither"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_value(lengths: str, acceptance: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        check("even", lengths, acceptance)
    assert refused.value.hint
    assert (lengths or acceptance) in refused.value.message


@pytest.mark.parametrize(
    ("text", "said"), [("12\nx\n", ":2: 'x'"), ("12\n-3\n", ":2: -3"), ("# none\n", "no len")]
)
def test_a_file_of_lengths_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "lengths").write_text(text)
    with pytest.raises(InputError, match=said):
        check("even", str(tmp_path / "lengths"), "")


def test_numbers_of_a_file_come_in_turn(tmp_path: Path) -> None:
    (tmp_path / "lengths").write_text("# tokens\n7, 900\n30\n")
    drawn = Distribution(str(tmp_path / "lengths"), LENGTHS)
    assert [drawn.length(512) for _ in range(5)] == [7, 512, 30, 7, 512]


@given(
    st.sampled_from(["uniform:3:900", "geometric:40", "lognormal:30:1.5", "zipf:1.1", "geometric:1", "17"]),
    st.integers(0, 9),
    st.integers(1, 60),
)
def test_lengths_are_within_the_limit_and_the_seeds(said: str, seed: int, most: int) -> None:
    one, other = Distribution(said, LENGTHS, seed), Distribution(said, LENGTHS, seed)
    drawn = [one.length(most) for _ in range(20)]
    assert all(1 <= length <= most for length in drawn)
    assert drawn == [other.length(most) for _ in range(20)]


@pytest.mark.parametrize(
    ("said", "mean"),
    [
        ("geometric:40", 40),
        ("uniform:10:30", 20),
        ("lognormal:20:0.5", 20 * 2.718281828 ** (0.5**2 / 2)),
        ("zipf:1", 100 / sum(1 / k for k in range(1, 101))),  # of 1 to 100: each k as much in sum
    ],
)
def test_lengths_have_the_mean_that_their_distribution_has(said: str, mean: float) -> None:
    drawn = Distribution(said, LENGTHS, 1)
    most = 100 if said == "zipf:1" else 10**9
    assert sum(drawn.length(most) for _ in range(20_000)) / 20_000 == pytest.approx(mean, rel=0.05)


def test_an_acceptance_is_what_was_said() -> None:
    assert Distribution("0.7", ACCEPTANCE).probability() == 0.7
    drawn = Distribution("uniform:0.5:0.9", ACCEPTANCE, Random(1).randint(0, 9))
    assert all(0.5 <= drawn.probability() <= 0.9 for _ in range(50))
