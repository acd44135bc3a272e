"""A page before it is laid out: sections of tables and lines, for :mod:`.text` and :mod:`.html` alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
