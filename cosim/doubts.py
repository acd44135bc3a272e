"""What can make an answer wrong by more than its interval. Every page says it above the answer, as one block.

Whoever finds a doubt makes a :class:`Doubt`. There are three places for it:

- a reader of a file: ``report.doubt(...)`` of :class:`~cosim.files.import_report.ReportBuilder`; a workload
  has it in ``report.doubts``, a topology in ``info["doubts"]``;
- a network: :meth:`~cosim.network.contract.NetworkSpec.doubts`;
- whoever sees scenario and records together: ``cosim/experiment/doubts.py``, before or after a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Doubt:
    """One reason to doubt an answer.

    Attributes
    ----------
    what
        What is doubtful: a job, a setting with its place.
    why
        What was found, with its values.
    instead
        What would do.

    Examples
    --------
    >>> from cosim.plugins import Doubt
    >>> print(Doubt("job gpt", "none of its 12 operations takes time", "give a Kineto trace of a GPU"))
    job gpt: none of its 12 operations takes time (give a Kineto trace of a GPU)
    """

    what: str
    why: str
    instead: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why} ({self.instead})"


def in_a_line(doubts: Iterable[Doubt]) -> str:
    """All of them, for a cell of a table; empty where there is none."""
    return "; ".join(map(str, doubts))
