"""What several runs say together: it prints as a page, and shows itself in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosim.results.render.page import Page


class StudyResult(ABC):
    """Base of what studies, sweeps, searches and comparisons find.

    ``interrupted`` is empty, or says why something is missing.
    """

    interrupted: str = ""

    @abstractmethod
    def page(self) -> Page:
        """The sections of the page, for text and for HTML."""

    @abstractmethod
    def to_json(self) -> Any:
        """Plain values."""

    def __str__(self) -> str:
        from cosim.results.render.text import text

        return text(self.page())

    def _repr_html_(self) -> str:
        from cosim.results.render.html import html

        return html(self.page())


@dataclass(frozen=True)
class StudyTable(StudyResult):
    """A head and rows of texts; ``interrupted`` as of every result."""

    rows: list[list[str]]
    interrupted: str = ""

    def page(self) -> Page:
        """One table."""
        from cosim.results.render.page import PageTable, Section

        return [Section([PageTable(self.rows)])]

    def to_json(self) -> list[dict[str, str]]:
        """Each row by the names of the head."""
        head, *rows = self.rows
        return [dict(zip(head, row, strict=True)) for row in rows]
