"""Answers that end and drafts that hold as they were asked to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cosim.profiler.launch import ProfileRequest, profile
from tests.profiler.profiled import SCRIPTS, needs_torch, needs_transformers

pytestmark = needs_torch

DRAFT = 5


@pytest.fixture(scope="module")
def answers() -> Any:
    """Imports torch, which takes seconds: of the processes that run tests, only in one that gets here."""
    from cosim.profiler.inside import answers

    return answers


def asked(answers: Any, lengths: str = "", acceptance: str = "", seed: int = 0) -> Any:
    return answers.ChosenTokens(lengths, acceptance, seed, lambda _: None)


def comparison(name: str, *shape: int) -> tuple[Any, Any]:
    import torch

    return SimpleNamespace(_opname=name), torch.empty(shape, dtype=torch.bool)


def test_sequences_end_after_their_lengths(answers: Any) -> None:
    tokens = asked(answers, "uniform:1:4")
    tokens.most = 4
    with tokens.answering():
        ended = []
        for step in range(4):
            tokens.step_begins(step)
            ended.append(tokens.compared(*comparison("isin", 8, 1))[:, 0].tolist())
        for row, length in enumerate(tokens.lengths):
            assert [each[row] for each in ended] == [step + 1 >= length for step in range(4)]
        assert len(set(tokens.lengths)) > 1
    assert tokens.compared(*comparison("isin", 8, 1)) is None


def test_of_a_steps_tokens_those_from_the_length_on_end_the_answer(answers: Any) -> None:
    tokens = asked(answers, "7", "1")
    tokens.most = 32
    with tokens.answering():
        tokens.drafted(DRAFT)
        tokens.step_begins(4 + DRAFT)  # four were chosen before, and the model is given the drafts, too
        assert tokens.compared(*comparison("eq", 1, DRAFT)).all()
        assert tokens.compared(*comparison("isin", DRAFT + 1)).tolist() == [
            False,
            False,
            True,
            True,
            True,
            True,
        ]


@pytest.mark.parametrize("rate", [0.3, 0.7, 0.9])
def test_as_many_drafts_hold_as_the_rate_says(answers: Any, rate: float) -> None:
    """Each is accepted with the rate, if those before were: sum of rate ** k on average."""
    tokens, held = asked(answers, acceptance=str(rate)), 0
    with tokens.answering():
        for _ in range(3000):
            tokens.drafted(DRAFT)
            mask = tokens.compared(*comparison("le", 1, DRAFT))[0].tolist()
            assert mask == sorted(mask, reverse=True)
            held += sum(mask)
    assert held / 3000 == pytest.approx(sum(rate**k for k in range(1, DRAFT + 1)), rel=0.08)


def test_nothing_is_accepted_unasked(answers: Any) -> None:
    said: list[str] = []
    tokens = answers.ChosenTokens("", "", 0, said.append)
    with tokens.answering():
        tokens.drafted(DRAFT)
        assert not tokens.compared(*comparison("eq", 1, DRAFT)).any()
        tokens.drafted(0)  # a last step
        assert tokens.compared(*comparison("eq", 1, 0)).shape == (1, 0)
    assert said == ["no drafted token is accepted: --acceptance says how many are"]


@pytest.mark.slow
@needs_transformers
@pytest.mark.parametrize(("acceptance", "new", "verified"), [("1", 32, 6), ("", 3, 3)])
def test_a_request_has_as_many_steps_as_its_drafts_leave(acceptance: str, new: int, verified: int) -> None:
    """All of five drafts accepted, a step gives six tokens; none, one."""
    request = ProfileRequest(
        str(SCRIPTS / "assisted.py"), ("--new", str(new)), acceptance=acceptance, verify=False
    )
    made, _ = profile(request)
    assert (made.made["decode steps"], made.made["tokens"]) == (verified - 1, new)


@pytest.mark.slow
@needs_transformers
def test_a_request_ends_with_its_longest_answer(tmp_path: Any) -> None:
    (tmp_path / "lengths").write_text("3 1\n")
    request = ProfileRequest(str(SCRIPTS / "generate.py"), ("--new", "8"), lengths=str(tmp_path / "lengths"))
    made, _ = profile(request)
    assert made.made | {"decode steps": 2, "sequences": 2, "tokens": 4, "longest": 3} == made.made
