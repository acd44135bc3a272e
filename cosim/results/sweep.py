"""What came of a sweep: every trial, means with confidence intervals, ratios to the best, CSV.

A cell is the runs of one choice on every axis, one for each seed. Its interval is Student's, 95 %, over
seeds: how far the mean may lie from that of all seeds; it says nothing of how good the models are. Seeds move
all choices of a column alike (offsets, paths), so that cells' own intervals overlap where their difference is
certain: :meth:`SweepRun.of_best` has the interval of the ratio to the column's best, seed by seed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.errors import InfeasibleError
from cosim.files.folder import claimed, written_whole
from cosim.results.quantities import QUANTITIES
from cosim.results.render.figure import can_draw
from cosim.results.render.page import Page
from cosim.results.study import StudyResult
from cosim.results.table import Array, Labels, Table

if TYPE_CHECKING:
    from cosim.results.report.document import RunReport

RUN_REPORT = "report.html"
"""In the folder of a run that a sweep keeps."""
_log = logging.getLogger("cosim")
SWEEP_FILES = ("trials.csv", "table.txt", "figure.csv", "figure.png", "figure.svg")
"""What a sweep's folder has."""

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
    """One run: its choice on each axis, its seed, and its measures; or why it could not go on. ``run`` is its
    id in the sweep's store, for ``cosim runs show``; empty where it is in none. ``doubtful`` is what can make
    it wrong by more than its interval.
    """

    labels: tuple[str, ...]
    seed: int
    measures: dict[str, float]
    digest: str
    error: str = ""
    run: str = ""
    doubtful: str = ""

    @property
    def is_infeasible(self) -> bool:
        """Whether it was not run because its job can't be on its GPUs."""
        return self.error.startswith(f"{InfeasibleError.__name__}: ")

    @property
    def reason(self) -> str:
        """Why it could not go on, without the error's type."""
        return self.error.partition(": ")[2]

    @property
    def folder(self) -> str:
        """Where the run lies below the sweep's folder, if it was kept."""
        return kept_folder(self.labels, self.seed)


def kept_folder(labels: Sequence[str], seed: int) -> str:
    """``runs/dctcp-8-1-4f1a20-seed0``: readable, a name that every file system takes, and no other's."""
    words = re.sub("[^A-Za-z0-9.]+", "-", "-".join(labels)).strip("-.")[:48]
    number = hashlib.sha256("\0".join(labels).encode()).hexdigest()[:6]
    return f"runs/{words}-{number}-seed{seed}"


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


@dataclass(frozen=True, eq=False, repr=False)
class SweepRun(StudyResult):
    """Every run of a sweep, as :func:`cosim.sweep` returns it.

    It prints as the page of ``cosim run``, and shows itself in a notebook.

    Attributes
    ----------
    name
        Of the sweep.
    axes
        (name, labels) of each; the first one's are compared in each column of the table.
    measures
        Names, as in `cosim list sweep`.
    runs
        Those that were run, in order: labels, seed, measures.
    interrupted
        Empty, or why some of ``num_asked`` are missing.
    num_asked
        Runs that were asked for.
    store
        The address of the store that has the runs whose ``run`` says so; empty: there is none.
    description
        Of the sweep, for people.
    baseline
        The first axis' choice that the others are held against; empty: the best of each column.

    Examples
    --------
    >>> from cosim.results.sweep import SweepRun, Trial
    >>> runs = [Trial((name,), seed, {"iteration": time + 1e6 * seed}, "")
    ...         for name, time in (("dctcp", 5e6), ("swift", 4e6)) for seed in range(3)]
    >>> done = SweepRun("which", (("control", ("dctcp", "swift")),), ("iteration",), tuple(runs))
    >>> done.order((), "iteration")
    ('swift', 'dctcp')
    >>> done.cell(("swift",), "iteration").mean
    5000000.0
    >>> done.trials.iteration_ps
    array([5000000., 6000000., 7000000., 4000000., 5000000., 6000000.])
    """

    name: str
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    measures: tuple[str, ...]
    runs: tuple[Trial, ...]
    interrupted: str = ""
    num_asked: int = 0
    store: str = ""
    description: str = ""
    baseline: str = ""

    @cached_property
    def _values(self) -> dict[tuple[tuple[str, ...], str], dict[int, float]]:
        found: dict[tuple[tuple[str, ...], str], dict[int, float]] = {}
        for trial in self.runs:
            for measure, value in trial.measures.items():
                found.setdefault((trial.labels, measure), {})[trial.seed] = value
        return found

    def values(self, labels: tuple[str, ...], measure: str) -> dict[int, float]:
        """What each seed gave with one choice on every axis."""
        return self._values.get((labels, measure), {})

    def cell(self, labels: tuple[str, ...], measure: str) -> Cell:
        """The runs of one choice on every axis."""
        return cell_of(list(self.values(labels, measure).values()))

    def doubtful(self, labels: tuple[str, ...]) -> str:
        """What is doubtful about a choice, on any seed; empty where nothing is."""
        found = (one.doubtful for one in self.runs if one.labels == labels and one.doubtful)
        return "; ".join(dict.fromkeys(found))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Choices on all axes but the first, in order."""
        return tuple(dict.fromkeys(trial.labels[1:] for trial in self.runs))

    @property
    def failed(self) -> tuple[Trial, ...]:
        """Runs that could not go on."""
        return tuple(trial for trial in self.runs if trial.error and not trial.is_infeasible)

    @property
    def infeasible(self) -> tuple[Trial, ...]:
        """Runs that can't be: their jobs need more memory than their GPUs have."""
        return tuple(trial for trial in self.runs if trial.is_infeasible)

    def sign(self, measure: str) -> int:
        """1 where less is better, else -1."""
        return QUANTITIES[measure].sign

    def order(self, column: Column, measure: str) -> tuple[str, ...]:
        """The first axis' choices that have a run in a column, best first."""
        means = {label: self.cell((label, *column), measure).mean for label in self.axes[0][1]}
        ran = [label for label, mean in means.items() if not math.isnan(mean)]
        return tuple(sorted(ran, key=lambda one: self.sign(measure) * means[one]))

    def over_baseline(self, labels: tuple[str, ...], measure: str) -> Cell:
        """The ratio to the baseline in its column, seed by seed; nothing where that has a value of 0."""
        return self._over(self.values((self.baseline, *labels[1:]), measure), labels, measure)

    def of_best(self, labels: tuple[str, ...], measure: str) -> Cell:
        """The ratio to the best of its column, seed by seed; nothing where the best has a value of 0."""
        column = labels[1:]
        order = self.order(column, measure)
        best = self.values((order[0], *column), measure) if order else {}
        return self._over(best, labels, measure)

    def _over(self, base: dict[int, float], labels: tuple[str, ...], measure: str) -> Cell:
        if not all(base.values()):
            return cell_of([])
        return cell_of([v / base[seed] for seed, v in self.values(labels, measure).items() if seed in base])

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
            **{
                how: [{"labels": list(one.labels), "seed": one.seed, "error": one.error} for one in runs]
                for how, runs in (("failed", self.failed), ("infeasible", self.infeasible))
            },
            "doubtful": [
                {"labels": list(one.labels), "seed": one.seed, "why": one.doubtful}
                for one in self.runs
                if one.doubtful
            ],
            "store": self.store,
            "stored": [
                {"labels": list(one.labels), "seed": one.seed, "run": one.run} for one in self.runs if one.run
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
            unit = QUANTITIES[measure].unit
            for labels, name in self._values:
                if name == measure:
                    cell, ratio = self.cell(labels, measure), self.of_best(labels, measure)
                    numbers = [x / unit.per for x in (cell.mean, *cell.interval)]
                    ratios = (ratio.mean, *ratio.interval) if ratio.count else (None, None, None)
                    rows.append([*labels, measure, unit.symbol, *numbers, cell.count, *ratios])
        return rows

    @cached_property
    def trials(self) -> Table:
        """A row for each run: labels, seed, measures (NaN where it failed), doubts, digest, error."""
        columns: dict[str, Array | Labels] = {}
        for k, (axis, labels) in enumerate(self.axes):
            columns[axis] = Labels(
                np.array([labels.index(run.labels[k]) for run in self.runs], np.int32), labels
            )
        columns["seed"] = np.array([run.seed for run in self.runs], np.int64)
        for measure in self.measures:
            values = [run.measures.get(measure, math.nan) for run in self.runs]
            columns[column_of(measure)] = np.array(values, np.float64)
        columns["doubtful"] = np.array([run.doubtful for run in self.runs], np.str_)
        columns["digest"] = np.array([run.digest for run in self.runs], np.str_)
        columns["error"] = np.array([run.error for run in self.runs], np.str_)
        texts = {column_of(measure): QUANTITIES[measure].text for measure in self.measures}
        return Table("trials", columns, texts)

    @cached_property
    def cells(self) -> Table:
        """A row for each measure and combination: mean, interval, ratio to the best, as in figure.csv."""
        rows = [[math.nan if value is None else value for value in row] for row in self._rows()]
        return Table("cells", {name: np.array([row[k] for row in rows]) for k, name in enumerate(self._head)})

    def figure_csv(self) -> str:
        """A row for each cell and measure: what the figure shows, in the figure's units."""
        return _csv([self._head, *self._rows()])

    def trials_csv(self) -> str:
        """A row for each run; times in picoseconds, sizes in bytes, as columns' names say."""
        measures = map(column_of, self.measures)
        head = [*(name for name, _ in self.axes), "seed", *measures, "doubtful", "digest", "error"]
        rows = [
            [
                *t.labels,
                t.seed,
                *(_written(t.measures.get(m)) for m in self.measures),
                t.doubtful,
                t.digest,
                t.error,
            ]
            for t in self.runs
        ]
        return _csv([head, *rows])

    def save(self, directory: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write table.txt, trials.csv, figure.csv, figure.png and figure.svg; the files written.

        Without matplotlib there are no figures, which a warning says.

        Raises
        ------
        InputError
            A file can't be written, another run writes to the folder, or it holds files of these names that
            cosim did not write (``overwrite`` replaces them).
        """
        with claimed(directory, SWEEP_FILES, overwrite=overwrite) as target:
            return [target / name for name in self.write(target)]

    def write(self, target: Path) -> list[str]:
        """The same in a folder that is held (:func:`~cosim.files.folder.claimed`)."""
        texts = {"table.txt": str(self), "trials.csv": self.trials_csv(), "figure.csv": self.figure_csv()}
        with written_whole(target, SWEEP_FILES) as part:
            for name, text in texts.items():
                (part / name).write_text(text, encoding="utf-8")
            if can_draw():
                self.draw(part / "figure.png")
                self.draw(part / "figure.svg")
            else:
                _log.warning("no figures: they need matplotlib: pip install '.[plot]'")
            return [name for name in SWEEP_FILES if (part / name).exists()]

    def draw(self, path: str | Path) -> Path:
        """Draw a panel for each measure; png, svg or pdf, as the suffix says.

        Raises
        ------
        InputError
            matplotlib is not installed, or the file can't be written.
        """
        from cosim.results.render.sweep_figure import draw_sweep

        return draw_sweep(self, Path(path))

    def report(self) -> RunReport:
        """The sweep as one HTML page that shows itself in a notebook and can be saved."""
        from cosim.results.report.document import sweep_report

        return sweep_report(self)

    def __repr__(self) -> str:
        axes = ", ".join(name for name, _ in self.axes)
        return f"<SweepRun {self.name} over {axes}: {len(self.runs)} runs>"

    def page(self) -> Page:
        """The sections of the page, for text and for HTML."""
        from cosim.results.render.sweep_page import sweep_page

        return sweep_page(self)


def column_of(measure: str) -> str:
    """A measure's name as a column of a table, its unit in it."""
    return measure + QUANTITIES[measure].unit.suffix


def _written(value: float | None) -> str:
    """A number in a file; whole ones, as times are, without a fraction."""
    if value is None:
        return ""
    return str(int(value)) if value.is_integer() else str(value)


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
