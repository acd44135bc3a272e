"""What a format is: a spec with a writer, found by entry point in the group ``cosim.formats``.

To plug one in, subclass :class:`Format` and register it::

    class Pairs(Format):
        '''A line "source destination bytes" for each message'''

        says: ClassVar[frozenset[Says]] = frozenset({Says.MESSAGES})
        header: bool = Field(False, description="begin with a line of names")

        def write(self, source, out, report, progress):
            lines = ...
            (out / "pairs.txt").write_text(lines)
            report.written("messages", len(lines))

    [project.entry-points."cosim.formats"]
    pairs = "mine.pairs:Pairs"

Then ``cosim translate S --to pairs --out DIR`` and ``--to '{kind: pairs, header: true}'`` work, ``cosim list
format`` shows it, and whatever of :class:`~cosim.translation.says.Says` the scenario uses and the class does
not declare is reported as lost. What depends on the scenario (a topology that only sometimes can be said)
is reported in ``examine``, which runs before anything is written, so that ``--strict`` can refuse early.
What comes out while writing may be reported in ``write``: files are moved into place only after it returned.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from cosim.engine.records import Records
from cosim.spec import Spec
from cosim.translation.loss_report import LossReport, TranslationError
from cosim.translation.says import Says, report_unsaid
from cosim.translation.source import Source

Progress = Callable[[int, int, str], None]
"""Told, now and then: done, total (0: not known), and of what: ``"ranks"``."""


def no_progress(done: int, total: int, what: str) -> None:
    """Nobody watches."""
    del done, total, what


class Format(Spec):
    """Base of formats. Fields are options; ``says`` is what of a scenario the target can be told."""

    says: ClassVar[frozenset[Says]] = frozenset()

    def said(self) -> frozenset[Says]:
        """What the target can be told, where that depends on the options."""
        return self.says

    def examine(self, source: Source, report: LossReport) -> None:
        """Report what will be lost and approximated, as far as it is known before writing.

        Raises
        ------
        TranslationError
            This scenario can't be said in this format at all.
        """
        report_unsaid(source, self.said(), report)

    @abstractmethod
    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """Write files into ``out``, an empty folder; report what was written and the rest of the losses.

        Raises
        ------
        TranslationError
            As ``examine``.
        """

    def reads_back(self, source: Source, out: Path) -> dict[str, Any] | None:
        """The workload, as a scenario names it, that reads what was written to ``out``; None: there is none.

        It is one job on all endpoints. Where the report says ``operations on other streams``,
        ``cosim translate --run`` simulates it to tell what their move does.
        """
        del source, out
        return None

    def run(self, source: Source, out: Path, say: Callable[[str], None]) -> Records:
        """Run the target's simulator on what was written to ``out``; what came of it, as a run of ours.

        Raises
        ------
        InputError
            There is no such simulator, or it is not installed.
        """
        del source, out, say
        raise TranslationError(
            "this format only writes files; it starts no simulator",
            hint="run the simulator on them by hand",
        )
