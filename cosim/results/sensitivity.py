"""What moves an answer: by how much each setting of a scenario changes the mean iteration of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cosim.results.study import StudyResult

if TYPE_CHECKING:
    from cosim.results.render.page import Page

SMALL = 0.005
"""What 1 % of a setting moves by less than this many percent is not worth a line."""


@dataclass(frozen=True)
class Sensitivity:
    """One setting, or one link, and what it moves.

    Attributes
    ----------
    setting
        Its path, ``topology.rate``; or a link by name, ``link leaf0 -> spine1``.
    value
        As the run had it, with its unit.
    of_job
        Relative change of each job's mean iteration for a relative change of the setting: -1 where twice the
        rate would halve the iteration, 0 where nothing changes. Their logarithms' ratio, for 1 %.
    """

    setting: str
    value: str
    of_job: Mapping[str, float]

    @property
    def most(self) -> float:
        """The job that it moves most, without sign."""
        return max((abs(each) for each in self.of_job.values()), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"setting": self.setting, "value": self.value, "of_job": dict(self.of_job)}


@dataclass(frozen=True)
class WhatMatters(StudyResult):
    """Every setting that was tried, what moves most first.

    ``runs`` is how many runs it took; ``interrupted`` says why some are left out.
    """

    tried: tuple[Sensitivity, ...]
    runs: int
    interrupted: str = ""

    def page(self) -> Page:
        """A row for each setting, what moves most first."""
        from cosim.results.render.sensitivity_page import sensitivity_page

        return sensitivity_page(self)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        tried = [one.to_json() for one in self.tried]
        return {"tried": tried, "runs": self.runs, "whole": not self.interrupted}
