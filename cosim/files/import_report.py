"""What a reader of somebody else's file says to its user: what was read, ignored and invented."""

from __future__ import annotations

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
        self._read: dict[str, int] = {}
        self._ignored: dict[str, int] = {}
        self._invented: dict[str, int] = {}

    def read(self, what: str, times: int = 1) -> None:
        """Something that was used."""
        _count(self._read, what, times)

    def ignored(self, what: str, times: int = 1) -> None:
        """Something that is in the file, but has no effect."""
        _count(self._ignored, what, times)

    def invented(self, what: str, times: int = 1) -> None:
        """Something that isn't in the file."""
        _count(self._invented, what, times)

    def add(self, other: ReportBuilder, times: int = 1) -> None:
        """All that ``other`` counted, ``times`` times."""
        for mine, theirs in (
            (self._read, other._read),
            (self._ignored, other._ignored),
            (self._invented, other._invented),
        ):
            for what, count in theirs.items():
                _count(mine, what, count * times)

    def build(self) -> ImportReport:
        """``3643 x COMP_NODE`` and so on; what counts once stands without a number."""
        return ImportReport(
            read=_lines(self._read), ignored=_lines(self._ignored), invented=_lines(self._invented)
        )

    def as_dict(self) -> dict[str, tuple[str, ...]]:
        """The same as ``Topology.info`` has it."""
        return asdict(self.build())


def _count(counts: dict[str, int], what: str, times: int) -> None:
    counts[what] = counts.get(what, 0) + times


def _lines(counts: dict[str, int]) -> tuple[str, ...]:
    return tuple(what if count == 1 else f"{count} x {what}" for what, count in counts.items() if count)
