"""What a page's prose is like: ``python -m tests.docs.words [PAGE ...]`` prints it for each page.

Words that a page doesn't use are the table of ``docs/contributing/words.md``. Code, in blocks and in
backticks, is left out. vale's package fetches a program when it is
first run, which a test may not; proselint takes no list of words.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.examples.pages import DOCS, PAGES
from tests.inputs import ROOT

READ = [*PAGES, ROOT / "CHANGELOG.md"]
WORDS_PAGE = DOCS / "contributing" / "words.md"
MOST_WORDS = 25
"""Of a sentence, in the mean over a page."""
LONGEST_LINE = 500
"""Characters."""

_CODE = re.compile(r"^[ ]*(```+|~~~+).*?^[ ]*\1[ ]*$", re.MULTILINE | re.DOTALL)
_LEFT_OUT = re.compile(r"<!--.*?-->|^(?::::|\(\S+\)=|\{).*$|^---\n.*?\n---$", re.MULTILINE | re.DOTALL)
_ROLE = re.compile(r"\{[\w:]+\}`(?:([^`<]*?)\s*<[^`>]*>|[^`]*)`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.|:)\s+", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[)\"*]*\s+(?=[A-Z`\"(*])")


@dataclass(frozen=True)
class Mistake:
    """One place of a page."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        """``docs/index.md:12: ...``."""
        return f"{self.page.relative_to(ROOT)}:{self.line}: {self.text}"


def prose(text: str) -> str:
    """The text without code and markup, line for line."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    for pattern in (_CODE, _LEFT_OUT):
        text = pattern.sub(blank, text)
    text = _ROLE.sub(lambda found: found[1] or "this", text)
    text = _LINK.sub(lambda found: found[1], text)
    return re.sub(r"`[^`\n]+`", "Code", text)


def paragraphs(text: str) -> list[tuple[int, str]]:
    """Each paragraph or item of a list: the line where it begins, and its text; no headings, no tables."""
    found: list[tuple[int, str]] = []
    begun = 0
    for number, line in enumerate(prose(text).splitlines(), 1):
        plain = line.strip()
        if not plain or plain.startswith(("#", "|")) or set(plain) <= set("=-*"):
            begun = 0
        elif begun and not _ITEM.match(line):
            found[-1] = (begun, f"{found[-1][1]} {plain}")
        else:
            begun = number
            found.append((number, _ITEM.sub("", line).strip()))
    return found


def sentences(text: str) -> list[tuple[int, str]]:
    """Each sentence, with the line where its paragraph begins."""
    return [(line, one) for line, whole in paragraphs(text) for one in _END.split(whole) if one.strip()]


def words_a_sentence(text: str) -> float:
    """In the mean; 0 of a page without a sentence."""
    found = sentences(text)
    return sum(len(one.split()) for _, one in found) / len(found) if found else 0.0


def avoided(page: str) -> dict[str, str]:
    """What pages don't say, and what they say instead: the table of ``words.md``."""
    rows = re.findall(r"^\| (?!-|not \|)([^|]+?) \| ([^|]+?) \|$", page, re.MULTILINE)
    return {not_said.strip(): said.strip() for alike, said in rows for not_said in alike.split(",")}


def _pattern(words: str) -> re.Pattern[str]:
    """``what is ... is``: a line of dots stands for up to six words; a word's form counts as written."""
    parts = [re.escape(part.strip()) for part in words.split("...")]
    return re.compile(r"\b" + r"(?:\s+[\w'-]+){1,6}?\s+".join(parts) + r"\b", re.IGNORECASE)


def mistakes(page: Path, text: str, not_said: dict[str, str]) -> list[Mistake]:
    """All of a page's, in the order of its lines."""
    found = [
        Mistake(page, number, f"{len(line)} characters in a line; {LONGEST_LINE} at most")
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    if page != WORDS_PAGE:
        patterns = {words: _pattern(words) for words in not_said}
        found += [
            Mistake(page, number, f"{words!r}: write {not_said[words]!r}")
            for number, line in enumerate(prose(text).splitlines(), 1)
            for words, pattern in patterns.items()
            if pattern.search(line)
        ]
    found += [
        Mistake(page, line, f"begins with 'Of': {one[:60]}")
        for line, one in sentences(text)
        if one.startswith("Of ")
    ]
    if (mean := words_a_sentence(text)) > MOST_WORDS:
        found.append(Mistake(page, 1, f"{mean:.1f} words a sentence; {MOST_WORDS} at most"))
    return sorted(found, key=lambda one: one.line)


def main(names: list[str]) -> int:
    """Print each page's figures, then its mistakes; 1 where there are any."""
    pages = [Path(name).resolve() for name in names] or READ
    not_said = avoided(WORDS_PAGE.read_text(encoding="utf-8"))
    wrong: list[Mistake] = []
    print("    kB   words  a sentence  mistakes  page")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        here = mistakes(page, text, not_said)
        wrong += here
        print(
            f"{len(text.encode()) / 1000:6.1f} {len(text.split()):7,} {words_a_sentence(text):11.1f}"
            f" {len(here):9}  {page.relative_to(ROOT)}"
        )
    print(*wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
