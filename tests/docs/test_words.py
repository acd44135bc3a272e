"""Pages use the words of ``docs/contributing/words.md``, in sentences that one reads once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.words import (
    LONGEST_LINE,
    MOST_WORDS,
    READ,
    WORDS_PAGE,
    avoided,
    mistakes,
    paragraphs,
    sentences,
    words_a_sentence,
)
from tests.inputs import ROOT

NOT_SAID = avoided(WORDS_PAGE.read_text(encoding="utf-8"))
PAGE = ROOT / "docs" / "index.md"
CHANGES = ROOT / "docs" / "changes"


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_plain(page: Path) -> None:
    wrong = mistakes(page, page.read_text(encoding="utf-8"), NOT_SAID)
    assert not wrong, "\n".join(map(str, wrong))


def test_a_change_says_what_kind_it_is_and_is_plain() -> None:
    for change in CHANGES.glob("*.md"):
        if change.name != "README.md":
            assert re.fullmatch(r"\+[\w-]+\.(added|changed|results)\.md", change.name), change.name
            assert not mistakes(change, change.read_text(encoding="utf-8"), NOT_SAID)


def said(text: str) -> list[str]:
    return [one.text for one in mistakes(PAGE, text, NOT_SAID)]


def test_words_of_the_list_are_found_in_prose_and_tables_only() -> None:
    assert said("It says what was invented.\n") == ["'invented': write 'assumed'"]
    assert said("| a | INVENTED |\n") == ["'invented': write 'assumed'"]
    assert said("What no cost can be is refused.\n") == []
    assert said("What a sender sends is sent.\n") == []
    assert said("Say what is no plug-in is refused.\n") == ["'what is ... is': write 'name the thing'"]
    assert said("It prints `invented`.\n\n```text\ninvented\n```\n") == []


def test_of_and_long_lines_are_found_with_their_line() -> None:
    text = f"# A page\n\nIt runs. Of each run it keeps\nthe digest.\n\n{'word ' * (LONGEST_LINE // 5)}more.\n"
    found = mistakes(PAGE, text, {})
    assert [(one.line, one.text.split(";")[0]) for one in found[1:]] == [
        (3, "begins with 'Of': Of each run it keeps the digest."),
        (6, f"{LONGEST_LINE + 5} characters in a line"),
    ]
    assert str(found[1]).startswith("docs/index.md:3: ")


def test_sentences_are_counted_in_the_mean() -> None:
    long = " ".join(["word"] * (2 * MOST_WORDS))
    assert said(f"{long}.\n") == [f"{2 * MOST_WORDS:.1f} words a sentence; {MOST_WORDS} at most"]
    assert said(f"{long}. Short.\n\nShort.\n") == []
    assert words_a_sentence("```sh\ncosim run\n```\n") == 0


def test_markup_is_no_prose() -> None:
    items = "- See {doc}`this page <x>`, [that](y.md).\n- `a.b` is.\n"
    text = f"---\na: b\n---\n\n# Title\n\n{items}\n| a | b |\n|---|---|\n"
    assert paragraphs(text) == [(7, "See this page, that."), (8, "Code is.")]
    assert [one for _, one in sentences("One. Two? `three` ends. e.g. this one goes on\n")] == [
        "One.",
        "Two?",
        "Code ends. e.g. this one goes on",
    ]
