"""The loss report: what a translation wrote, and what the target was not told.

*Lost* is what can change a result and that the target can't say. *Approximated* is what was said in another
way, or fixed where our engine decides while it runs. *Left out* are labels, for people only. ``--strict``
refuses a translation that lost or approximated anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from cosim.errors import InputError

Section = Literal["written", "lost", "approximated", "left out", "assumed"]
MOVED_STREAMS = "operations on other streams"
"""What a report calls operations that the target runs on another stream than the scenario."""
SECTIONS: tuple[Section, ...] = ("written", "lost", "approximated", "left out", "assumed")


class TranslationError(InputError):
    """What was asked for can't be translated, or not without loss under ``--strict``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """``count`` x ``what``, and ``why`` (or how)."""

    section: Section
    what: str
    count: int
    why: str = ""

    def __str__(self) -> str:
        number = f"{self.count:,} " if self.count > 1 else ""
        return f"{number}{self.what}" + (f": {self.why}" if self.why else "")


class LossReport:
    """Entries in the order in which they first came; equal ones are added up."""

    def __init__(self, format_name: str = "") -> None:
        self.format_name = format_name
        self._counts: dict[tuple[Section, str, str], int] = {}

    def written(self, what: str, count: int, why: str = "") -> None:
        """Something that is in the files."""
        self._add("written", what, count, why)

    def lost(self, what: str, count: int, why: str = "") -> None:
        """Something that can change a result and that the target isn't told."""
        self._add("lost", what, count, why)

    def approximated(self, what: str, count: int, why: str = "") -> None:
        """Something that the target is told in another way; ``why`` says how."""
        self._add("approximated", what, count, why)

    def left_out(self, what: str, count: int, why: str = "") -> None:
        """Labels, which no result depends on."""
        self._add("left out", what, count, why)

    def assumed(self, what: str, count: int, why: str = "") -> None:
        """Something that the target needs and the scenario doesn't say."""
        self._add("assumed", what, count, why)

    def _add(self, section: Section, what: str, count: int, why: str) -> None:
        if count:
            key = section, what, why
            self._counts[key] = self._counts.get(key, 0) + count

    def entries(self, *sections: Section) -> list[Entry]:
        """Entries of some sections, or all, section by section."""
        return [
            Entry(section, what, count, why)
            for wanted in (sections or SECTIONS)
            for (section, what, why), count in self._counts.items()
            if section == wanted
        ]

    @property
    def is_lossless(self) -> bool:
        """Nothing that can change a result was lost or approximated."""
        return not self.entries("lost", "approximated")

    def check_strict(self) -> None:
        """Refuse losses.

        Raises
        ------
        TranslationError
            Something was lost or approximated; lists all of it.
        """
        if not self.is_lossless:
            found = "".join(f"\n  {entry.section}: {entry}" for entry in self.entries("lost", "approximated"))
            raise TranslationError(
                f"{self.format_name} can't say all of this scenario:{found}",
                hint="leave --strict out to translate the rest",
            )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            section: [{"what": e.what, "count": e.count, "why": e.why} for e in self.entries(section)]
            for section in SECTIONS
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for section in SECTIONS:
            entries = self.entries(section)
            if not entries and section in ("lost", "approximated"):
                yield f"{section + ':':<14}nothing"
            for number, entry in enumerate(entries):
                yield f"{section + ':' if number == 0 else '':<14}{entry}"
