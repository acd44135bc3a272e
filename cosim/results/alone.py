"""Each job beside its time alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cosim.results.study import StudyResult
from cosim.results.summary import Summary

if TYPE_CHECKING:
    from cosim.results.render.page import Page


@dataclass(frozen=True, eq=False)
class JobsAlone(StudyResult):
    """What sharing costs each job.

    Attributes
    ----------
    summary
        The run of all jobs.
    times
        Mean iteration of each job by itself, picoseconds.
    """

    summary: Summary
    times: Mapping[str, float]

    def page(self) -> Page:
        """A row for each job, and Jain's index."""
        from cosim.results.render.alone_page import alone_page

        return alone_page(self.summary, self.times)

    def to_json(self) -> dict[str, float]:
        """``times``."""
        return dict(self.times)
