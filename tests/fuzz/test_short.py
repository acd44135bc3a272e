"""A little of each kind, the same in every run; ``python -m tests.fuzz`` tries more."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator

import pytest

from tests.fuzz.tally import Tally, Target, not_a_refusal, run

EXAMPLES = {"scenarios": 12, "importers": 12, "wire": 12, "store": 6, "plug_ins": 20}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.filterwarnings("ignore")
def test_what_is_given_is_read_or_refused(kind: str) -> None:
    targets: list[Target] = importlib.import_module(f"tests.fuzz.{kind}").targets()
    tally = run(targets, EXAMPLES[kind], 1)
    print(tally)
    assert not tally.failures, "\n\n".join(tally.failures)
    assert tally.refused.total() > 0
    assert tally.read.total() > 0


@pytest.mark.slow
def test_signals_leave_nothing_half() -> None:
    targets: list[Target] = importlib.import_module("tests.fuzz.signals").targets()
    tally = run(targets, 4, 1)
    assert not tally.failures, "\n\n".join(tally.failures)


def test_what_ends_otherwise_is_told_with_its_input() -> None:
    from hypothesis import strategies as st

    def fails(value: int) -> None:
        assert value != 3

    tally = run([Target("threes", st.just(3), fails)], 1, 1)
    assert tally.failed["threes"] == 1
    assert tally.failures[0].startswith("threes: 3\n")
    assert "AssertionError" in tally.failures[0]


def test_hangs_are_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.tally.SLOW_S", 0.05)

    def hangs() -> None:
        while True:
            pass

    tally = Tally()
    tally.judge(Target("hang", None, lambda _: hangs()), 0)  # type: ignore[arg-type]
    assert "TimeoutError" in tally.failures[0]


@pytest.mark.parametrize("text", ["None: is wrong", ": is wrong", " ", "see https://errors.pydantic.dev/2"])
def test_an_error_says_where_and_what(text: str) -> None:
    assert not_a_refusal(text)
    assert not not_a_refusal("x.yaml:3: size: 'much' is not a size")
