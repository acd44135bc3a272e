"""What moves an answer: by how much each setting of a scenario changes the mean iteration of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
class WhatMatters:
    """Every setting that was tried, what moves most first.

    ``runs`` is how many runs it took; ``whole`` is False where an interrupt left some out.
    """

    tried: tuple[Sensitivity, ...]
    runs: int
    whole: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"tried": [one.to_json() for one in self.tried], "runs": self.runs, "whole": self.whole}
