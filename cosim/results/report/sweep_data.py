"""What a report shows of a sweep: every cell's means, and its folder read back."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cosim.errors import InputError, Location
from cosim.files.folder import settle
from cosim.files.text import read_text
from cosim.results.orders import letters
from cosim.results.quantities import QUANTITIES
from cosim.results.sweep import SweepRun, Trial, column_of

TRIALS = "trials.csv"
PageOf = Callable[[Trial], str]
"""The address of the page of a trial's run, as the sweep's page has to name it; empty: there is none."""


def no_run(trial: Trial) -> str:  # noqa: ARG001 - as those that know one
    """Where the page of a trial's run is: nowhere."""
    return ""


def sweep_data(sweep: SweepRun, page_of: PageOf = no_run) -> dict[str, Any]:
    """Plain values: axes, measures, and each combination of choices with its means in the figure's units, and
    the addresses of its runs.
    """
    return {
        "name": sweep.name,
        "said": _said(sweep),
        "question": sweep.description,
        "axes": [{"name": name, "labels": list(labels)} for name, labels in sweep.axes],
        "measures": [
            {
                "name": name,
                "text": QUANTITIES[name].text.replace("`", ""),
                "unit": QUANTITIES[name].unit.symbol,
                "more_is_better": not QUANTITIES[name].less_is_better,
            }
            for name in sweep.measures
        ],
        "cells": [
            _cell(sweep, labels, page_of) for labels in dict.fromkeys(run.labels for run in sweep.runs)
        ],
        "letters": [
            {"measure": k, "column": list(column), "of": letters(sweep, column, name)}
            for k, name in enumerate(sweep.measures)
            for column in sweep.columns
        ],
    }


def _cell(sweep: SweepRun, labels: tuple[str, ...], page_of: PageOf) -> dict[str, Any]:
    cells = [(sweep.cell(labels, name), QUANTITIES[name].unit.per) for name in sweep.measures]
    return {
        "labels": list(labels),
        "doubtful": sweep.doubtful(labels),
        "runs": [
            {"seed": trial.seed, "at": at}
            for trial in sweep.runs
            if trial.labels == labels and (at := page_of(trial))
        ],
        "count": max((cell.count for cell, _ in cells), default=0),
        "counts": [cell.count for cell, _ in cells],
        "means": [None if math.isnan(cell.mean) else cell.mean / per for cell, per in cells],
        "halves": [None if cell.half_width is None else cell.half_width / per for cell, per in cells],
    }


def _said(sweep: SweepRun) -> str:
    seeds = len({run.seed for run in sweep.runs})
    failed = f", {len(sweep.failed)} of them could not go on" if sweep.failed else ""
    interval = "; intervals are Student's, 95 %, over seeds" if seeds > 1 else ""
    ended = f"Interrupted ({sweep.interrupted}): of {sweep.num_asked:,} runs, " if sweep.interrupted else ""
    return f"{ended}{len(sweep.runs):,} runs{failed}{interval}."


def load_sweep(directory: Path) -> SweepRun:
    """The sweep whose ``trials.csv`` lies in a folder.

    Raises
    ------
    InputError
        The file can't be read, or is not what a sweep writes.
    """
    settle(directory)
    path = directory / TRIALS
    rows = list(csv.reader(io.StringIO(read_text(path, InputError))))
    head = rows[0] if rows else []
    if "seed" not in head or head[-3:] != ["doubtful", "digest", "error"]:
        raise InputError(
            "is not what a sweep writes: axes, seed, measures, doubtful, digest, error",
            location=Location(str(path)),
        )
    seed = head.index("seed")
    axes, columns = head[:seed], head[seed + 1 : -3]
    of_column = {column_of(name): name for name in QUANTITIES}
    for column in columns:
        if column not in of_column:
            raise InputError(
                f"{column!r} is not a column of a sweep; there are {', '.join(of_column)}",
                location=Location(str(path), 1),
            )
    measures = tuple(of_column[column] for column in columns)
    trials = [_trial(path, number, row, seed, measures) for number, row in enumerate(rows[1:], 2)]
    labels = tuple(
        (name, tuple(dict.fromkeys(trial.labels[k] for trial in trials))) for k, name in enumerate(axes)
    )
    return SweepRun(directory.name, labels, measures, tuple(trials))


def _trial(path: Path, line: int, row: list[str], seed: int, measures: tuple[str, ...]) -> Trial:
    try:
        values = row[seed + 1 : -3]
        found = {name: float(value) for name, value in zip(measures, values, strict=True) if value}
        return Trial(tuple(row[:seed]), int(row[seed]), found, row[-2], row[-1], doubtful=row[-3])
    except (ValueError, IndexError) as error:
        raise InputError(f"is no run of a sweep: {error}", location=Location(str(path), line)) from None
