"""What an importer of topologies read, ignored and invented: lines that the user sees."""

from __future__ import annotations

from collections import Counter
from typing import Any


class TopologyTally:
    """Lines with counts, in the order in which they were first met."""

    def __init__(self) -> None:
        self._lines: dict[str, Counter[str]] = {
            "read": Counter(),
            "ignored": Counter(),
            "invented": Counter(),
        }

    def read(self, what: str, times: int = 1) -> None:
        """Something that was used."""
        self._lines["read"][what] += times

    def ignored(self, what: str, times: int = 1) -> None:
        """Something that the file says, but that has no effect."""
        self._lines["ignored"][what] += times

    def invented(self, what: str, times: int = 1) -> None:
        """Something that the file doesn't say."""
        self._lines["invented"][what] += times

    def info(self) -> dict[str, Any]:
        """For ``Topology.info``: ``read``, ``ignored``, ``invented``, each a tuple of lines."""
        return {
            name: tuple(what if count == 1 else f"{count} x {what}" for what, count in lines.items() if count)
            for name, lines in self._lines.items()
        }
