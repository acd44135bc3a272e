"""A page before it is laid out: sections of tables and lines, for :mod:`.text` and :mod:`.html` alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cosim.doubts import Doubt


@dataclass(frozen=True)
class PageTable:
    """Rows of cells, the head first unless ``headless``.

    ``left`` are the columns flush left, by number; ``optional`` the heads of those that a narrow terminal can
    do without, the first to go first.
    """

    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    optional: Sequence[str] = ()
    headless: bool = False


@dataclass(frozen=True)
class Lines:
    """Lines of text, all ``bold`` or none. ``width`` wraps them even where nothing else is wrapped; ``dim``
    is a part of them that matters least.
    """

    lines: Sequence[str]
    width: int | None = None
    bold: bool = False
    dim: str = ""


@dataclass(frozen=True)
class Section:
    """Tables and lines under one another; a table's head is its title, and so are ``bold`` lines."""

    parts: Sequence[PageTable | Lines]


Page = Sequence[Section]
"""Sections, a blank line between two."""


MARK = "?"
"""Beside an answer in a table that is doubtful."""
_WIDTH = 110
_MAX_POINTS = 12


def doubts_section(doubts: Sequence[Doubt]) -> list[Section]:
    """Each with what would do; no section where there is none."""
    return _block(f"  {one.what}: {one.why}; instead: {one.instead}" for one in doubts)


def points_section(doubtful: Iterable[tuple[str, str]]) -> list[Section]:
    """Points of a sweep or a search by (name, what is doubtful), each doubt once with all its points."""
    points: dict[str, list[str]] = {}
    for name, why in doubtful:
        if why:
            points.setdefault(why, []).append(name)
    return _block(f"  {MARK} {_named(names)}: {why}" for why, names in points.items())


def _block(lines: Iterable[str]) -> list[Section]:
    shown = [*lines]
    return [Section([Lines(["doubtful:"], bold=True), Lines(shown, width=_WIDTH)])] if shown else []


def _named(names: Iterable[str]) -> str:
    each = [*dict.fromkeys(names)]
    more = [f"{len(each) - _MAX_POINTS} more"] if len(each) > _MAX_POINTS else []
    return ", ".join([*each[:_MAX_POINTS], *more])
