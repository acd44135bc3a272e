"""What a reader of somebody else's file says to its user: what was read, ignored, assumed and is doubtful."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.doubts import Doubt


@dataclass(frozen=True, eq=False)
class ImportReport:
    """What an importer read, ignored and assumed, each line for a person to read; and what it doubts."""

    read: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()


class ReportBuilder:
    """Counts lines of a report, in the order in which they are first met; ``times`` is how often to count."""

    def __init__(self) -> None:
        self._read: dict[str, int] = {}
        self._ignored: dict[str, int] = {}
        self._assumed: dict[str, int] = {}
        self._doubts: list[Doubt] = []

    def read(self, what: str, times: int = 1) -> None:
        """Something that was used."""
        _count(self._read, what, times)

    def ignored(self, what: str, times: int = 1) -> None:
        """Something that is in the file, but has no effect."""
        _count(self._ignored, what, times)

    def assumed(self, what: str, times: int = 1) -> None:
        """Something that isn't in the file."""
        _count(self._assumed, what, times)

    def doubt(self, what: str, why: str, instead: str) -> None:
        """Something that can make the answer wrong by more than its interval. See :class:`Doubt`."""
        self._doubts.append(Doubt(what, why, instead))

    def add(self, other: ReportBuilder, times: int = 1) -> None:
        """All that ``other`` counted, ``times`` times."""
        for mine, theirs in (
            (self._read, other._read),
            (self._ignored, other._ignored),
            (self._assumed, other._assumed),
        ):
            for what, count in theirs.items():
                _count(mine, what, count * times)
        self._doubts += other._doubts

    def build(self) -> ImportReport:
        """``3643 x COMP_NODE`` and so on; what counts once stands without a number."""
        return ImportReport(
            read=_lines(self._read),
            ignored=_lines(self._ignored),
            assumed=_lines(self._assumed),
            doubts=tuple(dict.fromkeys(self._doubts)),
        )

    def as_dict(self) -> dict[str, tuple[str, ...] | tuple[Doubt, ...]]:
        """The same as ``Topology.info`` has it."""
        return {**vars(self.build())}


def _count(counts: dict[str, int], what: str, times: int) -> None:
    counts[what] = counts.get(what, 0) + times


def _lines(counts: dict[str, int]) -> tuple[str, ...]:
    return tuple(what if count == 1 else f"{count} x {what}" for what, count in counts.items() if count)
