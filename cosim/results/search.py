"""What came of a search: the best point, what was tried, what was refused, what didn't need to be run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cosim.results.measures import MEASURES, show_value
from cosim.results.render.page import Lines, Page, PageTable, Section

_SHOWN = 12


@dataclass(frozen=True)
class TriedPoint:
    """A point that was run: its bound and its value of the objective, or why it could not go on; ``stored``:
    all of its runs were in the store.
    """

    labels: tuple[str, ...]
    bound: float
    value: float
    error: str = ""
    stored: bool = False


@dataclass(frozen=True)
class SearchRun:
    """A search that has ended.

    Attributes
    ----------
    name
        Of the design.
    axes
        (name, labels) of each.
    objective
        The measure.
    tried
        Points in the order in which they were run.
    refused
        (labels, why) of those that can't be.
    num_points
        All points of the design.
    proven
        Whether no other point can be better than the best: all were run, or their bounds aren't below it.
    interrupted
        Empty, or why it ended early.
    """

    name: str
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    objective: str
    tried: tuple[TriedPoint, ...]
    refused: tuple[tuple[tuple[str, ...], str], ...]
    num_points: int
    proven: bool
    interrupted: str = ""

    @property
    def ranked(self) -> list[TriedPoint]:
        """Those that could go on, best first; equals as they were tried."""
        sign = 1 if MEASURES[self.objective].less_is_better else -1
        return sorted((one for one in self.tried if not one.error), key=lambda one: sign * one.value)

    @property
    def best(self) -> TriedPoint | None:
        """The best point; None where none could go on."""
        return next(iter(self.ranked), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "objective": self.objective,
            "axes": {name: list(labels) for name, labels in self.axes},
            "proven": self.proven,
            "interrupted": self.interrupted,
            "num_points": self.num_points,
            "tried": [
                {
                    "labels": list(one.labels),
                    "bound": one.bound,
                    "value": one.value if math.isfinite(one.value) else None,
                    "error": one.error,
                    "stored": one.stored,
                }
                for one in self.tried
            ],
            "refused": [{"labels": list(labels), "why": why} for labels, why in self.refused],
        }

    def page(self) -> Page:
        """The sections of the page, for text and for HTML."""
        ranked = self.ranked
        left = self.num_points - len(self.tried) - len(self.refused)
        stored = sum(one.stored for one in self.tried)
        counts = (
            f"{len(self.tried)} run ({stored} from the store), {len(self.refused)} refused, {left} not needed"
        )
        if not self.proven:
            counts = counts.replace("not needed", "not tried")
        verdict = "no other can be better" if self.proven else "others may be better: not all was tried"
        head = Lines([f"{self.name}: {self.num_points} points: {counts}", f"{verdict}"])
        rows = [[*(name for name, _ in self.axes), self.objective, "at least"]]
        for one in ranked[:_SHOWN]:
            bound = show_value(self.objective, one.bound) if one.bound else "-"
            rows.append([*one.labels, show_value(self.objective, one.value), bound])
        sections = [Section([head]), Section([PageTable(rows, left=tuple(range(len(self.axes))))])]
        failed = [f"{' / '.join(one.labels)}: {one.error}" for one in self.tried if one.error]
        failed += [f"{' / '.join(labels)}: {why}" for labels, why in self.refused]
        if failed:
            sections.append(Section([Lines([line.splitlines()[0] for line in failed[:_SHOWN]])]))
        return sections

    def __str__(self) -> str:
        from cosim.results.render.text import text

        return text(self.page())
