"""Trials: many runs of one question, as a table with confidence intervals, and as CSV.

A cell is the runs of one choice on every axis, one for each seed. Its interval is Student's, 95 %, over
seeds: how far the mean may lie from that of all seeds; it says nothing of how good the models are.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cosim.results.measures import MEASURES
from cosim.results.terminal import align
from cosim.units import format_time

_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, two-sided 95 %, for 1 to 30 degrees of freedom; beyond, the normal's 1.960 is taken."""


@dataclass(frozen=True)
class Trial:
    """One run: its choice on each axis, its seed, and its measures."""

    labels: tuple[str, ...]
    seed: int
    measures: dict[str, float]
    digest: str


@dataclass(frozen=True)
class Cell:
    """Mean over seeds, and half the width of its interval (None with one seed)."""

    mean: float
    half_width: float | None
    count: int


def cell_of(values: Sequence[float]) -> Cell:
    """Mean and Student's interval."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Cell(mean, None, n)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    t = _T95[n - 2] if n - 2 < len(_T95) else 1.960
    return Cell(mean, t * deviation / math.sqrt(n), n)


@dataclass(frozen=True, eq=False)
class Trials:
    """Every run of a sweep. ``axes`` are (name, labels); the first one's are compared in each column."""

    name: str
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    measures: tuple[str, ...]
    trials: tuple[Trial, ...]

    @cached_property
    def _cells(self) -> dict[tuple[tuple[str, ...], str], Cell]:
        values: dict[tuple[tuple[str, ...], str], list[float]] = {}
        for trial in self.trials:
            for measure, value in trial.measures.items():
                values.setdefault((trial.labels, measure), []).append(value)
        return {key: cell_of(found) for key, found in values.items()}

    def cell(self, labels: tuple[str, ...], measure: str) -> Cell:
        """The runs of one choice on every axis."""
        return self._cells[labels, measure]

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """Choices on all axes but the first, in order."""
        return tuple(dict.fromkeys(trial.labels[1:] for trial in self.trials))

    def order(self, column: tuple[str, ...], measure: str) -> tuple[str, ...]:
        """The first axis' choices in a column, best first."""
        sign = 1 if MEASURES[measure].less_is_better else -1
        labels = self.axes[0][1]
        return tuple(sorted(labels, key=lambda one: sign * self.cell((one, *column), measure).mean))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "axes": {name: list(labels) for name, labels in self.axes},
            "cells": [dict(zip(self._head, row, strict=True)) for row in self._rows()],
            "orders": [
                {"measure": measure, "column": list(column), "best_first": list(self.order(column, measure))}
                for measure in self.measures
                for column in self.columns
            ],
        }

    @property
    def _head(self) -> list[str]:
        return [*(name for name, _ in self.axes), "measure", "unit", "mean", "ci95_low", "ci95_high", "runs"]

    def _rows(self) -> list[list[Any]]:
        rows: list[list[Any]] = []
        for measure in self.measures:
            scale, unit = (1e9, "ms") if MEASURES[measure].unit == "time" else (1.0, "")
            for (labels, name), cell in self._cells.items():
                if name == measure:
                    half = cell.half_width or 0.0
                    numbers = [x / scale for x in (cell.mean, cell.mean - half, cell.mean + half)]
                    rows.append([*labels, measure, unit, *numbers, cell.count])
        return rows

    def figure_csv(self) -> str:
        """A row for each cell and measure: what the figure shows. Times in milliseconds."""
        return _csv([self._head, *self._rows()])

    def trials_csv(self) -> str:
        """A row for each run, times in picoseconds."""
        head = [*(name for name, _ in self.axes), "seed", *self.measures, "digest"]
        rows = [[*t.labels, t.seed, *(t.measures[m] for m in self.measures), t.digest] for t in self.trials]
        return _csv([head, *rows])

    def __str__(self) -> str:
        return render_trials(self)


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def render_trials(trials: Trials) -> str:
    """A table for each measure, and where the order of the first axis' choices changes."""
    runs = len({trial.seed for trial in trials.trials})
    first, labels = trials.axes[0]
    head = f"{trials.name}: {len(trials.trials)} runs, {runs} seed{'s' if runs > 1 else ''}"
    lines = [head + (", mean ± 95 % confidence over seeds" if runs > 1 else "")]
    for measure in trials.measures:
        lines += ["", f"{measure}: {MEASURES[measure].text}"]
        rows = [[f"  {first}", *(" / ".join(column) or measure for column in trials.columns)]]
        best = {column: _best(trials, column, measure) for column in trials.columns}
        for label in labels:
            cells = [
                _shown(trials.cell((label, *c), measure), measure, label in best[c]) for c in trials.columns
            ]
            rows.append([f"  {label}", *cells])
        lines += [line.rstrip() for line in align(rows)]
        orders: dict[tuple[str, ...], list[str]] = {}
        for column in trials.columns:
            orders.setdefault(trials.order(column, measure), []).append(" / ".join(column))
        if len(labels) > 1 and len(orders) > 1:
            lines.append(f"  the order of {first} is not the same everywhere, best first:")
            lines += [f"    {' < '.join(order)}: {', '.join(where)}" for order, where in orders.items()]
    return "\n".join(lines) + "\n"


def _best(trials: Trials, column: tuple[str, ...], measure: str) -> list[str]:
    """The choices with the best mean of a column, unless all have it."""
    labels = trials.axes[0][1]
    top = trials.cell((trials.order(column, measure)[0], *column), measure).mean
    found = [label for label in labels if trials.cell((label, *column), measure).mean == top]
    return found if len(found) < len(labels) else []


def _shown(cell: Cell, measure: str, best: bool) -> str:
    unit = MEASURES[measure].unit
    half = cell.half_width
    if unit == "time":
        text = format_time(round(cell.mean)) + (
            f" ±{100 * half / cell.mean:.1f} %" if half and cell.mean else ""
        )
    elif unit == "share":
        text = f"{100 * cell.mean:.1f} %" + (f" ±{100 * half:.1f}" if half else "")
    else:
        text = f"{cell.mean:.3f}" + (f" ±{half:.3f}" if half else "")
    return text + (" *" if best else "  ")
