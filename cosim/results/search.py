"""What came of a search: the best point or the Pareto front, what was tried, refused, or not needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.results.fronts import front
from cosim.results.quantities import QUANTITIES
from cosim.results.render.page import MARK, Lines, Page, PageTable, Section, points_section
from cosim.results.study import StudyResult

if TYPE_CHECKING:
    from cosim.results.report.document import RunReport

_SHOWN = 12


@dataclass(frozen=True)
class TriedPoint:
    """A point that was run.

    Attributes
    ----------
    labels
        Its choice on each axis.
    values
        What it has of each objective and of what is constrained, by name; empty where it could not go on.
    bounds
        What it can have of each objective at best, by name, as it was known before; without those of which
        nothing was known.
    error
        Why it could not go on, or which constraint it breaks; empty where it is one to choose.
    stored
        All of its runs were in the store.
    level
        The fidelity at which it was run last, from 0.
    doubtful
        What can make it wrong by more than its interval; empty where nothing is known.
    seeds
        What each seed gave of each objective, constraint and measure, by name, in the order of the seeds.
    model_error
        The compute model's relative error of an iteration, one sigma: common to points of one kind of GPU,
        and the point's own. Of several jobs the first one's that has any.
    changes
        The settings that its labels stand for.
    """

    labels: tuple[str, ...]
    values: Mapping[str, float]
    bounds: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    stored: bool = False
    level: int = 0
    doubtful: str = ""
    seeds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    model_error: tuple[float, float] = (0.0, 0.0)
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WhatIf:
    """What could happen to a point, and what comes of it: ``point`` has its labels, or why it can't be."""

    label: str
    point: TriedPoint


@dataclass(frozen=True)
class SearchRun(StudyResult):
    """A search that has ended, as :func:`cosim.search` returns it.

    Attributes
    ----------
    name
        Of the design.
    axes
        (name, labels) of each.
    objectives
        What was optimised, of which :data:`~cosim.results.quantities.QUANTITIES` says more.
    tried
        Points in the order in which they were run.
    refused
        (labels, why) of those that can't be.
    num_points
        All points of the design.
    proven
        Whether no other point can be better than the best, or beat the front, by more than ``tolerance``: all
        were run, or their bounds say so.
    tolerance
        Relative.
    levels
        What each fidelity sets, and how much worse than its best a point may be and go on to the next.
    interrupted
        Empty, or why it ended early.
    what_ifs
        What the design's ``what_if`` does to the first three.
    untried
        (labels, bounds) of points that were neither run nor refused.
    winner
        The scenario of the best point, as YAML that `cosim run` takes; empty where there is none.
    description
        Of the design, for people.

    Examples
    --------
    >>> from cosim import SearchRun
    >>> rates, refused = (("rate", ("40Gbps",)),), ((("40Gbps",), "why"),)
    >>> found = SearchRun("none", rates, ("iteration",), (), refused, 1, True)
    >>> found.best is None, found.refused[0]
    (True, (('40Gbps',), 'why'))
    """

    name: str
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    objectives: tuple[str, ...]
    tried: tuple[TriedPoint, ...]
    refused: tuple[tuple[tuple[str, ...], str], ...]
    num_points: int
    proven: bool
    tolerance: float = 0.0
    levels: tuple[tuple[str, float], ...] = (("", 0.0),)
    interrupted: str = ""
    what_ifs: tuple[WhatIf, ...] = ()
    untried: tuple[tuple[tuple[str, ...], Mapping[str, float]], ...] = ()
    winner: str = ""
    description: str = ""

    @property
    def able(self) -> list[TriedPoint]:
        """Those that can be chosen: they went on, at the last fidelity, and keep the constraints."""
        return [one for one in self.tried if not one.error and one.level == len(self.levels) - 1]

    @property
    def ranked(self) -> list[TriedPoint]:
        """Those that can be chosen, best first by the first objective, then the others; equals as tried."""
        return sorted(self.able, key=self._losses)

    @property
    def front(self) -> list[TriedPoint]:
        """Those that no other beats, being as good everywhere and better somewhere; as ``ranked``."""
        ranked = self.ranked
        losses = np.array([self._losses(one) for one in ranked]).reshape(len(ranked), len(self.objectives))
        return [ranked[row] for row in sorted(front(losses))]

    @property
    def best(self) -> TriedPoint | None:
        """The best point by the first objective; None where there is none."""
        return next(iter(self.ranked), None)

    def _losses(self, one: TriedPoint) -> tuple[float, ...]:
        return tuple(QUANTITIES[name].sign * one.values[name] for name in self.objectives)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        chosen = {one.labels for one in self.front}
        return {
            "name": self.name,
            "objectives": list(self.objectives),
            "axes": {name: list(labels) for name, labels in self.axes},
            "proven": self.proven,
            "tolerance": self.tolerance,
            "interrupted": self.interrupted,
            "num_points": self.num_points,
            "tried": [
                {
                    "labels": list(one.labels),
                    "values": {name: value for name, value in one.values.items() if math.isfinite(value)},
                    "bounds": dict(one.bounds),
                    "error": one.error,
                    "stored": one.stored,
                    "level": one.level,
                    "doubtful": one.doubtful,
                    "front": one.labels in chosen,
                }
                for one in self.tried
            ],
            "refused": [{"labels": list(labels), "why": why} for labels, why in self.refused],
            "what_ifs": [
                {
                    "what": one.label,
                    "labels": list(one.point.labels),
                    "values": dict(one.point.values),
                    "error": one.point.error,
                }
                for one in self.what_ifs
            ],
        }

    def page(self) -> Page:
        """The sections of the page, for text and for HTML."""
        shown = self.ranked if len(self.objectives) == 1 else self.front
        winner = [f"the best, {' / '.join(one.labels)}, is doubtful" for one in shown[:1] if one.doubtful]
        sections = points_section((" / ".join(one.labels), one.doubtful) for one in self.tried)
        sections.append(Section([Lines([*self._counts(), self.verdict, *winner])]))
        if shown:
            rows = [self._head(shown[0]), *(self._row(one) for one in shown[:_SHOWN])]
            sections.append(Section([PageTable(rows, left=tuple(range(len(self.axes))))]))
            if len(shown) > _SHOWN:
                sections.append(Section([Lines([f"... and {len(shown) - _SHOWN} more"])]))
        if self.what_ifs:
            sections.append(Section([PageTable(self._what_if_rows(), left=(0, 1))]))
        failed = [f"{' / '.join(one.labels)}: {one.error}" for one in self.tried if one.error]
        failed += [f"{' / '.join(labels)}: {why}" for labels, why in self.refused]
        if failed:
            lines = [line.splitlines()[0] for line in failed[:_SHOWN]]
            more = [f"... and {len(failed) - _SHOWN} more"] if len(failed) > _SHOWN else []
            sections.append(Section([Lines([*lines, *more])]))
        return sections

    def report(self) -> RunReport:
        """The decision as one HTML page that shows itself in a notebook and can be sent on."""
        from cosim.results.report.document import decision_report

        return decision_report(self)

    def _counts(self) -> list[str]:
        left = self.num_points - len(self.tried) - len(self.refused)
        stored = sum(one.stored for one in self.tried)
        lines = [
            f"{self.name}: {self.num_points} points: {len(self.tried)} run ({stored} from the store), "
            f"{len(self.refused)} refused, {left} {'not needed' if self.proven else 'not tried'}"
        ]
        if len(self.levels) > 1:
            at = [
                f"{sum(one.level >= level for one in self.tried)} with {said}"
                for level, (said, _) in enumerate(self.levels)
            ]
            lines.append(f"run {', '.join(at)}")
        return lines

    @property
    def verdict(self) -> str:
        """Whether another point can be better, in words."""
        if not self.proven:
            return "others may be better: not all was tried"
        what = "no other can be better" if len(self.objectives) == 1 else "no other can be on the front"
        if self.tolerance:
            what += f" by more than {100 * self.tolerance:g} %"
        trusted = [
            f"{said} ranks as what comes after it does, to {100 * within:g} %"
            for said, within in self.levels[:-1]
        ]
        return f"{what}{', if ' if trusted else ''}{' and '.join(trusted)}"

    def _what_if_rows(self) -> list[list[str]]:
        """Each of the first three, and what it would be."""
        name = self.objectives[0]
        plain = {one.labels: one.values[name] for one in self.able}
        rows = [["what if", "", name, "changes by"]]
        for one in self.what_ifs:
            told = " / ".join(one.point.labels)
            if one.point.error:
                rows.append([one.label, told, "can't be", "-"])
                continue
            value, base = one.point.values[name], plain[one.point.labels]
            change = f"{round(100 * (value / base - 1), 1) + 0.0:+.1f} %" if base else "-"
            rows.append([one.label, told, self._first.unit.show(value), change])
        return rows

    def _head(self, one: TriedPoint) -> list[str]:
        more = [] if len(self.objectives) > 1 else ["at least" if self._first.less_is_better else "at most"]
        return [*(name for name, _ in self.axes), *one.values, *more]

    def _row(self, one: TriedPoint) -> list[str]:
        cells = [QUANTITIES[name].unit.show(value) for name, value in one.values.items()]
        name = self.objectives[0]
        bound = self._first.unit.show(one.bounds[name]) if name in one.bounds else "-"
        labels = [*one.labels[:-1], one.labels[-1] + (f" {MARK}" if one.doubtful else "")]
        return [*labels, *cells, *([] if len(self.objectives) > 1 else [bound])]

    @property
    def _first(self) -> Any:
        return QUANTITIES[self.objectives[0]]

    def __repr__(self) -> str:
        return f"<SearchRun {self.name} by {', '.join(self.objectives)}: {len(self.tried)} points run>"
