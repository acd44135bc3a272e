"""What a reader of somebody else's file says to its user: what was read, ignored and invented."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass


@dataclass(frozen=True, eq=False)
class ImportReport:
    """What an importer read, ignored and invented; each line for a person to read."""

    read: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()


class ReportBuilder:
    """Counts lines of a report, in the order in which they are first met; ``times`` is how often to count."""

    def __init__(self) -> None:
        self._read: Counter[str] = Counter()
        self._ignored: Counter[str] = Counter()
        self._invented: Counter[str] = Counter()

    def read(self, what: str, times: int = 1) -> None:
        """Something that was used."""
        self._read[what] += times

    def ignored(self, what: str, times: int = 1) -> None:
        """Something that is in the file, but has no effect."""
        self._ignored[what] += times

    def invented(self, what: str, times: int = 1) -> None:
        """Something that isn't in the file."""
        self._invented[what] += times

    def add(self, other: ReportBuilder, times: int = 1) -> None:
        """All that ``other`` counted, ``times`` times."""
        for mine, theirs in (
            (self._read, other._read),
            (self._ignored, other._ignored),
            (self._invented, other._invented),
        ):
            for what, count in theirs.items():
                mine[what] += count * times

    def build(self) -> ImportReport:
        """``3643 x COMP_NODE`` and so on; what counts once stands without a number."""
        return ImportReport(
            read=_lines(self._read), ignored=_lines(self._ignored), invented=_lines(self._invented)
        )

    def as_dict(self) -> dict[str, tuple[str, ...]]:
        """The same as ``Topology.info`` has it."""
        return asdict(self.build())


def _lines(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(what if count == 1 else f"{count} x {what}" for what, count in counts.items() if count)
