"""Trials: many runs of one question, their means with confidence intervals, and CSV.

A cell is the runs of one choice on every axis, one for each seed. Its interval is Student's, 95 %, over
seeds: how far the mean may lie from that of all seeds; it says nothing of how good the models are. Seeds move
all choices of a column alike (offsets, paths), so that cells' own intervals overlap where their difference is
certain: :meth:`Trials.of_best` has the interval of the ratio to the column's best, seed by seed.
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

_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, two-sided 95 %, for 1 to 30 degrees of freedom."""


def _t95(degrees: int) -> float:
    """Beyond the table the normal's, and the first two terms of its expansion: within 1e-4."""
    if degrees <= len(_T95):
        return _T95[degrees - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


Column = tuple[str, ...]
"""A choice on each axis but the first."""


@dataclass(frozen=True)
class Trial:
    """One run: its choice on each axis, its seed, and its measures; or why it could not go on."""

    labels: tuple[str, ...]
    seed: int
    measures: dict[str, float]
    digest: str
    error: str = ""


@dataclass(frozen=True)
class Cell:
    """Mean over seeds, and half the width of its interval (None with one seed); NaN without a run."""

    mean: float
    half_width: float | None
    count: int

    @property
    def interval(self) -> tuple[float, float]:
        """Its ends; the mean twice with one seed."""
        return self.mean - (self.half_width or 0.0), self.mean + (self.half_width or 0.0)


def cell_of(values: Sequence[float]) -> Cell:
    """Mean and Student's interval."""
    n = len(values)
    if n == 0:
        return Cell(math.nan, None, 0)
    mean = math.fsum(values) / n
    if n == 1:
        return Cell(mean, None, n)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    return Cell(mean, _t95(n - 1) * deviation / math.sqrt(n), n)


@dataclass(frozen=True, eq=False)
class Trials:
    """Every run of a sweep. ``axes`` are (name, labels); the first one's are compared in each column.

    ``interrupted`` is empty, or says why runs are missing.
    """

    name: str
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    measures: tuple[str, ...]
    trials: tuple[Trial, ...]
    interrupted: str = ""

    @cached_property
    def _values(self) -> dict[tuple[tuple[str, ...], str], dict[int, float]]:
        found: dict[tuple[tuple[str, ...], str], dict[int, float]] = {}
        for trial in self.trials:
            for measure, value in trial.measures.items():
                found.setdefault((trial.labels, measure), {})[trial.seed] = value
        return found

    def values(self, labels: tuple[str, ...], measure: str) -> dict[int, float]:
        """What each seed gave with one choice on every axis."""
        return self._values.get((labels, measure), {})

    def cell(self, labels: tuple[str, ...], measure: str) -> Cell:
        """The runs of one choice on every axis."""
        return cell_of(list(self.values(labels, measure).values()))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Choices on all axes but the first, in order."""
        return tuple(dict.fromkeys(trial.labels[1:] for trial in self.trials))

    @property
    def failed(self) -> tuple[Trial, ...]:
        """Runs that could not go on."""
        return tuple(trial for trial in self.trials if trial.error)

    def sign(self, measure: str) -> int:
        """1 where less is better, else -1."""
        return 1 if MEASURES[measure].less_is_better else -1

    def order(self, column: Column, measure: str) -> tuple[str, ...]:
        """The first axis' choices that have a run in a column, best first."""
        means = {label: self.cell((label, *column), measure).mean for label in self.axes[0][1]}
        ran = [label for label, mean in means.items() if not math.isnan(mean)]
        return tuple(sorted(ran, key=lambda one: self.sign(measure) * means[one]))

    def of_best(self, labels: tuple[str, ...], measure: str) -> Cell:
        """The ratio to the best of its column, seed by seed; nothing where the best has a value of 0."""
        column = labels[1:]
        order = self.order(column, measure)
        best = self.values((order[0], *column), measure) if order else {}
        if not all(best.values()):
            return cell_of([])
        return cell_of([v / best[seed] for seed, v in self.values(labels, measure).items() if seed in best])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        from cosim.results.orders import agreement

        return {
            "name": self.name,
            "interrupted": self.interrupted,
            "axes": {name: list(labels) for name, labels in self.axes},
            "cells": [dict(zip(self._head, row, strict=True)) for row in self._rows()],
            "orders": [
                {"measure": measure, "column": list(column), "best_first": list(self.order(column, measure))}
                for measure in self.measures
                for column in self.columns
            ],
            "kendall": [
                {"measure": measure, "columns": [list(a), list(b)], "tau_b": agreement(self, a, b, measure)}
                for measure in self.measures
                for k, a in enumerate(self.columns)
                for b in self.columns[k + 1 :]
            ],
            "failed": [
                {"labels": list(one.labels), "seed": one.seed, "error": one.error} for one in self.failed
            ],
        }

    @property
    def _head(self) -> list[str]:
        names = [name for name, _ in self.axes]
        ratio = ["of_best", "of_best_low", "of_best_high"]
        return [*names, "measure", "unit", "mean", "ci95_low", "ci95_high", "runs", *ratio]

    def _rows(self) -> list[list[Any]]:
        rows: list[list[Any]] = []
        for measure in self.measures:
            one = MEASURES[measure]
            for labels, name in self._values:
                if name == measure:
                    cell, ratio = self.cell(labels, measure), self.of_best(labels, measure)
                    numbers = [x / one.per for x in (cell.mean, *cell.interval)]
                    ratios = (ratio.mean, *ratio.interval) if ratio.count else (None, None, None)
                    rows.append([*labels, measure, one.symbol, *numbers, cell.count, *ratios])
        return rows

    def figure_csv(self) -> str:
        """A row for each cell and measure: what the figure shows, in the figure's units."""
        return _csv([self._head, *self._rows()])

    def trials_csv(self) -> str:
        """A row for each run; times in picoseconds, sizes in bytes."""
        head = [*(name for name, _ in self.axes), "seed", *self.measures, "digest", "error"]
        rows = [
            [*t.labels, t.seed, *(t.measures.get(m, "") for m in self.measures), t.digest, t.error]
            for t in self.trials
        ]
        return _csv([head, *rows])

    def __str__(self) -> str:
        from cosim.results.trials_page import render_trials

        return render_trials(self)


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
