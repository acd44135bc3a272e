"""Counts what an import reads, ignores and invents, for the report."""

from __future__ import annotations

from collections import Counter

from cosim.workload.program import ImportReport


class Tally:
    """Lines with counts, in the order in which they were first met; ``times`` is how often to count."""

    def __init__(self) -> None:
        self._read: Counter[str] = Counter()
        self._ignored: Counter[str] = Counter()
        self._invented: Counter[str] = Counter()

    def read(self, what: str, times: int = 1) -> None:
        """Something that was used."""
        self._read[what] += times

    def ignored(self, what: str, times: int = 1) -> None:
        """Something that is in the trace, but has no effect."""
        self._ignored[what] += times

    def invented(self, what: str, times: int = 1) -> None:
        """Something that isn't in the trace."""
        self._invented[what] += times

    def add(self, other: Tally, times: int = 1) -> None:
        """All that ``other`` counted, ``times`` times."""
        for mine, theirs in (
            (self._read, other._read),
            (self._ignored, other._ignored),
            (self._invented, other._invented),
        ):
            for what, count in theirs.items():
                mine[what] += count * times

    def report(self) -> ImportReport:
        """``3643 x COMP_NODE`` and so on; what counts once stands without a number."""
        return ImportReport(
            read=_lines(self._read), ignored=_lines(self._ignored), invented=_lines(self._invented)
        )


def _lines(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(what if count == 1 else f"{count} x {what}" for what, count in counts.items() if count)
