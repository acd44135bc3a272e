"""A little of each kind, the same in every run; ``python -m tests.lab.fuzz`` tries more."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator

import pytest
from hypothesis import strategies as st

from tests.formats.cables.files import EACH
from tests.lab.fuzz import importers
from tests.lab.fuzz.tally import Tally, Target, drawn, from_strategy, not_a_refusal, run, table, watched

EXAMPLES = {
    "scenarios": 70,
    "runs": 2,
    "importers": 35,
    "traces": 10,
    "captures": 20,
    "models": 10,
    "wire": 20,
    "store": 14,
    "plug_ins": 3,
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.filterwarnings("ignore")
def test_what_is_given_is_read_or_refused(kind: str) -> None:
    targets: list[Target] = importlib.import_module(f"tests.lab.fuzz.{kind}").targets()
    tally = run(targets, EXAMPLES[kind], 1)
    print(table({kind: tally}))
    assert not tally.failures, "\n\n".join(tally.failures)
    assert tally.refused.total() > 0
    assert tally.read.total() > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_damaged_topologies_are_read_or_refused() -> None:
    """A thousand of each format of cables and of NCCL's; ``--only importers`` tries any number."""
    wanted = {*EACH, "nccl"}
    tally = run([one for one in importers.targets() if one.name in wanted], 1000, 2)
    assert not tally.failures, "\n\n".join(tally.failures)


@pytest.mark.slow
def test_signals_leave_nothing_half() -> None:
    targets: list[Target] = importlib.import_module("tests.lab.fuzz.signals").targets()
    tally = run(targets, 4, 1)
    assert not tally.failures, "\n\n".join(tally.failures)


def test_what_ends_otherwise_is_told_with_its_input() -> None:
    def fails(value: int) -> None:
        assert value != 3

    tally = run([Target("threes", drawn(lambda _: 3), fails)], 5, 1)
    assert tally.failed["threes"] == 5
    assert len(tally.failures) == 3  # those that end at one place are told a few times
    assert tally.failures[0].startswith("threes: 3\n")
    assert "AssertionError" in tally.failures[0]


def test_the_same_seed_gives_the_same_inputs() -> None:
    def inputs(number: int) -> list[float]:
        seen: list[float] = []
        run([Target("numbers", drawn(lambda draw: draw.random()), seen.append)], 20, number)
        run([Target("numbers", from_strategy(st.integers()), seen.append)], 20, number)
        return seen

    assert inputs(1) == inputs(1)
    assert inputs(1) != inputs(2)


def test_inputs_end_when_the_time_is_over() -> None:
    targets = [
        Target("drawn", drawn(lambda draw: draw.random()), lambda _: None),
        Target("hypothesis", from_strategy(st.integers()), lambda _: None),
    ]
    tally = run(targets, 10**9, 1, seconds=0.2)
    assert not tally.failures
    assert tally.read["drawn"] > 0


def test_the_table_has_a_line_for_each_kind_and_target() -> None:
    first, second = Tally(), Tally()
    first.read.update(a=3, b=4)
    second.refused.update(c=5)
    lines = [line.split()[:4] for line in table({"one": first, "two": second}).splitlines()]
    assert lines[1:] == [
        ["one", "7", "7", "0"],
        ["a", "3", "3", "0"],
        ["b", "4", "4", "0"],
        ["two", "5", "0", "5"],
        ["all", "12", "7", "5"],
    ]


def test_hangs_are_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.lab.fuzz.tally.SLOW_S", 0.05)

    def hangs(_: object) -> None:
        while True:
            pass

    tally = Tally()
    with watched():
        tally.judge(Target("hang", drawn(lambda _: 0), hangs), 0)
    assert "TimeoutError" in tally.failures[0]


@pytest.mark.parametrize("text", ["None: is wrong", ": is wrong", " ", "see https://errors.pydantic.dev/2"])
def test_an_error_says_where_and_what(text: str) -> None:
    assert not_a_refusal(text)
    assert not not_a_refusal("x.yaml:3: size: 'much' is not a size")
